/** Ranges by preset and by date, and filters in place: every number equals a count of the posted events. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Page } from 'playwright'
import { closeBrowser } from '../support/browser.ts'
import type { TestEvent } from '../support/events.ts'
import { newOrganization, type Organization, send, withOwner } from './dashboard-actions.ts'
import {
  waitForHeading,
  expectAccessibleInBothThemes,
  expectNoSidewaysScroll,
  numberIn,
  goInside,
} from './pages-actions.ts'
import { pageTraffic } from './pages-traffic.ts'
import { countsRetentionDays } from '../../db/rules/retention-days.ts'

let org: Organization
let sentEvents: TestEvent[]
const dayMs = 24 * 3_600_000
const hostile = '<img src=x onerror=alert(1)>\u202e'.repeat(5).slice(0, 180)

beforeAll(async () => {
  org = await newOrganization()
  const nowMs = Date.now()
  // The same traffic again 60, 200 and 390 days earlier, where only longer ranges reach.
  sentEvents = [0, 60, 200, 390].flatMap((days) =>
    pageTraffic(nowMs - days * dayMs)
      .filter((_, index) => index % (days === 0 ? 1 : 9) === 0)
      .map((event) => ({ ...event, id: `${event.id}-${days}` })),
  )
  sentEvents[3] = {
    ...sentEvents[3]!,
    type: 'agent.detected',
    agent: { ...sentEvents[3]!.agent, vendor: hostile },
    metadata: { ...sentEvents[3]!.metadata, page: '/cart' },
  }
  const key = org.key
  await send(org.url, key, sentEvents.slice(0, 900))
  await send(org.url, key, sentEvents.slice(900))
}, 120_000)
afterAll(closeBrowser)

const visit = (path: string, name: string, look: (page: Page) => Promise<void>, width = 1280) =>
  withOwner(
    `${org.url}${path}`,
    async (page) => {
      page.setDefaultTimeout(12_000)
      await waitForHeading(page, name)
      await page.locator('.headlines strong').first().waitFor()
      await look(page)
    },
    { viewport: { width, height: 900 }, zone: 'Europe/Berlin' },
  )

/** Waits until the first headline equals the number of posted events within the page's own period. */
async function expectFirst(page: Page, path: string, passes: (event: TestEvent) => boolean): Promise<number> {
  const search = new URL(page.url()).searchParams
  search.set('zone', 'Europe/Berlin')
  search.delete('compare')
  const answer = await page.evaluate(async (url) => (await fetch(url)).json(), `/api/${path}?${search}`)
  const { since, until } = (answer as { period: { since: string; until: string } }).period
  const expectedCount = sentEvents.filter(
    (event) => event.occurredAt >= since && event.occurredAt < until && passes(event),
  ).length
  await page
    .locator('.headlines strong')
    .first()
    .getByText(new RegExp(`^${expectedCount.toLocaleString('en-GB')}$`))
    .waitFor()
  return expectedCount
}

const detected = (event: TestEvent) => event.type === 'agent.detected'

/** Dates and times set the range in the address, and an invalid choice is explained. */
async function expectChosenDates(page: Page): Promise<void> {
  await goInside(page, '/detect')
  await page.getByLabel('Range', { exact: true }).selectOption('Choose dates…')
  const dialog = page.getByRole('dialog', { name: 'Choose dates' })
  await dialog.getByText('Europe/Berlin').waitFor()
  const day = (agoDays: number) => new Date(Date.now() - agoDays * dayMs).toISOString().slice(0, 10)
  await dialog.getByLabel('From', { exact: true }).fill(day(2))
  await dialog.getByLabel('From, time (optional)').fill('')
  await dialog.getByLabel('To', { exact: true }).fill(day(4))
  await dialog.getByRole('button', { name: 'Show range' }).click()
  await dialog.getByText('The end must be after the start.').waitFor()
  await expectAccessibleInBothThemes(page.getByRole('dialog'))
  await dialog.getByLabel('From', { exact: true }).fill(day(6))
  await dialog.getByLabel('To, time (optional)').fill('18:00')
  await dialog.getByRole('button', { name: 'Show range' }).click()
  await page.waitForFunction(() => location.search.includes('since='))
  const search = new URL(page.url()).searchParams
  const berlin = (name: string) =>
    new Intl.DateTimeFormat('en-GB', { timeZone: 'Europe/Berlin', timeStyle: 'short' }).format(
      Date.parse(search.get(name) ?? ''),
    )
  expect([berlin('since'), berlin('until')]).toEqual(['00:00', '18:00'])
  await expectFirst(page, 'detect', detected)
  await page.goBack()
  await expectFirst(page, 'detect', detected)
}

test('each range, preset or chosen by date, counts exactly its events and says when it has no earlier period', async () => {
  await visit('/detect?range=24h', 'Detect', async (page) => {
    const range = page.getByLabel('Range', { exact: true })
    const counts: number[] = []
    for (const name of ['Last 24 hours', 'Last 7 days', 'Last 90 days', 'Last 12 months', 'All time']) {
      await range.selectOption(name)
      counts.push(await expectFirst(page, 'detect', detected))
    }
    expect(counts).toEqual(counts.toSorted((a, b) => a - b))
    expect(new Set(counts).size).toBe(5)
    const line = page.locator('.period-line')
    await line
      .getByText(`Counts are stored for ${countsRetentionDays} days. No earlier period to compare with.`)
      .waitFor()
    expect(await page.locator('.headlines .change').count()).toBe(0)
    await page
      .getByText('Visits per week, by class')
      .or(page.getByText(/^Visits per week/))
      .first()
      .waitFor()
    await expectAccessibleInBothThemes(page.locator('.period-line'))
    await expectChosenDates(page)
  })
}, 120_000)

