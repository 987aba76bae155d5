/** Without a mouse: from signing in to a new key, the skip link, the palette, the list of shortcuts; and on a phone. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Page } from 'playwright'
import type { Appliance } from '../support/binary.ts'
import { closeBrowser, withPage } from '../support/browser.ts'
import { picture } from '../support/picture.ts'
import { owner, startWithOwner, withOwner } from './dashboard-actions.ts'
import { tabTo, waitForHeading } from './pages-actions.ts'

let appliance: Appliance
beforeAll(async () => {
  appliance = await startWithOwner()
}, 120_000)
afterAll(async () => {
  await closeBrowser()
  await appliance.stop()
})

/** A new page focuses its title after it is drawn, and a Tab before that would start elsewhere. */
async function waitForPage(page: Page, title: string): Promise<void> {
  await page.locator('h1:focus', { hasText: title }).waitFor()
}

test('sign-in and creating a key work with the keyboard alone', async () => {
  await withPage(appliance.url, async (page) => {
    await page.getByLabel('Email').waitFor()
    await page.keyboard.type(owner.email)
    await tabTo(page, 'Password')
    await page.keyboard.type(owner.password)
    await page.keyboard.press('Enter')
    await waitForPage(page, 'Overview')
    await page.getByRole('heading', { name: 'No events yet' }).waitFor()
    await tabTo(page, 'Create an ingest key')
    await page.keyboard.press('Enter')
    await waitForPage(page, 'Settings')
    await tabTo(page, 'Create key')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').getByLabel('Label').waitFor()
    await page.keyboard.type('made by keyboard')
    await page.keyboard.press('Enter')
    await page.getByLabel('New key').waitFor()
    await tabTo(page, 'Done, I saved it')
    await page.keyboard.press('Enter')
    await page.getByRole('rowheader', { name: 'made by keyboard' }).waitFor()
    expect(await page.getByRole('dialog').count()).toBe(0)
  })
}, 90_000)

test('revoking a key asks for confirmation, names the key and persists', async () => {
  await withOwner(`${appliance.url}/settings/api-keys`, async (page) => {
    for (const [kind, label] of [
      ['secret', 'reports'],
      ['publishable', 'shop page'],
    ] as const) {
      await page.getByRole('button', { name: 'Create key' }).click()
      await page.getByRole('radio', { name: kind }).check()
      await page.getByRole('dialog').getByLabel('Label').fill(label)
      await page.keyboard.press('Enter')
      const key = await page.getByLabel('New key').innerText()
      expect(key).toStartWith(kind === 'secret' ? 'agtx_sk_' : 'agtx_pk_')
      await page.getByRole('button', { name: 'Done' }).click()
    }
    await page.getByRole('button', { name: 'Revoke reports' }).click()
    const dialog = page.getByRole('dialog')
    expect(await dialog.innerText()).toContain('reports')
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Revoke reports' }).click()
    await dialog.getByRole('button', { name: 'Revoke key' }).click()
    await dialog.waitFor({ state: 'detached' })
    await page.reload()
    const rows = page.getByRole('row')
    expect(await rows.filter({ hasText: 'reports' }).innerText()).toContain('revoked')
    expect(await rows.filter({ hasText: 'shop page' }).innerText()).toContain('active')
  })
}, 90_000)

test('the skip link, the palette and the list of shortcuts work with the keyboard', async () => {
  const byKeyboard = async (page: Page): Promise<void> => {
    await page.getByRole('heading', { name: 'Logs' }).waitFor()
    await tabTo(page, 'Skip to content')
    await page.keyboard.press('Enter')
    expect(await page.evaluate(() => document.activeElement?.id)).toBe('main')

    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: 'Page or action' }).waitFor()
    await page.keyboard.type('knaph')
    await picture(page, 'palette')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Knaph', exact: true }).waitFor()

    await page.keyboard.press('?')
    expect(await page.getByRole('dialog').innerText()).toContain('Go to Analytics')
    await page.keyboard.press('Escape')
    await page.keyboard.press('g')
    await page.keyboard.press('y')
    await page.getByRole('heading', { name: 'Analytics', exact: true }).waitFor()
  }
  // Tab starts at the top of the document only where nothing had the focus.
  await withOwner(`${appliance.url}/logs`, byKeyboard, { continues: false })
}, 90_000)

test('a new page takes the focus, but not from what was focused since the navigation', async () => {
  await withOwner(`${appliance.url}/logs`, async (page) => {
    await waitForHeading(page, 'Logs')
    const follow = (path: string, focused: string | null) =>
      page.evaluate(
        async ([href, selector]) => {
          document.querySelector<HTMLAnchorElement>(`.navigation.wide a[href="${href}"]`)!.click()
          if (selector) document.querySelector<HTMLElement>(selector)!.focus()
          const { title } = document
          // The title of the document changes together with the focus.
          while (document.title === title) await new Promise(requestAnimationFrame)
          return document.activeElement?.textContent
        },
        [path, focused],
      )
    expect(await follow('/sessions', null)).toBe('Sessions')
    expect(await follow('/webhooks', '.nav-who button')).toBe('Sign out')
    expect(await follow('/settings', null)).toBe('Settings')
    // The palette returns the focus when it closes, which is not the user's doing.
    await page.getByRole('link', { name: 'Sessions', exact: true }).focus()
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: 'Page or action' }).fill('webhooks')
    await page.keyboard.press('Enter')
    await waitForPage(page, 'Webhooks')
  })
}, 60_000)

const pages = [
  'Overview',
  'Detect',
  'Auth',
  'Authz',
  'WebMCP Tools',
  'Knaph',
  'Logs',
  'Sessions',
  'Analytics',
  'Webhooks',
  'Settings',
]

test('the navigation lists every page by name, on a phone behind Menu', async () => {
  await withOwner(appliance.url, async (page) => {
    await page.getByRole('heading', { name: 'Overview', exact: true }).waitFor()
    for (const width of [1280, 390]) {
      await page.setViewportSize({ width, height: 800 })
      for (const name of pages) {
        if (width < 700) await page.getByRole('button', { name: 'Menu' }).click()
        await page.getByRole('link', { name, exact: true }).click()
        await page.getByRole('heading', { name, exact: true, level: 1 }).waitFor()
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)
        expect([width, name, overflow <= 0]).toEqual([width, name, true])
      }
    }
  })
}, 90_000)

test('a chosen theme survives a reload and can follow the system again', async () => {
  await withOwner(`${appliance.url}/logs`, async (page) => {
    const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor)
    const light = await ground()
    await page.getByRole('radio', { name: 'dark' }).check({ force: true })
    const dark = await ground()
    expect(dark).not.toBe(light)
    await page.reload()
    await page.getByRole('radio', { name: 'dark' }).waitFor({ state: 'attached' })
    expect(await ground()).toBe(dark)
    await page.getByRole('radio', { name: 'system' }).check({ force: true })
    expect(await ground()).toBe(light)
    await page.emulateMedia({ colorScheme: 'dark' })
    expect(await ground()).toBe(dark)
  })
}, 90_000)
