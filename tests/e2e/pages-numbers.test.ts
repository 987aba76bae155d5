/** The same label shows the same number everywhere in the dashboard, in its files and in the API. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import type { Page } from 'playwright'
import { measures, pageMeasures } from '../../web/text/measures.ts'
import { closeBrowser } from '../support/browser.ts'
import { event, type TestEvent } from '../support/events.ts'
import { newOrganization, type Organization, send, withOwner } from './dashboard-actions.ts'
import { expectNoSidewaysScroll, numberIn, goInside, waitForHeading } from './pages-actions.ts'

let org: Organization
let secret: string
const vendors = 640 // more than a page has rows for

const pick = <T>(list: readonly T[], n: number): T => list[n % list.length] as T
const hourMs = 3_600_000

/** Events of every type, over 45 days, most of them recent. Fields are missing, unusual, or many. */
function traffic(nowMs: number): TestEvent[] {
  const types = [
    measures.visits.type,
    ...pageMeasures.map(({ type }) => type),
    'agent.missed',
    'auth.identity_cleared',
    'shop.sold',
  ]
  const names = ['GPTBot', 'constructor', '__proto__', '=HYPERLINK("x")', 'a,"b"\n', '\u202eevil', null]
  return Array.from({ length: 3_900 }, (_, n) => {
    const ago = Math.floor((((n * 7_919) % 3_900) / 3_900) ** 3 * 45 * 24 * hourMs)
    const vendor = n % 3 === 0 ? `vendor ${(n * 31) % vendors}` : pick(names, n >> 1)
    return event(`n${n}`, {
      occurredAt: new Date(nowMs - 1_000 - ago).toISOString(),
      siteId: pick(['blog', 'shop', 'shop'], n >> 3),
      sessionId: `session-${n % 700}`,
      type: pick(types, n),
      outcome: pick(['success', 'blocked', 'error', 'timeout'], n >> 4),
      tool: n % 5 === 0 ? null : pick(['cart.add', 'pay', 'toString'], n >> 3),
      agent: { class: pick(['crawler', 'dom', null], n >> 2), trust: 'detected', vendor },
      policy:
        n % 7 < 2 ? null : { decision: pick(['allow', 'deny', 'review', 'later'], n >> 6), ruleId: 'r' },
      metadata: { page: '/', protocol: n % 6 === 0 ? null : pick(['oauth2', 'bearer'], n >> 5) },
    })
  })
}

beforeAll(async () => {
  org = await newOrganization()
  const key = org.key
  const sentEvents = traffic(Date.now())
  for (let offset = 0; offset < sentEvents.length; offset += 1_000)
    await send(org.url, key, sentEvents.slice(offset, offset + 1_000))
  secret = await org.makeKey('secret', 'law')
}, 120_000)
afterAll(closeBrowser)

interface Metrics {
  total: number
  byType: { [type: string]: number }
  rows: { type: string; outcome: string; count: number }[]
}

/** The counts of the gateway over the range of the page, which its address states to the hour. */
async function metricsOf(page: Page, search: string): Promise<Metrics> {
  const { period } = await page.evaluate(
    async (query) => (await (await fetch(`/api/totals${query}`)).json()) as { period: Period },
    search,
  )
  const params = new URLSearchParams({ since: period.since, until: period.until })
  for (const siteId of period.siteIds) params.append('siteId', siteId)
  const answer = await fetch(`${org.url}/v1/metrics?${params}`, {
    headers: { authorization: `Bearer ${secret}` },
  })
  return (await answer.json()) as Metrics
}

interface Period {
  since: string
  until: string
  siteIds: string[]
}

async function goTo(page: Page, path: string, search: string): Promise<void> {
  await goInside(page, path + search)
  await waitForPage(page, path)
}

async function waitForPage(page: Page, path: string): Promise<void> {
  await waitForHeading(page, pages.find((entry) => entry.path === path)?.name ?? 'Analytics')
  await page.locator('.headlines strong').first().waitFor()
  await page.locator('.page:not([aria-busy="true"])').waitFor()
}

async function headlines(page: Page): Promise<{ [name: string]: number }> {
  const lines = await page
    .locator('.headlines > div')
    .evaluateAll((elements) =>
      elements.map((line) => [
        line.querySelector('dt span')?.textContent ?? '',
        line.querySelector('strong')?.textContent ?? '',
      ]),
    )
  return Object.fromEntries(lines.map(([name, value]) => [name, numberIn(value ?? '')]))
}

