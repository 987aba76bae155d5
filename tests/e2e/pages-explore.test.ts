/** Explore in a real browser: every number equals a count of the posted events, the URL is the state, queries end. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import type { Page } from 'playwright'
import { closeBrowser } from '../support/browser.ts'
import type { TestEvent } from '../support/events.ts'
import { picture } from '../support/picture.ts'
import { newOrganization, type Organization, send, withOwner } from './dashboard-actions.ts'
import {
  expectAccessible,
  expectAccessibleInBothThemes,
  expectNoSidewaysScroll,
  goInside,
  numberIn,
  tabTo,
  waitForHeading,
} from './pages-actions.ts'
import { pageTraffic } from './pages-traffic.ts'

let org: Organization
const hostile = [
  '<img src=x onerror=alert(1)>',
  '\u202eevil\u202c',
  '=cmd|calc',
  'x'.repeat(150),
  '__proto__',
]
const plans = ['pro', 'free', null, ...hostile]
const sentEvents: TestEvent[] = pageTraffic(Date.now()).map((event, n) => ({
  ...event,
  outcome: n % 9 === 0 ? 'error' : event.outcome,
  metadata: { ...event.metadata, plan: plans[n % plans.length], cart: { items: n % 4 }, bytes: n },
}))

beforeAll(async () => {
  org = await newOrganization()
}, 120_000)
afterAll(closeBrowser)

const explore = (search: string, look: (page: Page) => Promise<void>, width = 1440) =>
  withOwner(
    `${org.url}/analytics/explore${search}`,
    async (page) => {
      page.setDefaultTimeout(12_000)
      await waitForHeading(page, 'Analytics')
      await look(page)
    },
    { viewport: { width, height: 900 }, zone: 'Europe/Berlin' },
  )

const table = (page: Page, name: string | RegExp) => page.getByRole('table', { name })

/** The cells of the table, as shown. */
async function shownRows(page: Page, name: string | RegExp): Promise<string[][]> {
  await table(page, name).waitFor()
  return table(page, name)
    .locator('tbody tr')
    .evaluateAll((rows) =>
      rows.map((row) => [...(row as HTMLTableRowElement).cells].map((cell) => cell.textContent ?? '')),
    )
}

/** The posted events within the page's own period. */
async function inPeriod(page: Page): Promise<TestEvent[]> {
  const search = new URL(page.url()).searchParams
  for (const parameter of ['view', 'filter']) search.delete(parameter)
  search.set('zone', 'Europe/Berlin')
  const answer = await page.evaluate(async (url) => (await fetch(url)).json(), `/api/explore?${search}`)
  const { since, until } = (answer as { period: { since: string; until: string } }).period
  return sentEvents.filter((event) => event.occurredAt >= since && event.occurredAt < until)
}

