/** A list shows only the response to its current filter, also when an older response arrives later. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Page } from 'playwright'
import type { Appliance } from '../support/binary.ts'
import { closeBrowser } from '../support/browser.ts'
import { ingestKey, send, startWithOwner, withOwner } from '../e2e/dashboard-actions.ts'
import { waitForHeading, recent } from '../e2e/pages-actions.ts'

let appliance: Appliance
const slowMs = 1_500

beforeAll(async () => {
  appliance = await startWithOwner()
  await send(appliance.url, await ingestKey(appliance), [recent('one', {})])
}, 120_000)
afterAll(async () => {
  await closeBrowser()
  await appliance.stop()
})

/** Delays the responses to some requests. */
const delay = (page: Page, isSlow: (url: URL) => boolean) =>
  page.route('**/api/**', async (route) => {
    if (isSlow(new URL(route.request().url()))) await Bun.sleep(slowMs)
    await route.continue()
  })

const visit = (path: string, use: (page: Page) => Promise<void>) =>
  withOwner(`${appliance.url}${path}`, async (page) => {
    await waitForHeading(page, 'Settings')
    page.setDefaultTimeout(8_000)
    await use(page)
  })

test('the audit log: the filter changes while the older query is running', async () => {
  await visit('/settings/audit', async (page) => {
    const actions = page.locator('.entry-link')
    await actions.first().waitFor()
    await delay(page, (url) => url.searchParams.get('action') === 'ingest_key.*')
    const find = async (action: string) => {
      await page.getByLabel('Action').selectOption(action)
      await page.getByRole('button', { name: 'Search' }).click()
    }
    await find('Ingest keys')
    await find('Sign-ins and sign-outs')
    await Bun.sleep(slowMs)
    await page.getByText('ingest_key.created').waitFor({ state: 'detached' })
    await page
      .locator('.entry-link', { hasText: /^session\./ })
      .first()
      .waitFor()
    const shown = await actions.allInnerTexts()
    expect(shown.filter((action) => !action.startsWith('session.'))).toEqual([])
  })
}, 60_000)

test('ingest health: the time range changes while the older query is running', async () => {
  await visit('/settings/ingest-health', async (page) => {
    const caption = page.locator('.ingest-hours figcaption')
    await caption.waitFor()
    const day = 24 * 3_600_000
    const isWeek = (url: URL) => Date.now() - Date.parse(url.searchParams.get('since') ?? '') > 3 * day
    await delay(page, (url) => url.pathname.endsWith('/api/ingest/health') && isWeek(url))
    await page.getByLabel('Time range').selectOption('Last 7 days')
    await page.getByLabel('Time range').selectOption({ index: 0 })
    await Bun.sleep(2 * slowMs)
    const columns = await page.locator('.ingest-hours svg').getAttribute('viewBox')
    expect(Number(columns?.split(' ')[2])).toBeLessThanOrEqual(25)
  })
}, 60_000)
