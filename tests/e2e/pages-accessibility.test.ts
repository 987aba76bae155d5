/** Every page and section of Settings with data, in both themes: axe-core reports nothing, and nothing overflows. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type Appliance, startAppliance } from '../support/binary.ts'
import { closeBrowser, withPage } from '../support/browser.ts'
import { ingestKey, ownerEnv, send, signIn } from './dashboard-actions.ts'
import {
  countedTypes as types,
  expectAccessibleInBothThemes,
  expectNoSidewaysScroll,
  push,
  recent,
} from './pages-actions.ts'

let appliance: Appliance
beforeAll(async () => {
  appliance = await startAppliance({ env: ownerEnv })
  const key = await ingestKey(appliance)
  await send(
    appliance.url,
    key,
    types.map((type, at) => recent(`x${at}`, { type })),
  )
  await push(appliance.url, key, 'tools', {
    siteId: 'shop-acme',
    tools: [{ name: 'checkout.pay', page: '/checkout' }],
  })
  await push(appliance.url, key, 'memory', {
    siteId: 'shop-acme',
    snapshot: { siteMap: { pages: [{ path: '/' }] } },
  })
}, 120_000)
afterAll(async () => {
  await closeBrowser()
  await appliance.stop()
})

const pages = [
  'Detect',
  'Auth',
  'Authz',
  'WebMCP Tools',
  'Knaph',
  'Logs',
  'Sessions',
  'Analytics',
  'Webhooks',
]

for (const viewport of [
  { width: 1440, height: 900 },
  { width: 390, height: 844 },
]) {
  test(`no page has a violation at ${viewport.width} pixels, in light and dark`, async () => {
    await withPage(
      `${appliance.url}/logs`,
      async (page) => {
        await expectAccessibleInBothThemes(page)
        await signIn(page)
        const paths = await page.locator('.navigation.wide a:not(.brand)').evaluateAll((links) =>
          links.map((link) => ({
            href: link.getAttribute('href') ?? '',
            name: link.firstChild?.textContent ?? '',
          })),
        )
        expect(paths.map(({ name }) => name)).toEqual(expect.arrayContaining(pages))
        for (const { href } of paths.filter(({ name }) => pages.includes(name))) {
          await page.goto(`${appliance.url}${href}`)
          await page.locator('main .panel').first().waitFor()
          await expectAccessibleInBothThemes(page)
          await expectNoSidewaysScroll(page)
        }
        await page.goto(`${appliance.url}/settings`)
        await page.locator('.settings-section').first().waitFor()
        const sections = await page
          .getByRole('navigation', { name: 'Settings' })
          .getByRole('link')
          .evaluateAll((links) => links.map((link) => link.getAttribute('href') ?? ''))
        expect(sections.length).toBeGreaterThan(8)
        for (const href of sections) {
          await page.goto(`${appliance.url}${href}`)
          await page.locator('.settings-section').first().waitFor()
          await page.waitForLoadState('networkidle')
          await expectAccessibleInBothThemes(page)
          await expectNoSidewaysScroll(page)
        }
      },
      { viewport },
    )
  }, 180_000)
}
