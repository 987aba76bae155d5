/** Every page on paper: each table whole, nothing cut off, the frame left out, dark ink on white. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Page } from 'playwright'
import { closeBrowser } from '../support/browser.ts'
import { picture } from '../support/picture.ts'
import { event } from '../support/events.ts'
import { newOrganization, type Organization, send, withOwner } from './dashboard-actions.ts'
import { push, goInside } from './pages-actions.ts'

const vendors = 70 // more than a table shows on the screen
const types = [
  'agent.detected',
  'authz.evaluated',
  'auth.identity_presented',
  'tool.executed',
  'memory.accessed',
]

let org: Organization
beforeAll(async () => {
  org = await newOrganization()
  const key = org.key
  const events = Array.from({ length: vendors * types.length }, (_, n) =>
    event(`p${n}`, {
      type: types[n % types.length],
      sessionId: `session-${n % vendors}`,
      occurredAt: new Date(Date.now() - n * 1_000).toISOString(),
      agent: { class: 'dom', trust: 'detected', vendor: `Vendor ${Math.floor(n / types.length)}` },
      tool: `tool-${Math.floor(n / types.length)}`,
    }),
  )
  await send(org.url, key, events)
  const snapshot = { siteMap: { pages: [{ path: '/', name: 'Home' }] }, policies: { returns: 'No.' } }
  for (const siteId of ['one', 'two']) await push(org.url, key, 'memory', { siteId, snapshot })
}, 120_000)
afterAll(closeBrowser)

/** Elements that cut off their content: nobody can scroll on paper. */
const cutOff = (page: Page) =>
  page.locator('main *').evaluateAll((elements) =>
    elements
      .filter((element) => {
        const { overflowY, display } = getComputedStyle(element)
        if (overflowY === 'visible' || display === 'inline' || element.clientHeight === 0) return false
        return (
          element.scrollHeight > element.clientHeight + 2 &&
          element.closest('.u-wrap, .visually-hidden') === null
        )
      })
      .map((element) => `${element.className} ${element.scrollHeight} > ${element.clientHeight}`),
  )

const wholeTables: { [path: string]: [table: string, rows: number][] } = {
  '/detect': [['Agents', vendors]],
  '/auth': [],
  '/authz': [],
  '/analytics': [['Types', types.length]],
  '/tools': [['Tools', vendors]],
  '/knaph': [['Sites', 2]],
  '/sessions': [['Sessions', 30]], // the first page of them
  '/webhooks': [],
  '/settings/ingest-keys': [],
}

test('every page but Logs is whole on paper, without the frame, in dark ink', async () => {
  const printAll = async (page: Page): Promise<void> => {
    for (const [path, tables] of Object.entries(wholeTables)) {
      await goInside(page, path)
      await page.waitForFunction(
        (prefix) => document.querySelector(`nav [aria-current][href^="${prefix}"]`),
        path,
      )
      await expectWholeOnPaper(page, path, tables)
      await page.emulateMedia({ media: 'screen' })
    }
  }
  await withOwner(`${org.url}/settings`, printAll, { colorScheme: 'dark' })
}, 120_000)

async function expectWholeOnPaper(page: Page, path: string, tables: [string, number][]): Promise<void> {
  await page.locator('main .panel, .settings-section').first().waitFor()
  for (const [name] of tables) await page.getByRole('table', { name, exact: true }).waitFor()
  await page.emulateMedia({ media: 'print' })
  await page.locator('.navigation.wide').waitFor({ state: 'hidden' })
  for (const [name, count] of tables) {
    const rows = page.getByRole('table', { name, exact: true }).locator('tbody tr')
    await rows.nth(count - 1).waitFor()
    expect(await rows.count()).toBeGreaterThanOrEqual(count)
  }
  expect([path, await page.locator('.range-controls').filter({ visible: true }).count()]).toEqual([path, 0])
  if (path === '/detect') expect(await page.locator('.headlines').isVisible()).toBe(true)
  expect([path, await cutOff(page)]).toEqual([path, []])
  // The page learns of the paper in the next frame.
  await page.waitForFunction(
    (title) => {
      const channels = (getComputedStyle(title).color.match(/[0-9.]+/g) ?? []).slice(0, 3).map(Number)
      return channels.length === 3 && Math.max(...channels) < 90
    },
    await page.locator('main h1').elementHandle(),
  )
  if (path === '/detect') await picture(page, 'print')
  const pdf = await page.pdf()
  expect([path, /\/Type \/Page\b/.test(pdf.toString('latin1'))]).toEqual([path, true])
}

test('Logs prints every loaded event on as many sheets as needed', async () => {
  await withOwner(`${org.url}/logs`, async (page) => {
    await page.locator('.event-row').nth(10).waitFor()
    const shown = await page.locator('.event-row').count()
    await page.emulateMedia({ media: 'print' })
    await page.locator('.event-row').nth(99).waitFor()
    expect(await page.locator('.event-row').count()).toBeGreaterThan(shown)
    expect(await cutOff(page)).toEqual([])
    const sheets = (await page.pdf()).toString('latin1').match(/\/Type \/Page\b/g)?.length
    expect(sheets).toBeGreaterThan(2)
    await page.emulateMedia({ media: 'screen' })
    await page.locator('.event-row').nth(99).waitFor({ state: 'detached' })
  })
}, 40_000)
