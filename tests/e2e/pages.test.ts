/** Detect, Auth, Authz and Analytics in a real browser: every number equals a count of the posted events, live too. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Page } from 'playwright'
import { closeBrowser, type PageOptions } from '../support/browser.ts'
import { picture } from '../support/picture.ts'
import { event, type TestEvent } from '../support/events.ts'
import { newOrganization, type Organization, send, withOwner } from './dashboard-actions.ts'
import { goInside } from './pages-actions.ts'
import { earlier, matching, pageTraffic, runningRange, type Wanted } from './pages-traffic.ts'

let org: Organization
let key: string
let sentEvents: TestEvent[]
const nowMs = Date.now()

beforeAll(async () => {
  org = await newOrganization()
  key = org.key
  sentEvents = pageTraffic(nowMs)
  await send(org.url, key, sentEvents)
}, 120_000)
afterAll(closeBrowser)

const week = () => runningRange(7, Date.now())
/** Steps of three hours. The first one is cut at the start of the range. */
function weekEdges(): number[] {
  const sinceMs = Date.parse(week().since)
  const untilMs = Date.parse(week().until)
  const stepMs = 3 * 3_600_000
  const first = (Math.floor(sinceMs / stepMs) + 1) * stepMs
  const steps = Math.ceil((untilMs - first) / stepMs)
  return [sinceMs, ...Array.from({ length: steps + 1 }, (_, step) => first + step * stepMs)]
}
const count = (criteria: Wanted, range = week()) =>
  matching(sentEvents, criteria, range.since, range.until).length
const shown = (n: number) => n.toLocaleString('en-GB')

/** The value and the comparison of a headline. */
async function headline(page: Page, name: string): Promise<{ value: string; about: string }> {
  const line = page.locator('.headlines > div').filter({ has: page.getByText(name, { exact: true }) })
  const value = await line.locator('strong').innerText()
  return { value, about: await line.locator('small').innerText() }
}

async function expectHeadline(page: Page, name: string, value: number): Promise<void> {
  await page
    .locator('.headlines > div')
    .filter({ has: page.getByText(name, { exact: true }) })
    .locator('strong', { hasText: new RegExp(`^${shown(value)}$`) })
    .waitFor({ timeout: 8_000 })
}

/** The rows of a table, once it has any, as lists of texts. */
async function table(page: Page, name: string | RegExp): Promise<string[][]> {
  const rows = page.getByRole('table', { name }).locator('tbody tr')
  await rows.first().waitFor()
  return rows.evaluateAll((elements) =>
    elements.map((row) => [...row.children].map((cell) => (cell as HTMLElement).innerText.trim())),
  )
}

async function open(
  path: string,
  visit: (page: Page) => Promise<void>,
  options: PageOptions = {},
): Promise<void> {
  await withOwner(
    `${org.url}${path}`,
    async (page) => {
      await page.locator('.counts').waitFor()
      await visit(page)
    },
    { viewport: { width: 1280, height: 900 }, ...options },
  )
}

/** Tables sort by their heads and are saved as CSV in that order. */
async function expectSorted(page: Page): Promise<void> {
  const agents = page.getByRole('table', { name: 'Agents' })
  await agents.getByRole('button', { name: 'Vendor' }).click()
  expect((await table(page, 'Agents')).map((row) => row[0])).toEqual([
    'ClaudeBot',
    'GPTBot',
    'House Agent',
    'Operator',
  ])
  const saved = page.waitForEvent('download')
  await page.locator('.data-panel', { has: agents }).getByRole('button', { name: 'Save as CSV' }).click()
  const text = await Bun.file(await (await saved).path()).text()
  const lines = text.replace('\ufeff', '').trim().split('\n')
  expect(lines[0]).toBe('Vendor,Agent,Purpose,Operator,Visits,"Share, %",Before,"Change, %",Blocked')
  expect(lines.slice(1).map((line) => line.split(',')[0])).toEqual([
    'ClaudeBot',
    'GPTBot',
    'House Agent',
    'Operator',
  ])
}

