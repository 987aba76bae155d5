/** Logs with every filter, search, bars and export, and Sessions as list and timeline, against the posted events. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Page } from 'playwright'
import { closeBrowser, type PageOptions } from '../support/browser.ts'
import { picture } from '../support/picture.ts'
import { newOrganization, type Organization, send, withOwner } from './dashboard-actions.ts'
import {
  waitForHeading,
  expectAccessibleInBothThemes,
  expectNoSidewaysScroll,
  recent,
  goInside,
} from './pages-actions.ts'

let org: Organization
let key: string
const minuteMs = 60_000

/** A session of five events, a second apart. */
const story: Record<string, unknown>[] = [
  recent('s1', { type: 'agent.detected', outcome: 'success', tool: null, policy: null }, 30 * minuteMs),
  recent(
    's2',
    {
      type: 'auth.identity_presented',
      outcome: 'success',
      tool: null,
      policy: null,
      metadata: { protocol: 'web-bot-auth', subject: 'agent.example' },
    },
    30 * minuteMs - 1_000,
  ),
  recent(
    's3',
    { type: 'tool.executed', outcome: 'success', tool: 'cart.add', durationMs: 84, policy: null },
    30 * minuteMs - 2_000,
  ),
  recent('s4', {}, 30 * minuteMs - 3_000),
  recent(
    's5',
    { type: 'tool.executed', outcome: 'error', tool: 'cart.add', error: 'sold out', policy: null },
    30 * minuteMs - 4_000,
  ),
].map((event) => ({ ...event, sessionId: 'sess_story' }))

/** Others, each with a value of its own to filter by. */
const otherEvents = Array.from({ length: 20 }, (_, index) =>
  recent(
    `o${index}`,
    {
      type: 'agent.detected',
      outcome: index % 4 === 0 ? 'blocked' : 'success',
      sessionId: `sess_${index}`,
      siteId: index % 2 === 0 ? 'even' : 'odd',
      tool: index === 7 ? 'needle.tool' : 'hay',
      agent: {
        class: 'crawler',
        trust: 'declared',
        vendor: index < 5 ? 'FewBot' : 'ManyBot',
        userAgent: index === 9 ? 'Deep NEEDLE/1.0' : 'x',
      },
    },
    (index + 2) * 120 * minuteMs,
  ),
)

beforeAll(async () => {
  org = await newOrganization()
  key = org.key
  await send(org.url, key, [...story, ...otherEvents])
}, 120_000)
afterAll(closeBrowser)

const visit = (path: string, name: string, look: (page: Page) => Promise<void>, options: PageOptions = {}) =>
  withOwner(
    `${org.url}${path}`,
    async (page) => {
      await waitForHeading(page, name)
      await look(page)
    },
    options,
  )

/** Waits until the table has this many rows; only those in view are in the document. */
const shown = (page: Page, count: number) =>
  page.locator(`.virtual-rows[aria-rowcount="${count + 1}"]`).waitFor({ timeout: 15_000 })

type Posted = Record<string, unknown>
const member = (event: Posted, field: string, name: string) =>
  (event[field] as { [name: string]: unknown } | null)?.[name]

/** Each filter, and the same condition on the posted events. */
const choices: [string, (event: Posted) => boolean][] = [
  ['agentClass=dom', (event) => member(event, 'agent', 'class') === 'dom'],
  [
    'decision=deny&outcome=blocked',
    (event) => member(event, 'policy', 'decision') === 'deny' && event['outcome'] === 'blocked',
  ],
  ['trust=declared', (event) => member(event, 'agent', 'trust') === 'declared'],
  ['tool=cart.add', (event) => event['tool'] === 'cart.add'],
  ['subject=agent.example', (event) => member(event, 'metadata', 'subject') === 'agent.example'],
  [
    'sessionId=sess_story&sessionId=sess_3',
    (event) => ['sess_story', 'sess_3'].includes(`${event['sessionId']}`),
  ],
]

/** The events of a filter as CSV and as NDJSON. */
async function expectExports(page: Page): Promise<void> {
  await goInside(page, '/logs?siteId=odd')
  await shown(page, 10)
  await page.getByRole('button', { name: 'Export' }).click()
  const expectedIds = otherEvents
    .filter((event) => event['siteId'] === 'odd')
    .map((event) => `${event['id']}`)
  for (const name of ['CSV', 'NDJSON']) {
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name, exact: true }).click(),
    ])
    const text = await Bun.file(await download.path()).text()
    expect(download.suggestedFilename()).toMatch(/^logs-events-\d{4}-\d\d-\d\d\.(csv|ndjson)$/)
    const lines = text.trimEnd().split(/\r?\n/)
    const ids =
      name === 'CSV'
        ? lines.slice(1).map((line) => line.split(',')[0] ?? '')
        : lines.slice(0, -1).map((line) => (JSON.parse(line) as { id: string }).id)
    expect(ids.toSorted()).toEqual(expectedIds.toSorted())
  }
}

