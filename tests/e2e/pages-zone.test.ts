/** Every time on a page is in one zone, the browser's or the chosen one, and named: rows, charts, chips, files. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Page } from 'playwright'
import { closeBrowser, setZone, withPage } from '../support/browser.ts'
import { event } from '../support/events.ts'
import { newOrganization, type Organization, owner, send } from './dashboard-actions.ts'
import {
  waitForHeading,
  expectAccessibleInBothThemes,
  expectNoSidewaysScroll,
  goInside,
} from './pages-actions.ts'

let org: Organization
const hourMs = 3_600_000
/** At 22:30 UTC of three days ago: another date east of there. */
const lateMs = Math.floor(Date.now() / (24 * hourMs)) * 24 * hourMs - 3 * 24 * hourMs + 22.5 * hourMs
const occurredAt = new Date(lateMs).toISOString()

beforeAll(async () => {
  org = await newOrganization()
  const types = ['agent.detected', 'authz.evaluated']
  await send(
    org.url,
    org.key,
    types.map((type) => event(type, { type, outcome: 'blocked', sessionId: 'sess_late', occurredAt })),
  )
}, 120_000)
afterAll(closeBrowser)

/** A page whose zone a test sets: a context of its own for each zone costs as much as two loads. */
async function inZones(
  look: (page: Page, use: (zone: string) => Promise<unknown>) => Promise<void>,
): Promise<void> {
  const visit = async (page: Page): Promise<void> => {
    page.setDefaultTimeout(10_000)
    await look(page, (zone) => setZone(page, zone))
  }
  await withPage(`${org.url}/healthz`, visit, { as: owner })
}

async function load(page: Page, path: string, name: string): Promise<void> {
  await page.goto(org.url + path)
  await waitForHeading(page, name)
}

/** "22 Nov" and "23:30" of the event in a zone, formatted by the runtime and not by the tested code. */
function clock(timeZone: string): { day: string; time: string } {
  const formatDate = (options: Intl.DateTimeFormatOptions) =>
    new Intl.DateTimeFormat('en-GB', { timeZone, ...options }).format(lateMs)
  return {
    day: formatDate({ day: 'numeric', month: 'short' }),
    time: formatDate({ hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }),
  }
}

/** Rows, chips, bars and charts. */
async function expectZone(page: Page, zone: string): Promise<void> {
  const { day, time } = clock(zone)
  await page.getByRole('row').getByText(`${day} ${time}:00`).first().waitFor()
  await page.getByRole('button', { name: `Remove filter since ${day} ${time}` }).waitFor()
  const bars = page.getByRole('region', { name: 'Events over time' })
  await bars.getByText(zone, { exact: true }).waitFor()
  expect(await page.getByLabel('Time zone').last().inputValue()).toBe(zone)
  await goInside(page, '/sessions')
  await page
    .locator('.data-table time', { hasText: `${day} ${time}` })
    .first()
    .waitFor()
  if (zone === 'Asia/Kathmandu') await expectSavedIn(page, zone)
  await goInside(page, '/detect')
  const line = page.locator('.period-line')
  await line.getByText(`, ${zone}`).waitFor()
  const isHalf = !['Europe/Berlin', 'UTC'].includes(zone)
  expect((await line.innerText()).includes('Counts use UTC hours')).toBe(isHalf)
  await page.getByText(`${zone} · drag to zoom`).waitFor()
  await page.getByText('Show as table').first().click()
  const rows = page.getByRole('table', { name: /^Visits/ }).locator('tbody tr')
  await rows.first().waitFor()
  const counted = await rows.evaluateAll((elements) =>
    elements.flatMap((row) => {
      const [step, ...counts] = [...row.children].map((cell) => (cell as HTMLElement).innerText)
      return counts.at(-1) === '0' ? [] : [step ?? '']
    }),
  )
  // The one step with an event is that of its day, by the zone's clocks.
  expect(counted).toHaveLength(1)
  expect(counted[0]).toContain(day)
}