test('the headline, comparison, vendors, classes and sorted files of Detect equal the posted events', async () => {
  await open('/detect', async (page) => {
    const type = 'agent.detected'
    await expectHeadline(page, 'Visits', count({ type }))
    const countBefore = count({ type }, earlier(week(), 7))
    expect((await headline(page, 'Visits')).about).toContain(`from ${shown(countBefore)}`)
    expect(countBefore).toBeGreaterThan(0)
    const rows = await table(page, 'Agents')
    const vendors = ['GPTBot', 'Operator', 'ClaudeBot', 'House Agent']
    expect(rows.map((row) => [row[0], row[4], row[6], row[8]]).sort()).toEqual(
      vendors
        .map((vendor) => [
          vendor,
          shown(count({ type, vendor })),
          shown(count({ type, vendor }, earlier(week(), 7))),
          shown(count({ type: 'authz.evaluated', outcome: 'blocked', vendor })),
        ])
        .sort(),
    )
    expect(rows.find((row) => row[0] === 'Operator')?.slice(1, 4)).toEqual(['', '', 'OpenAI'])
    expect(rows.find((row) => row[0] === 'House Agent')?.slice(1, 4)).toEqual(['', '', ''])
    await page.getByRole('table', { name: 'Classes by vendor' }).waitFor()
    const matrix = await table(page, 'Classes by vendor')
    const heads = await page.getByRole('table', { name: 'Classes by vendor' }).locator('th').allInnerTexts()
    const detections = matching(sentEvents, { type }, week().since, week().until)
    expect(matrix.map((row) => row.join(' ')).sort()).toEqual(
      vendors
        .map((vendor) => {
          const vendorDetections = detections.filter((detection) => detection.agent.vendor === vendor)
          const detectionsByClass = heads
            .slice(1, -1)
            .map((name) => vendorDetections.filter((detection) => detection.agent.class === name.trim()))
          return [
            vendor,
            ...detectionsByClass.map((list) => shown(list.length)),
            shown(vendorDetections.length),
          ].join(' ')
        })
        .sort(),
    )
    await page.getByText('Show as table').click()
    await page.getByRole('table', { name: /Visits per 3 hours/ }).waitFor()
    const steps = await table(page, /Visits per 3 hours/)
    const sum = steps.reduce((total, row) => total + Number(row.at(-1)?.replaceAll(',', '')), 0)
    expect([steps.length, sum]).toEqual([weekEdges().length - 1, count({ type })])
    await expectSorted(page)
  })
}, 40_000)

/** Dragging in a chart and its keys set the range to whole steps. */
async function expectZoom(page: Page): Promise<void> {
  await goInside(page, '/detect?range=7d')
  await expectHeadline(page, 'Visits', count({ type: 'agent.detected' }))
  const plot = page.locator('.u-over')
  const box = (await plot.boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 }
  const edges = weekEdges()
  const lengthMs = edges.at(-1)! - edges[0]!
  await page.mouse.move(box.x + box.width * 0.5 + 2, box.y + 40)
  await page.mouse.down()
  await page.mouse.move(box.x + box.width * 0.75 - 2, box.y + 60, { steps: 5 })
  await page.mouse.up()
  // A drag chooses the steps that it touches.
  const stepAt = (share: number) => edges.findLastIndex((edge) => edge <= edges[0]! + share * lengthMs)
  const isoTime = (step: number) => new Date(edges[step]!).toISOString()
  const first = isoTime(stepAt(0.5))
  const last = isoTime(stepAt(0.75) + 1)
  await page.waitForURL((url) => url.searchParams.get('since') === first)
  const until = new URL(page.url()).searchParams.get('until')!
  expect([last, isoTime(stepAt(0.75))]).toContain(until)
  const dragged = { since: first, until }
  await expectHeadline(page, 'Visits', count({ type: 'agent.detected' }, dragged))
  await page.locator('.stack-chart').focus()
  for (const press of ['Home', 'Shift+ArrowRight', 'Shift+ArrowRight', 'Enter'])
    await page.keyboard.press(press)
  const keyed = { since: first, until: isoTime(stepAt(0.5) + 1) }
  await page.waitForURL((url) => url.searchParams.get('until') === keyed.until)
  await expectHeadline(page, 'Visits', count({ type: 'agent.detected' }, keyed))
  await page.goBack()
  await expectHeadline(page, 'Visits', count({ type: 'agent.detected' }, dragged))
}