test('any field filters alone and combined, from the menu and from the address; an export has exactly these events', async () => {
  await visit('/logs', 'Logs', async (page) => {
    await shown(page, 25)
    await page.getByRole('button', { name: 'Add filter' }).click()
    await page.getByLabel('Field').selectOption('vendor')
    expect(await page.locator('.more-filters option[value="FewBot"]').count()).toBe(1)
    await page.getByLabel('Value').fill('FewBot')
    await page.getByLabel('Value').press('Enter')
    await shown(
      page,
      otherEvents.filter((event) => (event['agent'] as { vendor: string }).vendor === 'FewBot').length,
    )
    await page.getByLabel('Field').selectOption('siteId')
    await page.getByLabel('Value').fill('even')
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    await shown(page, 3)
    expect(new URL(page.url()).search).toBe('?vendor=FewBot&siteId=even')
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Remove filter vendor FewBot' }).click()
    await shown(page, 10)
    await expectAccessibleInBothThemes(page.locator('.filter-bar'))
    let countBefore = 10
    for (const [search, passes] of choices) {
      await goInside(page, `/logs?${search}`)
      const expected = [...story, ...otherEvents].filter(passes).length
      expect(expected).toBeGreaterThan(0)
      expect(expected).not.toBe(countBefore) // or the rows of the filter before would pass
      countBefore = expected
      await shown(page, expected)
      await page.getByText('End of list.').waitFor()
    }
    await expectExports(page)
  })
}, 90_000)

/** A range without a match links to longer ones that have older events. */
async function expectLongerRanges(page: Page): Promise<void> {
  const since = new Date(Date.now() - 3_600_000).toISOString()
  await goInside(page, `/logs?${new URLSearchParams({ q: 'needle', since })}`)
  await page.getByRole('heading', { name: 'No matching events' }).waitFor()
  await expectAccessibleInBothThemes(page.locator('.no-match'))
  await picture(page, 'longer-range')
  await page.locator('.no-match').getByRole('link', { name: 'Last 24 hours' }).click()
  await shown(page, 2)
  expect(new URL(page.url()).searchParams.get('q')).toBe('needle')
  await goInside(page, `/logs?vendor=ManyBot&since=${since}`)
  await page.locator('.no-match').getByRole('link', { name: 'Any time' }).click()
  await shown(page, 15)
  expect(new URL(page.url()).search).toBe('?vendor=ManyBot')
}

test('a search finds text in any field in any case; the bars count the rows; an empty result offers longer ranges', async () => {
  await visit('/logs?since=2020-01-01', 'Logs', async (page) => {
    await shown(page, 25)
    await page.getByText('Live', { exact: true }).waitFor()
    await page.getByLabel('Find text in events').fill('needle')
    await shown(page, 2)
    await page.getByText('Search (not live)').waitFor()
    expect(await page.getByRole('button', { name: 'Pause' }).count()).toBe(0)
    const bars = page.getByRole('region', { name: 'Events over time' })
    await bars.getByText(/^2 events in this range/).waitFor()
    await page.getByLabel('Find text in events').fill('')
    await shown(page, 25)
    await bars.getByText(/^25 events in this range/).waitFor()
    await page.getByLabel('Time', { exact: true }).selectOption('Last hour')
    await shown(page, 5)
    await bars.getByText(/^5 events in this range/).waitFor()
    // The very same events as bars of a whole day: those of the last 24 hours.
    await page.getByLabel('Time', { exact: true }).selectOption('Last 24 hours')
    const since = Date.parse(new URL(page.url()).searchParams.get('since') ?? '')
    const day = [...story, ...otherEvents].filter(
      (event) => Date.parse(`${event['occurredAt']}`) >= since,
    ).length
    await shown(page, day)
    await bars.getByText(new RegExp(`^${day} events in this range`)).waitFor()
    await page.getByRole('group', { name: /one bar per/ }).focus()
    await page.keyboard.press('End')
    await page.keyboard.press('Shift+ArrowLeft')
    await page.keyboard.press('Enter')
    await page.waitForFunction(() => location.search.includes('until='))
    await expectAccessibleInBothThemes(page.getByRole('region', { name: 'Events over time' }))
    await page.goBack()
    await shown(page, day)
    await expectLongerRanges(page)
  })
}, 90_000)

