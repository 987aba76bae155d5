/** Saved views in a real browser: saved by one member, used by another, renamed, deleted and brought back. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Page } from 'playwright'
import { cli } from '../support/binary.ts'
import { closeBrowser, withPage } from '../support/browser.ts'
import { picture } from '../support/picture.ts'
import { newOrganization, type Organization, send, withOwner } from './dashboard-actions.ts'
import {
  waitForHeading,
  expectAccessibleInBothThemes,
  expectNoSidewaysScroll,
  recent,
} from './pages-actions.ts'

let org: Organization
const viewer = { email: 'viewer@example.com', password: 'a window in a vessel' }

beforeAll(async () => {
  org = await newOrganization()
  const events = Array.from({ length: 8 }, (_, n) =>
    recent(`v${n}`, { outcome: n < 3 ? 'blocked' : 'success' }),
  )
  await send(org.url, org.key, events)
  const args = [
    'account',
    'create',
    '--email',
    viewer.email,
    '--role',
    'viewer',
    '--org',
    org.slug,
    '--password-stdin',
  ]
  const createResult = await cli(args, { dataDir: org.appliance.dataDir, stdin: viewer.password })
  expect([createResult.code, createResult.stderr]).toEqual([0, ''])
}, 120_000)
afterAll(closeBrowser)

const openViews = (page: Page) => page.getByRole('button', { name: 'Saved views' }).click()
const rows = (page: Page) => page.locator('.event-row')

async function expectRows(page: Page, count: number): Promise<void> {
  await page.waitForFunction((n) => document.querySelectorAll('.event-row').length === n, count)
  expect(await rows(page).count()).toBe(count)
}

const hostile = 'Blocked <b>evil</b>'
const link = (page: Page, name: string | RegExp) => page.locator('.view-list').getByRole('link', { name })

test('a viewer can open a view that the owner saved, but not change it', async () => {
  await withOwner(`${org.url}/logs?outcome=blocked`, async (page) => {
    await waitForHeading(page, 'Logs')
    await openViews(page)
    await page.getByText('No saved views yet. Save these filters under a name to share them.').waitFor()
    await page.getByLabel('Save these filters as').fill(hostile)
    await page.getByRole('button', { name: 'Save view' }).click()
    await link(page, /^Blocked/).waitFor()
    await picture(page, 'saved-views')
    await expectAccessibleInBothThemes(page.locator(':has(> .view-list)'))
  })
  const asViewer = async (page: Page): Promise<void> => {
    await expectRows(page, 8)
    await openViews(page)
    await link(page, /^Blocked/).click()
    await expectRows(page, 3)
    expect(new URL(page.url()).search).toBe('?outcome=blocked')
    if ((await link(page, /^Blocked/).count()) === 0) await openViews(page)
    expect(await page.getByRole('button', { name: /Delete view|Rename view|Save view/ }).count()).toBe(0)
    await expectAccessibleInBothThemes(page.locator(':has(> .view-list)'))
  }
  await withPage(`${org.url}/logs`, asViewer, { as: viewer })
}, 90_000)

test('a view is renamed, replaced, deleted and restored, without stretching a phone', async () => {
  await withOwner(
    `${org.url}/logs?type=authz.*`,
    async (page) => {
      await waitForHeading(page, 'Logs')
      await openViews(page)
      await page.getByRole('button', { name: /^Rename view/ }).click()
      await page.getByLabel(/^New name for/).fill('Blocked')
      await page.getByRole('button', { name: 'Rename', exact: true }).click()
      await link(page, 'Blocked').waitFor()
      await page.getByLabel('Save these filters as').fill('Blocked')
      await page.getByRole('button', { name: 'Replace view' }).click()
      await page.locator('.view-list a[href="/logs?type=authz.*"]').waitFor()
      await expectNoSidewaysScroll(page)
      await picture(page, 'saved-views-phone')
      await page.getByRole('button', { name: 'Delete view Blocked' }).click()
      await page.getByText('Deleted Blocked').waitFor()
      await link(page, 'Blocked').waitFor({ state: 'detached' })
      await page.getByRole('button', { name: 'Undo' }).click()
      await page.locator('.view-list a[href="/logs?type=authz.*"]').waitFor()
    },
    { viewport: { width: 390, height: 844 } },
  )
}, 90_000)

test('a view is saved while the list still loads, and the late list does not hide it', async () => {
  await withOwner(`${org.url}/logs?outcome=success`, async (page) => {
    await waitForHeading(page, 'Logs')
    const late = Promise.withResolvers<void>()
    let lists = 0
    await page.route('**/api/views', async (route) => {
      if (route.request().method() !== 'GET' || ++lists > 1) return route.continue()
      const originalResponse = await route.fetch()
      await late.promise
      await route.fulfill({ response: originalResponse })
    })
    await openViews(page)
    await page.getByLabel('Save these filters as').fill('Saved early')
    await page.getByRole('button', { name: 'Save view' }).click()
    await link(page, 'Saved early').waitFor()
    const arrived = page.waitForResponse('**/api/views')
    late.resolve()
    await (await arrived).finished()
    await page.waitForFunction(() => document.querySelector('.view-list')!.ariaBusy === 'false')
    expect(await link(page, 'Saved early').count()).toBe(1)
    await page.unroute('**/api/views')
  })
}, 90_000)

test('views that an earlier version stored in the browser are imported once', async () => {
  await withOwner(`${org.url}/logs`, async (page) => {
    await waitForHeading(page, 'Logs')
    await page.evaluate(async () => {
      const { org } = (await (await fetch('/api/session')).json()) as { org: { id: string } }
      const views = [
        { name: 'Blocked', search: '?outcome=blocked&event=evt_1' },
        { name: 'Mine', search: '?vendor=A' },
      ]
      localStorage.setItem(`sightglass.${org.id}.logs.views`, JSON.stringify(views))
    })
    await openViews(page)
    await page.getByText('2 views from an earlier version are stored only in this browser.').waitFor()
    await page.getByRole('button', { name: 'Share with the organization' }).click()
    await link(page, 'Mine').waitFor()
    // The name is in use for other filters; the event that was open is not a filter.
    await page.locator('.view-list a[href="/logs?outcome=blocked"]', { hasText: 'Blocked (2)' }).waitFor()
    await page.reload()
    await openViews(page)
    await link(page, 'Mine').waitFor()
    expect(await page.getByText('stored only in this browser').count()).toBe(0)
  })
}, 90_000)