test('the site and range, also of a drag, are stored in the address, carry over to other pages and can be undone', async () => {
  await open('/detect', async (page) => {
    const type = 'agent.detected'
    await page.getByRole('combobox', { name: 'Site' }).selectOption('blog')
    await expectHeadline(page, 'Visits', count({ type, siteId: 'blog' }))
    await page.getByRole('combobox', { name: 'Range' }).selectOption('Last 24 hours')
    const day = runningRange(1, Date.now())
    await expectHeadline(page, 'Visits', count({ type, siteId: 'blog' }, day))
    expect(new URL(page.url()).search).toBe('?range=24h&siteId=blog')
    await page.getByRole('link', { name: 'Authz', exact: true }).click()
    await expectHeadline(page, 'Decisions', count({ type: 'authz.evaluated', siteId: 'blog' }, day))
    expect(new URL(page.url()).search).toBe('?range=24h&siteId=blog')
    await page.goBack()
    await expectHeadline(page, 'Visits', count({ type, siteId: 'blog' }, day))
    await page.goBack()
    await expectHeadline(page, 'Visits', count({ type, siteId: 'blog' }))
    await page.getByLabel('Compare').uncheck()
    await page.waitForURL(/compare=off/)
    expect((await headline(page, 'Visits')).about).toBe('')
    await expectZoom(page)
  })
}, 40_000)

/** A denial shows its rule, reason, identity, evidence and earlier attempts. */
async function expectReasons(page: Page): Promise<void> {
  await goInside(page, '/authz')
  const refused = matching(
    sentEvents,
    { type: 'authz.evaluated', outcome: 'blocked' },
    week().since,
    week().until,
  )
  await expectHeadline(page, 'Denied', refused.length)
  const newest = page.getByRole('table', { name: 'Newest denials' })
  await newest.locator('tbody tr').first().focus()
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  const dialog = page.getByRole('dialog')
  await dialog.getByText('trust below verified').waitFor()
  const refusal = refused.toSorted((a, b) => (a.occurredAt < b.occurredAt ? 1 : -1))[1]!
  expect(new URL(page.url()).searchParams.get('why')).toBe(refusal.id)
  const dialogText = await dialog.innerText()
  const earlierOnes = sentEvents.filter(
    (candidate) =>
      candidate.sessionId === refusal.sessionId &&
      candidate.siteId === refusal.siteId &&
      candidate.occurredAt < refusal.occurredAt,
  )
  const earlierRefusals = earlierOnes.filter(
    (candidate) => candidate.type === 'authz.evaluated' && candidate.outcome === 'blocked',
  )
  expect(dialogText).toContain(
    `${['First', 'Second', 'Third'][earlierRefusals.length]} denial in this session`,
  )
  for (const text of [
    'tool:checkout.pay',
    refusal.agent.vendor,
    refusal.metadata['subject' as never],
    'oauth2|bearer',
  ])
    expect(dialogText).toMatch(new RegExp(text))
  expect(await dialog.locator('.earlier li').count()).toBe(earlierOnes.length)
  await picture(page, 'why-blocked')
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached' })
}

