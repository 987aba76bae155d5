/** Overview, the first page: empty, what changed since the last visit, hostile names, by keyboard and on a phone. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Page } from 'playwright'
import { closeBrowser } from '../support/browser.ts'
import { event } from '../support/events.ts'
import { newOrganization, type Organization, send, withOwner } from './dashboard-actions.ts'
import { expectAccessible, expectFit, goInside, tabTo, waitForHeading } from './pages-actions.ts'

const hourMs = 3_600_000
let org: Organization
let key: string

beforeAll(async () => {
  org = await newOrganization()
  key = org.key
}, 60_000)
afterAll(closeBrowser)

/** In an empty profile, as on another device. */
const open = (visit: (page: Page) => Promise<void>, path = '/', allow: RegExp[] = []) =>
  withOwner(`${org.url}${path}`, visit, { allow, continues: false, viewport: { width: 1440, height: 900 } })

function calls(name: string, count: number, hoursAgo: number, fields: Record<string, unknown>): unknown[] {
  return Array.from({ length: count }, (_, index) =>
    event(`${name}-${index}`, {
      type: 'tool.executed',
      outcome: 'success',
      policy: undefined,
      tool: 'search',
      agent: { class: 'dom', trust: 'detected', vendor: 'OpenAI' },
      // Within one hour of the clock, because changes are counted by the hour.
      occurredAt: new Date(Date.now() - hoursAgo * hourMs - index).toISOString(),
      ...fields,
    }),
  )
}

const hostile = '<img src=x onerror=alert(1)>\u202egnp'

test('without events the first page says how to send one, and the first event fills it', async () => {
  await open(async (page) => {
    await waitForHeading(page, 'Overview')
    expect(new URL(page.url()).pathname).toBe('/overview')
    await page.getByRole('heading', { name: 'No events yet' }).waitFor()
    await expectFit(page, 'overview-empty')
    await expectAccessible(page)
    // The page asks from where on it follows the stream; the event is stored before the answer.
    const stored = Promise.withResolvers<void>()
    const eventsRequest = page.waitForRequest(/\/api\/events\?.*limit=1/)
    await page.route(/\/api\/events\?.*limit=1/, async (route) => {
      await stored.promise
      await route.continue()
    })
    await goInside(page, '/settings')
    await waitForHeading(page, 'Settings')
    await goInside(page, '/overview')
    await eventsRequest
    await send(org.url, key, calls('first', 1, 0, {}))
    stored.resolve()
    await page.getByRole('heading', { name: 'Last 7 days' }).waitFor()
    await page.getByText('No events in the 30 days before, so nothing can be compared yet.').waitFor()
  })
})

test('changes are sentences with their number, a chart and their events; a seen report is empty', async () => {
  await send(org.url, key, [
    ...calls('old', 60, 100, {}),
    ...calls('cart', 60, 110, { tool: 'cart' }),
    ...calls('broken', 30, 1, { tool: 'cart', outcome: 'error' }),
    ...calls('works', 30, 1, { tool: 'cart' }),
    ...calls('hostile', 3, 1, { agent: { class: 'dom', trust: 'detected', vendor: hostile } }),
    ...calls('pay', 12, 1, { tool: 'checkout.pay' }),
  ])
  await open(async (page) => {
    const rows = page.locator('.overview-list li')
    await rows.filter({ hasText: 'checkout.pay was called for the first time: 12 calls.' }).waitFor()
    const texts = await rows.locator('p').allInnerTexts()
    expect(texts).toContain('Tool cart fails more often: 50 % of 60 calls, 0 % before.')
    expect(texts.find((text) => text.includes('onerror'))).toContain('sent its first 3 events.')
    expect(await page.locator('.overview-list img').count()).toBe(0)
    expect(await rows.locator('svg').first().getAttribute('aria-label')).toBe(
      '30 since then, 0 in the 30 days before',
    )
    await expectFit(page, 'overview')
    await expectAccessible(page)
    await page.setViewportSize({ width: 390, height: 844 })
    const top = async (name: string) =>
      (await page.getByRole('button', { name, exact: true }).boundingBox())!.y
    expect(await top('Share')).toBe(await top('Menu'))
    await page.setViewportSize({ width: 1440, height: 900 })

    await page.getByRole('link', { name: 'Events of: New tool checkout.pay' }).click()
    await waitForHeading(page, 'Logs')
    const params = new URL(page.url()).searchParams
    expect([params.get('type'), params.get('tool')]).toEqual(['tool.executed', 'checkout.pay'])
    await page.getByText('12 events').first().waitFor()

    await page.goBack()
    await rows.first().waitFor()
    await page.getByRole('button', { name: 'Mark all as seen' }).click()
    await page.getByText('Nothing changed').waitFor()
    await page.reload()
    await page.getByText('Nothing changed').waitFor()
    await goInside(page, '/overview?since=24h')
    await page.getByText('checkout.pay was called for the first time: 12 calls.').waitFor()
    expect(await page.getByRole('button', { name: 'Mark all as seen' }).count()).toBe(0)
    await page.reload()
    await page.getByText('checkout.pay was called for the first time: 12 calls.').waitFor()
  })
})