async function inNavigation(page: Page, name: string): Promise<number> {
  const link = page.locator('.navigation.wide').getByRole('link', { name, exact: true })
  return numberIn(await link.locator('small').innerText())
}

/** The file that a table gives: its name, and its cells by the names of its columns. */
async function csvOf(
  page: Page,
  table: string,
): Promise<{ name: string; rows: { [column: string]: string }[] }> {
  const panel = page.locator('.data-panel', { has: page.getByRole('heading', { name: table, exact: true }) })
  const saved = page.waitForEvent('download')
  await panel.getByRole('button', { name: 'Save as CSV' }).click()
  const file = await saved
  const [head = [], ...rows] = cells(readFileSync(await file.path(), 'utf8').replace('\ufeff', ''))
  const records = rows.map((row) =>
    Object.fromEntries(head.map((column, index) => [column, row[index] ?? ''])),
  )
  return { name: file.suggestedFilename(), rows: records }
}

/** Records of a CSV whose lines end with LF alone. */
function cells(text: string): string[][] {
  const rows: string[][] = [['']]
  let quoted = false
  for (const sign of text) {
    const row = rows.at(-1)!
    if (sign === '"') quoted = !quoted
    else if (sign === ',' && !quoted) row.push('')
    else if (sign === '\n' && !quoted) rows.push([''])
    else row[row.length - 1] += sign
  }
  expect(rows.pop()).toEqual([''])
  return rows
}

const sum = (rows: { [column: string]: string }[], column: string): number =>
  rows.reduce((total, row) => total + Number(row[column]), 0)

const pages = [
  {
    path: '/detect',
    name: 'Detect',
    measure: { ...measures.visits, type: 'agent.detected' },
    tables: ['Agents'],
  },
  { path: '/auth', name: 'Auth', measure: pageMeasures[0]!, tables: ['Protocols', 'Vendors'] },
  {
    path: '/authz',
    name: 'Authz',
    measure: pageMeasures[1]!,
    tables: ['Decisions by outcome', 'By tool', 'By rule', 'By vendor'],
  },
  { path: '/tools', name: 'WebMCP Tools', measure: pageMeasures[2]!, tables: ['Tools'] },
  { path: '/knaph', name: 'Knaph', measure: pageMeasures[3]!, tables: [] },
]

/** Until it is counted again, a page shows the numbers of the range before. */
async function waitForCount(page: Page, name: string, count: number): Promise<void> {
  const line = page.locator('.headlines > div').filter({ has: page.getByText(name, { exact: true }) })
  const shown = new RegExp(`^${count.toLocaleString('en-GB')}$`)
  await line.locator('strong', { hasText: shown }).waitFor()
}

async function expectOneCount(page: Page, search: string): Promise<void> {
  const metrics = await metricsOf(page, search)
  // No site has requests, so visits are the unit. The number of events is one of Logs and Explore only.
  await waitForCount(page, 'Visits', metrics.byType['agent.detected'] ?? 0)
  const analytics = await headlines(page)
  expect(Object.keys(analytics)).not.toContain('Events')
  const types = await csvOf(page, 'Types')
  expect(types.name).toMatch(/^analytics-types-\d{4}-\d\d-\d\d--\d{4}-\d\d-\d\d\.csv$/)
  expect(sum(types.rows, 'Count')).toBe(metrics.total)
  for (const { path, name, measure, tables } of pages) {
    await goTo(page, path, search)
    const counted = metrics.byType[measure.type] ?? 0
    expect(counted).toBeGreaterThan(0)
    await waitForCount(page, measure.name, counted)
    expect([name, (await headlines(page))[measure.name]]).toEqual([name, counted])
    expect([name, analytics[measure.name]]).toEqual([name, counted])
    expect([name, await inNavigation(page, name)]).toEqual([name, counted])
    for (const title of tables) {
      const table = await csvOf(page, title)
      expect([title, sum(table.rows, measure.name)]).toEqual([title, counted])
      expect(table.name).toMatch(/^[a-z]+-[a-z-]+-\d{4}-\d\d-\d\d--\d{4}-\d\d-\d\d\.csv$/)
    }
  }
}

test('the navigation, the head of each page, Analytics, CSV files and the gateway count the same in each range', async () => {
  const inRanges = async (page: Page): Promise<void> => {
    for (const search of ['', '?range=24h', '?range=30d&siteId=blog']) {
      await goTo(page, '/analytics', search)
      await expectOneCount(page, search)
    }
  }
  await withOwner(`${org.url}/settings`, inRanges)
}, 120_000)