test('the counts of Auth and Analytics and the reasons of a denial equal the posted events', async () => {
  await open('/auth?range=7d', async (page) => {
    const type = 'auth.identity_presented'
    await expectHeadline(page, 'Identities', count({ type }))
    await expectHeadline(page, 'Accepted', count({ type, outcome: 'success' }))
    const typeEvents = matching(sentEvents, { type }, week().since, week().until)
    const rows = await table(page, 'Protocols')
    expect(rows.map((row) => row.slice(0, 2)).sort()).toEqual(
      ['bearer', 'oauth2'].map((name) => [
        name,
        shown(typeEvents.filter((candidate) => candidate.metadata.protocol === name).length),
      ]),
    )
    await page.getByRole('table', { name: 'Accepted subjects' }).waitFor()
    const identities = await table(page, 'Accepted subjects')
    const times = identities.reduce((sum, row) => sum + Number(row[4]), 0)
    expect(times).toBe(typeEvents.filter((candidate) => candidate.outcome === 'success').length)
    await page.getByRole('link', { name: 'Analytics', exact: true }).click()
    await expectHeadline(page, 'Visits', count({ type: 'agent.detected' }))
    const types = await table(page, 'Types')
    expect(types.map(([type, , number]) => [type, number]).sort()).toEqual(
      [...new Set(sentEvents.map((candidate) => candidate.type))]
        .sort()
        .map((eventType) => [eventType, shown(count({ type: eventType }))]),
    )
    const toolCalls = matching(sentEvents, { type: 'tool.executed' }, week().since, week().until)
    const took = toolCalls.map((call) => call.durationMs).sort((a, b) => a - b)
    const durations = page.locator('.chart-panel').filter({ hasText: 'Tool call duration' })
    await durations.getByText(`${shown(took.length)} calls, accurate to 2 %`).waitFor()
    const quantiles = (await durations.locator('.legend li').allInnerTexts()).map((text) =>
      Number(/, ([0-9]+) ms overall/.exec(text)?.[1]),
    )
    for (const [index, share] of [0.5, 0.95].entries()) {
      const exact = took[Math.ceil(share * took.length) - 1] ?? 0
      expect(Math.abs((quantiles[index] ?? 0) - exact)).toBeLessThanOrEqual(0.5 + exact * 0.02)
    }
    const agents = page.locator('.chart-panel').filter({ hasText: 'Active agents per day' })
    await agents.getByText('Show as table').click()
    await page.getByRole('table', { name: /Active agents per day/ }).waitFor()
    const today = new Date().toISOString().slice(0, 10)
    const eventsToday = sentEvents.filter((candidate) => candidate.occurredAt.startsWith(today))
    const rows30 = await table(page, /Active agents per day/)
    expect(rows30).toHaveLength(30)
    const sessions = Number(rows30.at(-1)?.[1])
    expect(
      Math.abs(sessions - new Set(eventsToday.map((candidate) => candidate.sessionId)).size),
    ).toBeLessThanOrEqual(1)
    const months = await table(page, 'Monthly active agents')
    expect(months[0]?.[1]?.replaceAll(/\s+/g, ' ')).toMatch(/^≈ about [0-9]+$/)
    await expectReasons(page)
  })
}, 40_000)

async function expectVendor(page: Page): Promise<void> {
  const dialog = page.getByRole('dialog')
  await dialog.getByText('Operated by OpenAI').waitFor()
  const vendorEvents = matching(sentEvents, { vendor: 'Operator' }, week().since, week().until)
  const visits = vendorEvents.filter(({ type }) => type === 'agent.detected').length
  await dialog
    .locator('.seen div', { hasText: 'Visits in this range' })
    .getByText(`${visits}`, { exact: true })
    .waitFor()
  await dialog.getByText(`${vendorEvents.length} events in this range`).waitFor()
  expect(await dialog.innerText()).toContain(
    `${new Set(vendorEvents.map((candidate) => candidate.sessionId)).size} sessions`,
  )
  const link = dialog.getByRole('link', { name: /^Documentation/ })
  expect(await link.getAttribute('href')).toStartWith('https://openai.com/')
  await dialog.getByRole('button', { name: 'Close' }).click()
  expect(new URL(page.url()).search).toBe('')
}

