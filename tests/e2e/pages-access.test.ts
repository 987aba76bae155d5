/** The pages of counts for every reader: axe finds nothing in either theme, print leaves the frame out, phones fit. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type Appliance, startAppliance } from '../support/binary.ts'
import { closeBrowser } from '../support/browser.ts'
import { picture } from '../support/picture.ts'
import { event, type TestEvent } from '../support/events.ts'
import { ingestKey, ownerEnv, send, withOwner } from './dashboard-actions.ts'
import { expectAccessibleInBothThemes } from './pages-actions.ts'
import { pageTraffic } from './pages-traffic.ts'

const pages = ['/detect', '/auth', '/authz', '/analytics']
let appliance: Appliance

/** Names that strangers choose: markup, hidden characters, endless words, members that every object has. */
const hostile = [
  '<img src=x onerror=alert(1)>',
  'x'.repeat(60),
  '\u202eevil\u202c',
  'مرحبا',
  'a\u200bb',
  'constructor',
  '__proto__',
  '=cmd|calc',
]

function hostileEvents(): TestEvent[] {
  return pageTraffic(Date.now()).map((one, n) => {
    const name = hostile[n % hostile.length] ?? ''
    return event(`h${n}`, {
      ...one,
      id: `h${n}`,
      tool: name,
      agent: { class: name, trust: name, vendor: name, userAgent: name },
      policy: { decision: n % 2 ? name : 'deny', ruleId: name, reason: name },
      metadata: { page: name, protocol: name, subject: name },
    })
  })
}

beforeAll(async () => {
  appliance = await startAppliance({ env: ownerEnv })
  const key = await ingestKey(appliance)
  await send(appliance.url, key, pageTraffic(Date.now()))
  await send(appliance.url, key, hostileEvents())
}, 120_000)
afterAll(async () => {
  await closeBrowser()
  await appliance.stop()
})

test('axe finds nothing on any page, in light and dark', async () => {
  await withOwner(`${appliance.url}/detect`, async (page) => {
    for (const path of [...pages, '/detect?vendor=Operator', '/authz?why=p1']) {
      await page.goto(appliance.url + path)
      await page.locator('.counts').waitFor()
      if (path.includes('?')) await page.getByRole('dialog').locator('dl, .doings').first().waitFor()
      else if (path === '/detect') await page.getByText('Show as table').click()
      await expectAccessibleInBothThemes(page)
    }
  })
}, 60_000)

test('on paper: the numbers and tables without the frame, nothing cut off', async () => {
  await withOwner(`${appliance.url}/detect`, async (page) => {
    await page.locator('.counts').waitFor()
    await page.emulateMedia({ media: 'print' })
    expect(await page.locator('.navigation.wide').isVisible()).toBe(false)
    expect(await page.locator('.range-controls').isVisible()).toBe(false)
    expect(await page.locator('.headlines').isVisible()).toBe(true)
    const cut = await page
      .locator('.data-scroll')
      .evaluateAll((all) => all.filter((one) => one.scrollHeight > one.clientHeight + 1).length)
    expect(cut).toBe(0)
    await picture(page, 'print')
    expect((await page.pdf()).subarray(0, 5).toString()).toBe('%PDF-')
  })
}, 90_000)

test.each([390, 1440])(
  'hostile names stretch no page at %d pixels',
  async (width) => {
    await withOwner(
      `${appliance.url}/detect`,
      async (page) => {
        for (const path of pages) {
          await page.goto(appliance.url + path)
          await page.locator('.counts .bars li').first().waitFor()
          const wider = await page.locator('.main').evaluate((main) => main.scrollWidth - main.clientWidth)
          expect([path, wider]).toEqual([path, 0])
          expect(await page.locator('img').count()).toBe(0)
        }
      },
      { viewport: { width, height: 900 } },
    )
  },
  40_000,
)