test('a CSV file has more rows than the page; decisions, outcomes and trust each add up; the range stays', async () => {
  await withOwner(`${org.url}/detect?range=30d`, async (page) => {
    await waitForPage(page, '/detect')
    const agents = await csvOf(page, 'Agents')
    const vendorNames = new Set(agents.rows.map(({ Vendor }) => Vendor))
    expect(vendorNames.size).toBe(agents.rows.length)
    expect((await headlines(page))['Vendors detected']).toBe(agents.rows.length - 1) // one row has no vendor
    expect(vendorNames).toContain('(no vendor)')
    expect(vendorNames).toContain(`'=HYPERLINK(x)`)
    expect(Object.keys(agents.rows[0]!)).toContain('Share, %')

    await goTo(page, '/authz', '?range=30d')
    const lines = await headlines(page)
    expect(lines['Allowed']! + lines['Denied']! + lines['For review']! + lines['Other or none']!).toBe(
      lines['Decisions']!,
    )
    const { rows } = await csvOf(page, 'Decisions by outcome')
    expect(sum(rows, 'blocked')).toBe(lines['Blocked']!)
    const byDecision = Object.fromEntries(rows.map((row) => [row['Decision'], Number(row['Decisions'])]))
    for (const name of ['Allowed', 'Denied', 'For review', 'Other or none'])
      expect([name, byDecision[name]]).toEqual([name, lines[name]])
    const denials = await csvOf(page, 'Newest denials')
    expect(denials.rows).toHaveLength(lines['Denied']!)
    expect(denials.rows.length).toBeGreaterThan(50) // what the page shows

    await goTo(page, '/detect', '?range=7d')
    const bars = page.locator('.bars').filter({ hasText: 'By highest trust in session' })
    await bars.waitFor()
    const numbers = await bars.locator('li b').allInnerTexts()
    const grandTotal = numbers.reduce((total, text) => total + numberIn(text), 0)
    expect(grandTotal).toBe((await headlines(page))['Visits']!)

    await goTo(page, '/detect', '?range=24h')
    await expectRangeKept(page)
  })
}, 120_000)

/** The navigation names its range and keeps it on other pages. */
async function expectRangeKept(page: Page): Promise<void> {
  const navigation = page.locator('.navigation.wide')
  await navigation.getByText('24 hours').waitFor()
  const counted = await inNavigation(page, 'Detect')
  await navigation.getByRole('link', { name: 'Settings' }).click()
  await page.getByRole('heading', { name: 'Settings', level: 1 }).waitFor()
  expect(await inNavigation(page, 'Detect')).toBe(counted)
  await navigation.getByText('24 hours').waitFor()
  const title = await navigation.getByRole('link', { name: 'Detect' }).locator('small').getAttribute('title')
  expect(title).toBe(`${counted.toLocaleString('en-GB')} visits in the last 24 hours, all sites`)
}

test('on a phone every number is whole, in one or two columns', async () => {
  const onPhone = async (page: Page): Promise<void> => {
    for (const path of ['/detect', '/auth', '/authz', '/analytics', '/tools', '/knaph']) {
      await goTo(page, path, '')
      for (const width of [390, 320]) {
        await page.setViewportSize({ width, height: 844 })
        // A test cannot send a billion events, so their digits replace the page's own.
        const layout = await page.locator('.headlines').evaluate((list) => {
          for (const number of list.querySelectorAll('strong'))
            (number.querySelector('a') ?? number).textContent = '1,234,567,890'
          const lines = [...list.children] as HTMLElement[]
          const outer = list.getBoundingClientRect()
          const inside = (box: DOMRect) => box.left >= outer.left - 0.5 && box.right <= outer.right + 0.5
          return {
            columns: new Set(lines.map((line) => Math.round(line.getBoundingClientRect().left))).size,
            clipped: lines
              .flatMap((line) => [line, ...line.querySelectorAll<HTMLElement>('strong, dt, small')])
              .filter(
                (element) =>
                  element.scrollWidth > element.clientWidth + 1 || !inside(element.getBoundingClientRect()),
              )
              .map((element) => element.innerText),
          }
        })
        expect([path, width, layout.clipped]).toEqual([path, width, []])
        expect([path, width, layout.columns <= 2]).toEqual([path, width, true])
        await expectNoSidewaysScroll(page)
      }
    }
  }
  await withOwner(`${org.url}/settings`, onPhone, { viewport: { width: 390, height: 844 } })
}, 60_000)