/** A file names the zone in its column head and writes times with its offset. */
async function expectSavedIn(page: Page, zone: string): Promise<void> {
  await page.getByText('1 session', { exact: true }).waitFor()
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Save as CSV' }).click(),
  ])
  const [head = '', row = ''] = (await Bun.file(await download.path()).text()).split(/\r?\n/)
  expect(head).toContain(`Last seen, ${zone}`)
  expect(row).toContain(`T${clock(zone).time}:00.000+05:45`)
}

test('rows, chips, bars, charts and saved files use and name the zone, in each of four', async () => {
  await inZones(async (page, use) => {
    for (const zone of ['Europe/Berlin', 'America/St_Johns', 'Asia/Kathmandu', 'UTC']) {
      await use(zone)
      await load(page, `/logs?since=${occurredAt}`, 'Logs')
      await expectZone(page, zone)
    }
  })
}, 90_000)

test('a chosen time zone applies to every page, survives a reload and can be undone', async () => {
  await inZones(async (page, use) => {
    await use('Asia/Kathmandu')
    await load(page, '/logs', 'Logs')
    const there = clock('Asia/Kathmandu')
    const utc = clock('UTC')
    await page.getByRole('row').getByText(`${there.day} ${there.time}:00`).first().waitFor()
    await page.getByLabel('Time zone').last().selectOption('UTC')
    await page.getByRole('row').getByText(`${utc.day} ${utc.time}:00`).first().waitFor()
    await goInside(page, '/authz')
    await page.locator('.period-line').getByText(', UTC,').waitFor()
    await page.getByRole('table', { name: 'Newest denials' }).getByText(`${utc.day} ${utc.time}:00`).waitFor()
    await page.getByLabel('Time zone').last().selectOption('Other time zone…')
    await page.getByRole('dialog').getByRole('combobox').fill('america/st_johns')
    await page.getByRole('button', { name: 'Use time zone' }).click()
    await page.locator('.period-line').getByText(', America/St_Johns,').waitFor()
    await expectAccessibleInBothThemes(page.locator('.period-line'))
    await page.reload()
    await page.locator('.period-line').getByText(', America/St_Johns,').waitFor()
    await page.getByLabel('Time zone').last().selectOption('Asia/Kathmandu')
    await page.locator('.period-line').getByText(', Asia/Kathmandu,').waitFor()
    expect(await page.evaluate(() => localStorage.getItem('sightglass.zone'))).toBeNull()
  })
}, 90_000)

test('the date fields of the audit log mean days of the zone; a phone shows the zone and is not stretched', async () => {
  await inZones(async (page, use) => {
    await use('America/St_Johns')
    await load(page, '/settings/audit', 'Settings')
    const auditRequest = page.waitForRequest((request) => request.url().includes('/api/audit?since='))
    await page.getByLabel('From (America/St_Johns)').fill('2026-11-01')
    await page.getByLabel('To (America/St_Johns)').fill('2026-11-01')
    await page.getByRole('button', { name: 'Search' }).click()
    const { searchParams } = new URL((await auditRequest).url())
    // The day on which the clocks of St John's go back has 25 hours.
    expect([searchParams.get('since'), searchParams.get('until')]).toEqual([
      '2026-11-01T02:30:00.000Z',
      '2026-11-02T03:30:00.000Z',
    ])

    await use('America/Argentina/ComodRivadavia')
    await page.setViewportSize({ width: 390, height: 844 })
    await load(page, '/detect', 'Detect')
    await page.locator('.period-line').waitFor()
    expect(await page.locator('.period-line').innerText()).toContain('America/Catamarca') // its canonical name
    await page.getByRole('button', { name: 'Menu' }).click()
    await page.getByLabel('Time zone').filter({ visible: true }).waitFor()
    await expectAccessibleInBothThemes(page.locator('.menu-sheet'))
    await page.keyboard.press('Escape')
    await expectNoSidewaysScroll(page)
  })
}, 60_000)