/** Tool, outcome, page and type filter their pages, and parts that cannot be filtered say so. */
async function expectOtherFilters(page: Page): Promise<void> {
  await goInside(page, '/authz?range=90d')
  const isDecision = (event: TestEvent) => event.type === 'authz.evaluated'
  await page
    .getByRole('table', { name: 'By tool' })
    .getByRole('link', { name: 'cart.add', exact: true })
    .click()
  await expectFirst(page, 'authz', (event) => isDecision(event) && event.tool === 'cart.add')
  await goInside(page, '/analytics?range=90d')
  await page
    .getByRole('table', { name: 'Outcomes' })
    .getByRole('link', { name: 'success', exact: true })
    .click()
  const isSuccess = (one: TestEvent) => detected(one) && one.outcome === 'success'
  await expectFirst(page, 'analytics', isSuccess)
  await page
    .locator('.bars')
    .filter({ hasText: 'Pages' })
    .getByRole('link', { name: '/checkout', exact: true })
    .click()
  await expectFirst(page, 'analytics', (event) => isSuccess(event) && event.metadata.page === '/checkout')
  await page.getByText('Logs cannot filter by page.').waitFor()
  await page.getByText('Tool call durations and active agents cannot be filtered.').waitFor()
  await page.getByRole('link', { name: 'Clear filters' }).click()
  await page
    .getByRole('table', { name: 'Types' })
    .getByRole('link', { name: 'tool.executed', exact: true })
    .click()
  await expectFirst(page, 'analytics', (event) => event.type === 'tool.executed')
  await goInside(page, '/analytics?filter=outcome:never')
  await page.getByRole('heading', { name: 'No events in the last 7 days' }).waitFor()
  await page.locator('.nothing-here').getByRole('link', { name: 'Clear filters' }).click()
  await expectFirst(page, 'analytics', detected)
}

test('a click filters every number of a page in place and can be undone; Logs opens with the same events', async () => {
  await visit('/detect?range=30d', 'Detect', async (page) => {
    const detectedCount = await expectFirst(page, 'detect', detected)
    const bars = page.locator('.bars').filter({ hasText: 'By vendor' })
    await bars.getByRole('link', { name: 'GPTBot', exact: true }).click()
    expect(new URL(page.url()).searchParams.getAll('filter')).toEqual(['vendor:GPTBot'])
    const isGpt = (event: TestEvent) => event.agent.vendor === 'GPTBot'
    const gpt = await expectFirst(page, 'detect', (event) => detected(event) && isGpt(event))
    expect(gpt).toBeLessThan(detectedCount)
    await page.locator('.legend').getByRole('link', { name: 'crawler', exact: true }).click()
    const isGptCrawler = (event: TestEvent) => isGpt(event) && event.agent.class === 'crawler'
    const two = await expectFirst(page, 'detect', (event) => detected(event) && isGptCrawler(event))
    expect(new URL(page.url()).searchParams.getAll('filter')).toEqual(['vendor:GPTBot', 'class:crawler'])
    await page.getByRole('link', { name: 'Remove filter class crawler' }).waitFor()
    const table = page.getByRole('table', { name: 'Agents' }).locator('tbody tr')
    await table.filter({ hasText: 'GPTBot' }).first().waitFor()
    expect(await table.count()).toBe(1)
    expect(numberIn(await table.locator('td.number').first().innerText())).toBe(two)
    await expectAccessibleInBothThemes(page.locator('.count-filters'))
    await page.goBack()
    await expectFirst(page, 'detect', (event) => detected(event) && isGpt(event))
    await page.goForward()
    await page.getByRole('link', { name: 'Open vendor GPTBot in Logs' }).first().click()
    await page.getByRole('heading', { name: 'Logs', level: 1 }).waitFor()
    const search = new URL(page.url()).searchParams
    expect([search.getAll('vendor'), search.getAll('agentClass'), search.get('type')]).toEqual([
      ['GPTBot'],
      ['crawler'],
      'agent.detected',
    ])
    const overTime = page.getByRole('region', { name: 'Events over time' })
    await overTime.getByText(new RegExp(`^${two.toLocaleString('en-GB')} events? in this range`)).waitFor()
    await expectOtherFilters(page)
  })
}, 120_000)

test('hostile values stay text in chips and links and do not stretch a phone', async () => {
  await visit(
    `/analytics?range=30d&filter=${encodeURIComponent(`vendor:${hostile}`)}&filter=page:/cart`,
    'Analytics',
    async (page) => {
      expect(await expectFirst(page, 'analytics', (event) => event.agent.vendor === hostile)).toBe(1)
      expect(await page.locator('.counts-page img').count()).toBe(0)
      await expectNoSidewaysScroll(page)
      await expectAccessibleInBothThemes(page.locator('.count-filters'))
    },
    390,
  )
}, 90_000)
