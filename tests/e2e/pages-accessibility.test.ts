/** Every page and section of Settings, full of hostile names: axe-core reports nothing, and nothing overflows. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Page } from 'playwright'
import { settingsSections } from '../../web/pages/settings/sections.tsx'
import { closeBrowser, withPage } from '../support/browser.ts'
import { isOnPostgres } from '../support/engine.ts'
import { event, type TestEvent } from '../support/events.ts'
import { newOrganization, type Organization, send, withOwner } from './dashboard-actions.ts'
import {
  countedTypes,
  expectAccessible,
  expectAccessibleInBothThemes,
  expectNoSidewaysScroll,
  goInside,
  push,
  recent,
  waitForHeading,
} from './pages-actions.ts'
import { pageTraffic } from './pages-traffic.ts'

let org: Organization

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

/** The newest and the oldest of the traffic: every kind of event in both weeks. More rows only cost axe-core time. */
const fewEvents = (): TestEvent[] => pageTraffic(Date.now()).filter((_, n) => n < 48 || n >= 876)

function hostileEvents(): TestEvent[] {
  return fewEvents().map((sourceEvent, n) => {
    const name = hostile[n % hostile.length] ?? ''
    return event(`h${n}`, {
      ...sourceEvent,
      id: `h${n}`,
      tool: name,
      agent: { class: name, trust: name, vendor: name, userAgent: name },
      policy: { decision: n % 2 ? name : 'deny', ruleId: name, reason: name },
      metadata: { page: name, protocol: name, subject: name },
    })
  })
}

beforeAll(async () => {
  org = await newOrganization()
  const key = org.key
  await send(org.url, key, fewEvents())
  const oneOfEach = countedTypes.map((type, index) => recent(`x${index}`, { type }))
  await send(org.url, key, [...hostileEvents(), ...oneOfEach])
  await push(org.url, key, 'tools', {
    siteId: 'shop-acme',
    tools: [{ name: 'checkout.pay', page: '/checkout' }],
  })
  await push(org.url, key, 'memory', {
    siteId: 'shop-acme',
    snapshot: { siteMap: { pages: [{ path: '/' }] } },
  })
}, 120_000)
afterAll(closeBrowser)

const desk = { width: 1440, height: 900 }
const phone = { width: 390, height: 844 }

/**
 * Checks the open page in light at both widths, and its colours in dark at the wide one. The first page is checked in
 * dark at both widths, and with its frame, which is the same on every page.
 */
async function expectFitAndAccessible(page: Page, isFirst: boolean): Promise<void> {
  const main = page.locator('main')
  for (const viewport of [desk, phone]) {
    await page.setViewportSize(viewport)
    await page.locator('.navigation.wide').waitFor({ state: viewport === phone ? 'hidden' : 'visible' })
    if (isFirst) await expectAccessibleInBothThemes(page)
    else if (viewport === desk) await expectAccessibleInBothThemes(page, main)
    else await expectAccessible(main)
    await page.emulateMedia({ colorScheme: 'light' })
    await expectNoSidewaysScroll(page)
    expect(await page.locator('main img').count()).toBe(0)
  }
  await page.setViewportSize(desk)
}

test('the sign-in page has no violation at both widths, in light and dark', async () => {
  await withPage(`${org.url}/logs`, async (page) => {
    await page.getByLabel('Email').waitFor()
    for (const viewport of [phone, desk]) {
      await page.setViewportSize(viewport)
      await expectAccessibleInBothThemes(page)
    }
  })
}, 90_000)

const pages: [name: string, shows: string][] = [
  ['Overview', '.overview-week .headlines'],
  ['Detect', '.counts .bars li'],
  ['Auth', '.counts .bars li'],
  ['Authz', '.counts .bars li'],
  ['WebMCP Tools', '.data-table tbody tr'],
  ['Knaph', '.data-table tbody tr, .site-view'],
  ['Logs', '.event-row'],
  ['Sessions', '.data-table tbody tr'],
  ['Analytics', '.counts .bars li'],
  ['Webhooks', '.panel'],
]

const dialogs: [path: string, shows: string][] = [
  ['/detect?vendor=Operator', 'dl'],
  ['/authz?why=p1', '.doings, dl'],
]

test('no page or dialog has a violation, and no page is stretched at both widths, in light and dark', async () => {
  const atPages = async (page: Page): Promise<void> => {
    for (const [name, shows] of pages) {
      await page.locator('.navigation.wide').getByRole('link', { name, exact: true }).click()
      await waitForHeading(page, name)
      await page.locator('main').locator(shows).first().waitFor()
      await expectFitAndAccessible(page, name === 'Detect')
      if (name !== 'Detect') continue
      await page.getByText('Show as table').click()
      await expectAccessibleInBothThemes(page.locator('details[open]'))
    }
    for (const [path, shows] of dialogs) {
      await goInside(page, path)
      const dialog = page.getByRole('dialog')
      await dialog.locator(shows).first().waitFor()
      await expectAccessibleInBothThemes(dialog)
      await page.emulateMedia({ colorScheme: 'light' })
      await page.keyboard.press('Escape')
      await dialog.waitFor({ state: 'detached' })
    }
  }
  await withOwner(`${org.url}/settings`, atPages, { viewport: desk })
}, 180_000)

/** A text that each section of Settings shows once its data is loaded. */
const loaded: { [slug in (typeof settingsSections)[number]['slug']]: string } = {
  'ingest-keys': 'active',
  'api-keys': 'No keys yet.',
  'ingest-health': 'Events per hour',
  sources: 'No access logs yet.',
  sites: 'visible',
  evidence: 'part of this release',
  webhooks: 'No endpoints yet.',
  'share-links': 'No share links yet.',
  people: 'owner, operator',
  organization: 'A second factor is optional.',
  audit: 'ingest_key.created',
  data: 'Event types',
  backups: isOnPostgres ? 'backed up outside of Sightglass' : 'No backups yet.',
  system: 'Checked just now',
  account: 'this browser',
}

test('no section of Settings has a violation or is stretched at both widths, in light and dark', async () => {
  const atSections = async (page: Page): Promise<void> => {
    const links = page.getByRole('navigation', { name: 'Settings' }).getByRole('link')
    await links.first().waitFor()
    const hrefs = await links.evaluateAll((elements) => elements.map((link) => link.getAttribute('href')))
    expect(hrefs).toEqual(settingsSections.map(({ slug }) => `/settings/${slug}`))
    for (const { slug, name } of settingsSections) {
      await goInside(page, `/settings/${slug}`)
      const section = page.locator('.settings-body', {
        has: page.getByRole('heading', { name, exact: true }),
      })
      await section.getByText(loaded[slug]).first().waitFor()
      await expectFitAndAccessible(page, slug === 'ingest-keys')
    }
  }
  await withOwner(`${org.url}/settings`, atSections, { viewport: desk })
}, 180_000)
