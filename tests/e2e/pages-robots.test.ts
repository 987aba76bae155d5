/** robots.txt on Knaph in a real browser: setting versions, what they changed, a test, and the verdict in Logs. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Page } from 'playwright'
import { closeBrowser } from '../support/browser.ts'
import { picture } from '../support/picture.ts'
import { newOrganization, type Organization, send, withOwner } from './dashboard-actions.ts'
import {
  expectAccessibleInBothThemes,
  expectNoSidewaysScroll,
  push,
  recent,
  waitForHeading,
} from './pages-actions.ts'

let org: Organization
let key: string
beforeAll(async () => {
  org = await newOrganization()
  key = org.key
  await push(org.url, key, 'memory', { siteId: 'shop', snapshot: { policies: { a: 'b' } } })
}, 120_000)
afterAll(closeBrowser)

const requested = (id: string, page: string, agent: object = {}) =>
  recent(id, {
    type: 'agent.requested',
    siteId: 'shop',
    metadata: { page },
    agent: { class: 'crawler', trust: 'detected', vendor: 'OpenAI', name: 'GPTBot', ...agent },
  })

async function set(page: Page, text: string): Promise<void> {
  await page.getByRole('button', { name: 'Set robots.txt' }).click()
  const dialog = page.getByRole('dialog')
  expect(await dialog.getByLabel('Site').inputValue()).toBe('shop')
  await dialog.getByLabel('Text').fill(text)
  await dialog.getByRole('button', { name: 'Set robots.txt' }).click()
  await dialog.waitFor({ state: 'detached' })
}

test('versions are set and compared, and a new text is tested before it is set', async () => {
  await send(org.url, key, [requested('r1', '/a/1'), requested('r2', '/b/<b>'), requested('r3', '/b/<b>')])
  await withOwner(`${org.url}/knaph`, async (page) => {
    await waitForHeading(page, 'Knaph')
    const panel = page.getByRole('region', { name: 'robots.txt' })
    await panel.getByText('No robots.txt yet.').waitFor()
    await set(page, 'User-agent: *\nDisallow: /a\n')
    await panel.getByText('Version 1, in force since').waitFor()
    await set(page, 'User-agent: *\nDisallow: /<i>\nContent-Usage: train-ai=n\n')
    await panel.getByText('Version 2, in force since').click()
    await panel.getByText('Version 2', { exact: true }).click()
    await panel.getByText('2 added and 1 removed line since version 1').waitFor()
    expect(await panel.locator('.line-changes li').allInnerTexts()).toEqual([
      expect.stringContaining('Disallow: /a'),
      expect.stringContaining('Disallow: /<i>'),
      expect.stringContaining('Content-Usage: train-ai=n'),
    ])
    await panel.getByText('content usage train-ai=n').waitFor()
    await expectAccessibleInBothThemes(panel)
    await picture(page, 'knaph-robots')

    await page.getByRole('button', { name: 'Test a robots.txt' }).click()
    const dialog = page.getByRole('dialog')
    const file = {
      name: 'robots.txt',
      mimeType: 'text/plain',
      buffer: Buffer.from('User-agent: GPTBot\nDisallow: /b'),
    }
    await dialog.getByLabel('Or choose a file').setInputFiles(file)
    const text = dialog.getByLabel('Text', { exact: true })
    while (!(await text.inputValue()).includes('Disallow: /b')) await Bun.sleep(20)
    await dialog.getByRole('button', { name: 'Test', exact: true }).click()
    await dialog.getByText('2 would be disallowed').waitFor()
    const row = (await dialog.getByRole('row').nth(1).innerText()).replaceAll(/\s+/g, ' ')
    expect(row).toBe('GPTBot 3 2 0 /b/<b> line 2')
    await expectAccessibleInBothThemes(dialog)
    await picture(page, 'knaph-robots-test')
    await page.setViewportSize({ width: 390, height: 900 })
    await expectNoSidewaysScroll(page)
  })
}, 90_000)

test('Logs filters by the verdict, and the event names the line', async () => {
  const rule = { version: 2, from: '2026-11-20T12:00:00.000Z', line: 14 }
  await send(org.url, key, [
    requested('judged', '/c', { robots: 'disallowed', robotsRule: rule }),
    requested('odd', '/c', { robots: 'disallowed', robotsRule: [1] }),
  ])
  await withOwner(`${org.url}/logs?robots=disallowed&event=judged`, async (page) => {
    const drawer = page.getByRole('complementary', { name: 'Event' })
    await drawer.getByText('disallowed by line 14 of the robots.txt of 20 Nov 2026, 12:00 UTC').waitFor()
  })
}, 60_000)