test('what was seen on one device is seen on another; without a response of the server, this browser remembers', async () => {
  await open(async (page) => {
    await page.getByText('Nothing changed').waitFor()
    await send(org.url, key, calls('manus', 4, 0, { agent: { class: 'dom', vendor: 'Manus' } }))
    // The open page follows the stream, and counts again every 15 s.
    await page.getByText('Manus sent its first 4 events.').waitFor()
    const stored = Promise.withResolvers<void>()
    await page.route(/overview\/visit$/, async (route) => {
      await stored.promise
      await route.continue()
    })
    await page.getByRole('button', { name: 'Mark all as seen' }).click()
    const marking = page.getByRole('button', { name: 'Marking as seen…' })
    await marking.waitFor()
    expect(await marking.getAttribute('aria-disabled')).toBe('true')
    expect(await page.getByText('Nothing changed').count()).toBe(0)
    stored.resolve()
    await page.getByText('Nothing changed').waitFor()
    // The account knows now, so a page without this browser's copy has nothing either.
    await page.evaluate(() => localStorage.clear())
    await page.reload()
    await page.getByText('Nothing changed').waitFor()
  })
  const withoutAnswer = async (page: Page) => {
    await page.getByText('Nothing changed').waitFor()
    await page.route('**/api/overview/visit', (route) => route.abort())
    await page.reload()
    await page.getByText('Nothing changed').waitFor()
  }
  await open(withoutAnswer, '/', [/overview\/visit/])
})

test('the keyboard opens it, chooses the time and follows a change', async () => {
  await open(async (page) => {
    await waitForHeading(page, 'Detect')
    await page.keyboard.press('g')
    await page.keyboard.press('o')
    await waitForHeading(page, 'Overview')
    const choice = page.getByRole('link', { name: '24 hours', exact: true })
    await choice.focus()
    await page.keyboard.press('Enter')
    await page.waitForURL('**/overview?since=24h')
    expect(await choice.getAttribute('aria-current')).toBe('true')
    await page.getByText('checkout.pay was called for the first time: 12 calls.').waitFor()
    await tabTo(page, 'Events of: New tool checkout.pay')
    await page.keyboard.press('Enter')
    await waitForHeading(page, 'Logs')
    await page.getByText('12 events').first().waitFor()
    await page.goBack()
    await page.getByText('checkout.pay was called for the first time: 12 calls.').waitFor()
    await tabTo(page, 'Download signed report')
    const report = page.waitForEvent('download')
    await page.keyboard.press('Enter')
    expect((await report).suggestedFilename()).toMatch(/^sightglass-report-.*\.html$/)
  }, '/detect')
})

test('the choice of reports and Share stay hidden until there are events', async () => {
  const emptyOrg = await newOrganization() // in which the owner is from here on
  const answerGate = Promise.withResolvers<void>()
  const atOverview = async (page: Page): Promise<void> => {
    await page.route('**/api/overview', async (route) => {
      await answerGate.promise
      await route.continue()
    })
    await page.reload()
    await waitForHeading(page, 'Overview')
    const choices = page.getByRole('navigation', { name: 'Report changes' })
    expect([await choices.count(), await page.getByRole('button', { name: 'Share' }).count()]).toEqual([0, 0])
    answerGate.resolve()
    await page.getByRole('heading', { name: 'No events yet' }).waitFor()
    expect(await choices.count()).toBe(0)
  }
  await withOwner(`${emptyOrg.url}/overview`, atOverview, { continues: false })
})