test('each session is listed once with its counts, and its timeline runs from detection to the last call', async () => {
  await visit('/sessions', 'Sessions', async (page) => {
    const table = page.locator('.data-table tbody tr')
    await page.getByText('21 sessions', { exact: true }).waitFor({ timeout: 15_000 })
    const row = table.filter({ hasText: 'sess_story' })
    const cells = await row.locator('td').allInnerTexts()
    expect(cells.slice(3, 8)).toEqual(['4.0 s', '5', '2', '1', '1'])
    await row.click()
    const steps = page.getByRole('region', { name: 'Timeline' }).locator('li')
    await steps.nth(4).waitFor()
    const stepTexts = (await steps.allInnerTexts()).map((text) =>
      text.replaceAll(/\s+/g, ' ').replace(' event', ''),
    )
    expect(stepTexts[0]).toStartWith('0.0 s Detected Operator')
    expect(stepTexts[1]).toBe('+1.0 s Identity web-bot-auth presented detected success agent.example')
    expect(stepTexts[2]).toBe('+2.0 s cart.add ran in 84 ms success')
    expect(stepTexts[3]).toBe('+3.0 s checkout.pay refused by tool:checkout.pay blocked trust below verified')
    expect(stepTexts[4]).toStartWith('+4.0 s cart.add failed')
    await expectAccessibleInBothThemes(page.locator('.session-story'))
    await send(org.url, key, [
      recent('s6', { type: 'tool.executed', outcome: 'success', tool: 'late.call', sessionId: 'sess_story' }),
    ])
    await steps.nth(5).waitFor({ timeout: 10_000 })
    expect(await steps.nth(5).innerText()).toContain('late.call')
    await page.getByRole('link', { name: 'Open in Logs' }).click()
    await shown(page, 6)
  })
}, 90_000)

test('the bars of one filter are never drawn above the rows of another, whichever timer is pending', async () => {
  const timed = (id: string, siteId: string) => recent(id, { tool: 'timed', sessionId: 'sess_timed', siteId })
  await send(org.url, key, [timed('t1', 'left'), timed('t2', 'left'), timed('t3', 'stays')])
  await visit('/logs?since=2020-01-01&tool=timed', 'Logs', async (page) => {
    await shown(page, 3)
    const bars = page.getByRole('region', { name: 'Events over time' })
    await bars.getByText(/^3 events/).waitFor()
    // One arrival sets the timer that counts again; the filter changes before it is due.
    await send(org.url, key, [timed('t4', 'stays')])
    const countedAgainMs = Date.now() + 5_000
    await shown(page, 4)
    await page.evaluate(() => {
      const seenIds: string[] = []
      Reflect.set(window, 'drawnBars', seenIds)
      const look = (): void => {
        const text = document.querySelector('.histogram p')?.textContent ?? ''
        if (location.search.includes('siteId=stays') && text !== seenIds.at(-1)) seenIds.push(text)
      }
      new MutationObserver(look).observe(document.body, {
        subtree: true,
        childList: true,
        characterData: true,
      })
    })
    await page.getByRole('button', { name: 'Add filter' }).click()
    await page.getByLabel('Field').selectOption('siteId')
    await page.getByLabel('Value').fill('stays')
    await page.getByLabel('Value').press('Enter')
    await shown(page, 2)
    await bars.getByText(/^2 events/).waitFor()
    await Bun.sleep(countedAgainMs - Date.now())
    const drawn = await page.evaluate(() => Reflect.get(window, 'drawnBars') as string[])
    expect(drawn.filter((text) => text !== '' && !text.startsWith('2 events'))).toEqual([])
    expect(drawn.some((text) => text.startsWith('2 events'))).toBe(true)
  })
}, 90_000)

test('hostile sessions and filters do not stretch a phone', async () => {
  const evil = `<i>${'s'.repeat(190)}`
  await send(org.url, key, [
    recent('evil', {
      sessionId: evil,
      siteId: `\u202e${'e'.repeat(180)}`,
      agent: {
        vendor: '<img src=x onerror=alert(1)>'.repeat(6),
        class: 'c'.repeat(60),
        trust: 't'.repeat(60),
      },
    }),
  ])
  const viewport = { width: 390, height: 844 }
  await visit(
    `/sessions?session=${encodeURIComponent(evil)}`,
    'Sessions',
    async (page) => {
      await page.locator('.story li').waitFor()
      expect(await page.locator('.session-story img').count()).toBe(0)
      await expectNoSidewaysScroll(page)
      await expectAccessibleInBothThemes(page.locator('.session-story'))
      await goInside(page, '/sessions')
      await page.locator('.data-table tbody tr').first().waitFor()
      await expectNoSidewaysScroll(page)
      await goInside(page, `/logs?sessionId=${encodeURIComponent(evil)}&vendor=${'v'.repeat(200)}`)
      await page.getByRole('heading', { name: 'No matching events' }).waitFor()
      await page.getByRole('button', { name: 'Add filter' }).click()
      await expectNoSidewaysScroll(page)
      await expectAccessibleInBothThemes(page.locator('.filter-bar'))
    },
    { viewport },
  )
}, 90_000)
