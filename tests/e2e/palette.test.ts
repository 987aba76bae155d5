/** The command palette in a real browser: every page, and every vendor, agent, tool, session and saved view by name. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Page } from 'playwright'
import { settingsSections } from '../../web/pages/settings/sections.tsx'
import { routes } from '../../web/routes.ts'
import { closeBrowser } from '../support/browser.ts'
import { picture } from '../support/picture.ts'
import { newOrganization, type Organization, send, withOwner } from './dashboard-actions.ts'
import {
  waitForHeading,
  expectAccessibleInBothThemes,
  expectNoSidewaysScroll,
  push,
  recent,
} from './pages-actions.ts'

let org: Organization
const hour = 3_600_000
const hostile = 'Zebra <img src=x onerror=alert(1)> \u202eevil'

beforeAll(async () => {
  org = await newOrganization()
  const key = org.key
  const zebra = { agent: { class: 'dom', vendor: hostile, name: 'ZebraBot', purpose: 'search' } }
  const otherEvents = Array.from({ length: 150 }, (_, n) =>
    recent(`o${n}`, { sessionId: `sess-${n}`, tool: null, agent: { vendor: `Vendor ${n}` } }, n * 1_000),
  )
  await send(org.url, key, [
    ...otherEvents,
    recent('z1', { ...zebra, sessionId: 'sess-zebra', type: 'tool.executed', tool: 'zebra.pay' }),
    recent('z2', { ...zebra, sessionId: 'long ago', tool: 'zebra.old' }, 300 * 24 * hour),
  ])
  await push(org.url, key, 'tools', { siteId: 'shop', tools: [{ name: 'zebra.registered' }] })
}, 120_000)
afterAll(closeBrowser)

const options = (page: Page) => page.getByRole('listbox').getByRole('option')

async function type(page: Page, text: string): Promise<void> {
  const field = page.getByRole('combobox', { name: 'Page or action' })
  // A page's keys are there a moment after the page itself.
  for (let tries = 0; (await field.count()) === 0 && tries < 100; tries++) {
    await page.keyboard.press('Control+k')
    await Bun.sleep(50)
  }
  await field.fill(text)
}

/** The first option that says all of it, chosen with the mouse. */
async function choose(page: Page, text: string, option: string | RegExp): Promise<URL> {
  await type(page, text)
  await options(page).filter({ hasText: option }).first().click()
  await page.locator('.palette').waitFor({ state: 'detached' })
  return new URL(page.url())
}

test('every page and every section of Settings is found by its name', async () => {
  await withOwner(`${org.url}/logs`, async (page) => {
    await waitForHeading(page, 'Logs')
    for (const { name, path } of routes) {
      await type(page, name)
      await page.keyboard.press('Enter')
      await page.waitForFunction((prefix) => location.pathname.startsWith(prefix), path)
    }
    for (const { slug, name } of settingsSections) {
      await type(page, name === 'Webhooks' || name === 'Sites' ? `Settings: ${name}` : name)
      await page.keyboard.press('Enter')
      await page.waitForFunction((expectedPath) => location.pathname === expectedPath, `/settings/${slug}`)
    }
  })
}, 90_000)

test('a vendor, agent, tool, session or view found by name opens; hostile names stay text', async () => {
  await withOwner(`${org.url}/logs`, async (page) => {
    await waitForHeading(page, 'Logs')
    await page.evaluate(async () => {
      const view = { name: 'Zebra view', search: '?vendor=Zebra' }
      const headers = { 'content-type': 'application/json' }
      await fetch('/api/views', { method: 'POST', headers, body: JSON.stringify(view) })
    })
    await type(page, 'zebra')
    for (const kind of ['Vendor', 'Agent', 'Tool', 'Session', 'Saved view', 'Find in events'])
      await options(page).filter({ hasText: kind }).first().waitFor()
    expect(await page.getByRole('listbox').locator('img').count()).toBe(0)
    await picture(page, 'palette-found')
    await expectAccessibleInBothThemes(page.locator('.palette'))
    const vendor = await choose(page, 'zebra <img', 'Vendor')
    expect([vendor.pathname, vendor.searchParams.get('vendor')]).toEqual(['/detect', hostile])
    await page.getByRole('dialog').waitFor() // the vendor's own
    await page.keyboard.press('Escape')
    const agent = await choose(page, 'zebrab', 'Agent')
    expect(agent.pathname + agent.search).toBe('/logs?name=ZebraBot')
    const toolUrl = await choose(page, 'zebra.pay', 'Tool')
    expect(toolUrl.pathname + toolUrl.search).toBe('/logs?tool=zebra.pay')
    await choose(page, 'zebra.old', 'Tool') // 300 days ago
    const registered = await choose(page, 'zebra.reg', 'Tool')
    expect(registered.pathname + registered.search).toBe('/tools?site=shop&tool=zebra.registered')
    const near = await choose(page, 'zebra', 'Session')
    expect(near.pathname + near.search).toBe('/sessions?session=sess-zebra')
    const far = await choose(page, 'long ago', 'Session') // not among the newest: by its whole id
    expect(far.searchParams.get('session')).toBe('long ago')
    const view = await choose(page, 'zebra v', 'Saved view')
    expect(view.pathname + view.search).toBe('/logs?vendor=Zebra')
    const text = await choose(page, 'xyzzy', 'Find in events')
    expect([text.pathname, text.searchParams.get('q')]).toEqual(['/logs', 'xyzzy'])
  })
}, 90_000)

test('the palette does not stretch a phone', async () => {
  const options390 = { viewport: { width: 390, height: 844 }, colorScheme: 'dark' as const }
  await withOwner(
    `${org.url}/logs`,
    async (page) => {
      await waitForHeading(page, 'Logs')
      await type(page, 'zebra')
      await options(page).filter({ hasText: 'Vendor' }).first().waitFor()
      await expectNoSidewaysScroll(page)
      await picture(page, 'palette-phone')
    },
    options390,
  )
}, 60_000)