function countBy(events: TestEvent[], keyOf: (event: TestEvent) => unknown): Map<string, number> {
  const counts = new Map<string, number>()
  for (const event of events) {
    const value = keyOf(event)
    const key = value === null || value === undefined ? '(none)' : String(value)
    counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  return counts
}

test('without events it says what to do', async () => {
  await explore('', async (page) => {
    await page.getByRole('heading', { name: 'No events yet' }).waitFor()
    await expectAccessibleInBothThemes(page)
    await picture(page, 'explore-empty')
  })
  await send(org.url, org.key, sentEvents)
}, 90_000)

test('the controls change the URL, and each shows exactly the posted events', async () => {
  await explore('?range=30d', async (page) => {
    await page.locator('.stack-chart').waitFor()
    await page.getByRole('heading', { name: 'Events per 6 hours, by vendor' }).waitFor()
    await picture(page, 'explore-bars')
    await expectAccessibleInBothThemes(page)
    await page.getByLabel('Table', { exact: true }).check({ force: true })
    const events = await inPeriod(page)
    const vendors = countBy(events, (event) => event.agent.vendor)
    const rows = await shownRows(page, 'Events by vendor')
    expect(new Map(rows.map(([name = '', number = '']) => [name, numberIn(number)]))).toEqual(vendors)
    const heads = await table(page, 'Events by vendor').getByRole('columnheader').allInnerTexts()
    expect(heads.map((head) => head.trim())).toEqual(['Vendor', 'Events ↓', 'Share'])
    await page.getByLabel('Measure').selectOption('Errors')
    await page.getByText('events with outcome error').waitFor()
    const errors = countBy(
      events.filter(({ outcome }) => outcome === 'error'),
      (event) => event.agent.vendor,
    )
    const wrong = await shownRows(page, 'Errors by vendor')
    expect(new Map(wrong.map(([name = '', number = '']) => [name, numberIn(number)]))).toEqual(errors)
    await page.locator('th[aria-sort=descending]', { hasText: 'Errors' }).waitFor()
    await page.getByLabel('Measure').selectOption('Sessions')
    const [first] = await shownRows(page, 'Sessions by vendor')
    const ofFirst = events.filter((event) => event.agent.vendor === first?.[0])
    expect(numberIn(first?.[1] ?? '')).toBe(new Set(ofFirst.map(({ sessionId }) => sessionId)).size)
    expect(new URL(page.url()).search).toBe('?range=30d&view=table&measure=sessions')
    await page.goBack()
    await table(page, 'Errors by vendor').waitFor()
    await page.reload()
    expect(await shownRows(page, 'Errors by vendor')).toEqual(wrong)
    await page.getByLabel('Measure').selectOption('p95 duration')
    await page.getByLabel('Lines', { exact: true }).check({ force: true })
    await page.getByText('accurate to 2 %').waitFor()
    expect(await page.getByLabel('Bars', { exact: true }).count()).toBe(0)
    await picture(page, 'explore-lines')
    await expectAccessible(page)

    // The step of a single event is as wide as any other, though no step beside it has a value.
    await goInside(page, '/analytics/explore?range=30d&measure=p95&filter=metadata.bytes:500')
    await page.waitForFunction(() => document.querySelectorAll('.legend li').length === 1)
    expect(await lineWidth(page)).toBeGreaterThan(4)

    // Many values in one row are no value: they follow the others, also where they have the highest number.
    await goInside(page, '/analytics/explore?range=30d&view=table&by=metadata.bytes')
    await page.reload()
    const numbers = (await shownRows(page, 'Events by metadata.bytes')).map(([name]) => name)
    expect(numbers.findIndex((name) => name?.endsWith('others)'))).toBe(numbers.length - 1)
    expect(numbers.length).toBe(11)
  })
}, 90_000)

test('Tab reaches the measure, the view and the chart, whose steps open Logs', async () => {
  await explore('?range=30d', async (page) => {
    await page.getByRole('heading', { name: 'Events per 6 hours, by vendor' }).waitFor()
    await tabTo(page, 'Measure')
    await page.keyboard.press('ArrowDown')
    await page.getByRole('heading', { name: 'Errors per 6 hours, by vendor' }).waitFor()
    await tabTo(page, 'Bars')
    await page.keyboard.press('ArrowRight')
    await page.waitForURL(/view=lines/)
    const keys =
      'Arrow keys move between steps. Shift and arrow keys select a range. Enter applies it or opens Logs.'
    await tabTo(page, `Errors per 6 hours, by vendor. ${keys}`)
    await page.keyboard.press('End')
    await page.keyboard.press('Enter')
    await waitForHeading(page, 'Logs')
    expect(new URL(page.url()).searchParams.get('since')).not.toBeNull()
  })
}, 60_000)

test('any member of the metadata, by keyboard alone, with hostile values, filters and files', async () => {
  await explore('?range=30d&view=table&rows=20', async (page) => {
    const byField = page.getByLabel('By', { exact: true })
    await byField.focus()
    await byField.selectOption('Metadata…')
    await page.keyboard.type('plan')
    await page.keyboard.press('Enter')
    const rows = await shownRows(page, 'Events by metadata.plan')
    const events = await inPeriod(page)
    const counts = countBy(events, ({ metadata }) => (metadata as { plan?: unknown }).plan)
    expect(rows.map(([, number = '']) => numberIn(number)).sort()).toEqual([...counts.values()].sort())
    expect(rows.find(([name]) => name === 'pro')?.[1]).toBe(`${counts.get('pro')}`)
    expect(rows.find(([name]) => name === '(no metadata.plan)')?.[1]).toBe(`${counts.get('(none)')}`)
    expect(await page.locator('main img').count()).toBe(0)
    await expectAccessibleInBothThemes(page)
    await picture(page, 'explore-hostile-dark')
    await page.emulateMedia({ colorScheme: 'light' })
    await picture(page, 'explore-hostile')
    const saved = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Save as CSV' }).click()
    const file = readFileSync(await (await saved).path(), 'utf8')
    expect((await saved).suggestedFilename()).toMatch(/^explore-events-by-metadata-plan-.*\.csv$/)
    expect(file.split('\n')[0]).toBe('\ufeffmetadata.plan,Events,"Share, %"')
    expect(file).toContain(`\npro,${counts.get('pro')},`)
    expect(file).toContain("\n'=cmd|calc,")
    expect(file.trim().split('\n').length).toBe(rows.length + 1)
    await page.getByRole('link', { name: 'pro', exact: true }).click()
    await page.getByRole('link', { name: 'Remove filter metadata.plan pro' }).waitFor()
    await page.waitForFunction(() => document.querySelectorAll('.data-table tbody tr').length === 1)
    const only = await shownRows(page, 'Events by metadata.plan')
    expect(only.map(([name, number]) => [name, number])).toEqual([['pro', `${counts.get('pro')}`]])
    await page.getByLabel('Filter by', { exact: true }).selectOption('outcome')
    await page.getByLabel('Filter value').fill('error')
    await page.keyboard.press('Enter')
    const failed = events.filter(
      (event) => (event.metadata as { plan?: unknown }).plan === 'pro' && event.outcome === 'error',
    )
    await page.waitForFunction(
      (expected) => document.querySelector('.data-table tbody td.number')?.textContent === expected,
      `${failed.length}`,
    )
    await page.getByRole('link', { name: 'Clear filters' }).click()
    await page.getByLabel('Filter by', { exact: true }).selectOption('Text…')
    await page.getByLabel('Filter value').fill('CMD|')
    await page.keyboard.press('Enter')
    await page.getByRole('link', { name: 'Remove filter text CMD|' }).waitFor()
    await page.waitForFunction(() => document.querySelectorAll('.data-table tbody tr').length === 1)
    const tableRows = await shownRows(page, 'Events by metadata.plan')
    expect(tableRows.map(([name, number]) => [name, number])).toEqual([
      ['=cmd|calc', `${counts.get('=cmd|calc')}`],
    ])
  })
}, 90_000)

test('a chart is saved as shown, and a view opens where it was saved', async () => {
  await explore('?range=30d&by=metadata.cart.items', async (page) => {
    await page.locator('.stack-chart').waitFor()
    const saved = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Save as CSV' }).click()
    const lines = readFileSync(await (await saved).path(), 'utf8')
      .trimEnd()
      .split('\n')
    expect(lines[0]).toBe(
      '\ufeff"Time, Europe/Berlin",0,1,2,3'.replace('0,1,2,3', (await legend(page)).join(',')),
    )
    const cells = lines.slice(1).flatMap((line) => line.split(',').slice(1).map(Number))
    expect(cells.reduce((sum, count) => sum + count, 0)).toBe((await inPeriod(page)).length)
    await page.locator('.legend').getByRole('link', { name: '3', exact: true }).click()
    await page.getByRole('link', { name: 'Remove filter metadata.cart.items 3' }).click()
    await page.getByRole('button', { name: 'Saved views' }).click()
    await page.getByLabel('Save these settings as').fill('Carts by size')
    await page.getByRole('button', { name: 'Save view' }).click()
    await page.getByRole('link', { name: 'Carts by size' }).waitFor()
    await picture(page, 'explore-views')
    await goInside(page, '/logs')
    await waitForHeading(page, 'Logs')
    await page.keyboard.press('Control+k')
    await page.keyboard.type('Carts by')
    await page.getByText('Carts by size').first().waitFor()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Events per 6 hours, by metadata.cart.items' }).waitFor()
    expect(new URL(page.url()).searchParams.get('measure')).toBe('events')
    await goInside(page, '/logs')
    await page.getByRole('button', { name: 'Saved views' }).click()
    await page.getByText('No saved views yet.').waitFor()
  })
}, 90_000)

/** Of what is drawn in colour: the line, because the axes are grey. */
function lineWidth(page: Page): Promise<number> {
  return page.locator('.stack-chart canvas').evaluate((canvas: HTMLCanvasElement) => {
    const { data, width } = canvas.getContext('2d')!.getImageData(0, 0, canvas.width, canvas.height)
    const columns = new Set<number>()
    for (let offset = 0; offset < data.length; offset += 4) {
      const colours = [...data.subarray(offset, offset + 3)]
      const isColoured = Math.max(...colours) - Math.min(...colours) > 60
      if (isColoured && data[offset + 3]! > 100) columns.add((offset / 4) % width)
    }
    return columns.size
  })
}

async function legend(page: Page): Promise<string[]> {
  return page.locator('.legend li').allTextContents()
}

test('a query shows its progress and can be cancelled; a wrong link is explained', async () => {
  await explore('?range=30d', async (page) => {
    await page.locator('.stack-chart').waitFor()
    process.kill(org.appliance.pid, 'SIGSTOP')
    try {
      await page.getByLabel('Measure').selectOption('Tokens')
      await page.getByRole('progressbar', { name: 'Query progress' }).waitFor()
      await picture(page, 'explore-progress')
      await page.getByRole('button', { name: 'Cancel' }).click()
      await page.getByText('Query cancelled.').waitFor()
    } finally {
      process.kill(org.appliance.pid, 'SIGCONT')
    }
    await page.getByRole('button', { name: 'Run again' }).click()
    await page.getByRole('heading', { name: 'No tokens in the last 30 days' }).waitFor()
    await expectAccessible(page)
  })
  await withOwner(
    `${org.url}/analytics/explore?filter=nothing`,
    async (page) => {
      await page.getByText('filter must be NAME:VALUE').waitFor()
      await page.getByRole('link', { name: 'Reset' }).click()
      await page.locator('.stack-chart').waitFor()
    },
    { allow: [/400/] },
  )
}, 90_000)

test('on a phone nothing is stretched', async () => {
  await explore(
    '?range=30d&by=metadata.plan',
    async (page) => {
      await page.locator('.stack-chart').waitFor()
      await expectNoSidewaysScroll(page)
      await picture(page, 'explore-phone')
      await expectAccessibleInBothThemes(page)
      await picture(page, 'explore-phone-dark')
      await page.getByLabel('Table', { exact: true }).check({ force: true })
      await table(page, 'Events by metadata.plan').waitFor()
      await expectNoSidewaysScroll(page)
      await page.getByRole('button', { name: 'Saved views' }).click()
      await expectNoSidewaysScroll(page)
      await picture(page, 'explore-phone-views')
    },
    390,
  )
}, 60_000)