test('a vendor shows its operator and activity from its link; new events are counted live, and charts follow the theme', async () => {
  await open('/detect?vendor=Operator', async (page) => {
    await expectVendor(page)
    const type = 'agent.detected'
    for (const colorScheme of ['dark', 'light'] as const) {
      await expectHeadline(page, 'Visits', count({ type }))
      await page.getByText('Live', { exact: true }).waitFor()
      const liveEvents = Array.from({ length: 25 }, (_, n) =>
        event(`live-${colorScheme}-${n}`, {
          ...sentEvents[0],
          id: `live-${colorScheme}-${n}`,
          occurredAt: new Date().toISOString(),
        }),
      )
      await send(org.url, key, liveEvents)
      sentEvents = [...sentEvents, ...liveEvents]
      await expectHeadline(page, 'Visits', count({ type }))
      const first = await page
        .locator('.plot canvas')
        .evaluate((canvas) => (canvas as HTMLCanvasElement).toDataURL())
      await page.emulateMedia({ colorScheme })
      await page.waitForFunction(
        (old) => document.querySelector<HTMLCanvasElement>('.plot canvas')?.toDataURL() !== old,
        first,
      )
    }
  })
}, 90_000)

/** A chart of a range without any event says so. */
async function expectNoEvents(page: Page): Promise<void> {
  await goInside(page, '/detect?since=2020-01-01T00:00:00Z&until=2020-01-02T00:00:00Z')
  await page.locator('.chart-panel', { hasText: 'No events in this range.' }).waitFor()
  expect(await page.locator('.stack-chart').count()).toBe(0)
}

test('a bar and a step of the chart link to exactly their events in Logs; a chart without events says so', async () => {
  await open('/detect?range=24h&siteId=blog', async (page) => {
    const day = runningRange(1, Date.now())
    const blogDetections = matching(
      sentEvents,
      { type: 'agent.detected', siteId: 'blog', vendor: 'Operator' },
      day.since,
      day.until,
    )
    await page
      .locator('.bars')
      .filter({ hasText: 'By vendor' })
      .getByRole('link', { name: 'Open vendor Operator in Logs' })
      .click()
    await page.getByRole('heading', { name: 'Logs' }).waitFor()
    await page
      .getByText(`${blogDetections.length} event${blogDetections.length === 1 ? '' : 's'}. End of list.`)
      .waitFor()
    expect(await page.getByRole('button', { name: 'Remove filter vendor Operator' }).count()).toBe(1)
    await page.goBack()
    await page.locator('.stack-chart').focus()
    for (const press of ['End', 'Enter']) await page.keyboard.press(press)
    const last = { since: new Date(Date.parse(day.until) - 3_600_000).toISOString(), until: day.until }
    const stepped = matching(sentEvents, { type: 'agent.detected', siteId: 'blog' }, last.since, last.until)
    await page.getByRole('heading', { name: 'Logs' }).waitFor()
    if (stepped.length === 0) await page.getByText('No matching events').waitFor()
    else await page.getByText(new RegExp(`^${stepped.length} events?\\. End of list`)).waitFor()
    await expectNoEvents(page)
  })
}, 40_000)

test('prerendered pages are never visible and do not change the open page', async () => {
  const atAuthz = async (page: Page): Promise<void> => {
    await page.addInitScript(() => {
      const counts = { drawn: 0, shown: 0 }
      Reflect.set(window, 'rehearsals', counts)
      const hosts = (nodes: Iterable<Node>) => [...nodes].filter((node) => (node as HTMLElement).inert).length
      new MutationObserver((changes) => {
        for (const { addedNodes } of changes) counts.drawn += hosts(addedNodes)
      }).observe(document, { childList: true, subtree: true })
      const frame = (): void => {
        counts.shown += hosts(document.body.childNodes)
        requestAnimationFrame(frame)
      }
      requestAnimationFrame(frame)
    })
    await page.reload()
    // Detect, WebMCP Tools and Logs.
    await page.waitForFunction(() => Reflect.get(window, 'rehearsals').drawn >= 3)
    expect(await page.evaluate(() => Reflect.get(window, 'rehearsals').shown)).toBe(0)
    expect(await page.getByRole('radio', { name: 'decision' }).isChecked()).toBe(true)
    expect(await page.locator('main h1').innerText()).toBe('Authz')
  }
  await open('/authz', atAuthz, { prefetches: true })
}, 90_000)
