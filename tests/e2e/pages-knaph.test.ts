/** Knaph in a real browser: scores, trees, policies and versions of pushed snapshots, and reads of posted events. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Page } from 'playwright'
import { closeBrowser, type PageOptions } from '../support/browser.ts'
import { newOrganization, type Organization, runCurl, send, withOwner } from './dashboard-actions.ts'
import {
  waitForHeading,
  expectAccessibleInBothThemes,
  expectNoSidewaysScroll,
  numberIn,
  push,
  recent,
} from './pages-actions.ts'

let org: Organization
let key: string
beforeAll(async () => {
  org = await newOrganization()
  key = org.key
}, 120_000)
afterAll(closeBrowser)

const visit = (search: string, look: (page: Page) => Promise<void>, options: PageOptions = {}) =>
  withOwner(
    `${org.url}/knaph${search}`,
    async (page) => {
      await waitForHeading(page, 'Knaph')
      await look(page)
    },
    options,
  )

const score = (page: Page) => page.getByRole('region', { name: 'Score' })
const headline = (page: Page, name: string) =>
  page.locator('.headlines > div').filter({ hasText: name }).locator('strong')

test('the empty page shows a push command that works and fills the page without a reload', async () => {
  await visit('', async (page) => {
    await page.getByRole('heading', { name: 'No site memory yet' }).waitFor()
    await expectAccessibleInBothThemes(page.locator('main'))
    const command = await page.getByLabel('Command that sends a first push').innerText()
    const response = await runCurl(command.replace('YOUR_INGEST_KEY', key))
    expect(await response.json()).toEqual({ ok: true, siteId: 'my-site' })
    await score(page).waitFor({ timeout: 5_000 })
    // siteMap.pages and policies: two of six parts.
    expect(await score(page).locator('strong').innerText()).toBe('33')
  })
}, 90_000)

test('a site shows its score, how to raise it, its tree, policies and the changes of each version', async () => {
  const pages = [
    { path: '/', name: 'Home', purpose: 'Start' },
    { path: '/shop/cart', availableActions: ['pay'] },
  ]
  const first = { siteMap: { pages }, policies: { returns: 'Within 30 days.', privacy: ['One.', 'Two.'] } }
  const second = {
    ...first,
    workflows: [{ name: 'buy' }],
    policies: { ...first.policies, returns: 'Within 14 days.' },
  }
  for (const snapshot of [first, second]) await push(org.url, key, 'memory', { siteId: 'shop', snapshot })
  await visit('?site=shop', async (page) => {
    await page.getByRole('heading', { name: 'shop', exact: true }).waitFor()
    const scoreText = (await score(page).innerText()).replaceAll(/\s+/g, ' ')
    expect(scoreText).toStartWith('50 of 100')
    expect(scoreText).toContain('17 pts from 33 in version 1. Computed: 3 of 6 parts are filled.')
    expect(scoreText).toContain(
      'To raise the score: add siteMap.navigation (raises it to 67). 3 parts are missing.',
    )
    const tree = page.getByRole('list', { name: 'Pages of the site' })
    expect((await tree.innerText()).split(/\s+/)).toEqual(['/', 'Home', 'Start', '/shop', '/cart', 'pay'])
    const policies = (await page.locator('.policies dl').innerText())
      .split('\n')
      .filter((line) => line !== '')
    expect(policies).toEqual(['returns', 'Within 14 days.', 'privacy', 'One.', 'Two.'])
    const newest = page.locator('.versions li').first()
    await newest.getByText('policies › returns').waitFor()
    expect((await newest.innerText()).replaceAll(/\s+/g, ' ')).toContain(
      'policies › returns before: Within 30 days. after: Within 14 days.',
    )
    await page.getByText('Snapshot as pushed').click()
    const json = await page.getByLabel('The snapshot as JSON').innerText()
    expect(JSON.parse(json)).toEqual(second)
    await expectAccessibleInBothThemes(page.locator('main'))
  })
}, 90_000)

test('a sent score is shown as sent, sites are compared, and reads are counted live', async () => {
  await push(org.url, key, 'memory', { siteId: 'best', snapshot: { note: 'x' }, score: 97.5 })
  const read = (id: string, fields = {}) =>
    recent(id, { type: 'memory.accessed', outcome: 'success', siteId: 'shop', ...fields })
  await send(org.url, key, [
    read('m1'),
    read('m2'),
    read('m3', { siteId: 'best' }),
    read('m4', { type: 'memory.updated' }),
  ])
  await visit('?siteId=shop&siteId=best', async (page) => {
    await headline(page, 'Memory reads').filter({ hasText: /^3$/ }).waitFor()
    expect(numberIn(await headline(page, 'Updates').innerText())).toBe(1)
    expect(numberIn(await headline(page, 'Sites with memory').innerText())).toBe(2)
    expect(numberIn(await headline(page, 'Mean score').innerText())).toBe(Math.round((50 + 97.5) / 2))
    const sites = await page.locator('.data-table tbody tr').allInnerTexts()
    expect(sites.map((line) => line.split(/\s+/).slice(0, 3))).toEqual([
      ['shop', '50', 'computed'],
      ['best', '97.5', 'sent'],
    ])
    await page.getByText('Live', { exact: true }).waitFor()
    await send(org.url, key, [read('m5')])
    await headline(page, 'Memory reads').filter({ hasText: /^4$/ }).waitFor({ timeout: 5_000 })
    await page.getByRole('link', { name: 'best', exact: true }).click()
    await page.getByText('Sent with the snapshot. The computed score would be 0.').waitFor()
    await page.locator('.range-choice select').first().selectOption('shop')
    await headline(page, 'Memory reads').filter({ hasText: /^3$/ }).waitFor()
  })
}, 90_000)

test('hostile snapshots stay text and do not stretch the page', async () => {
  const path = `/${'a/'.repeat(60)}${'z'.repeat(300)}`
  const snapshot = {
    siteMap: { pages: [{ path, name: '<img src=x onerror=alert(1)>' }, 5, null, [], { path: '\u202e/x' }] },
    policies: { ['<b>' + 'p'.repeat(300)]: ['\u202elong '.repeat(600), { deep: [[[]]] }], constructor: 'x' },
    __proto__x: 1,
  }
  await push(org.url, key, 'memory', { siteId: `evil-${'e'.repeat(190)}`, snapshot })
  // The range of the visit before, which names other sites, would carry over.
  const anew = { continues: false }
  await visit(
    `?site=evil-${'e'.repeat(190)}`,
    async (page) => {
      await page.getByText('<img src=x onerror=alert(1)>').waitFor()
      expect(await page.locator('.knaph img').count()).toBe(0)
      for (const width of [1440, 390]) {
        await page.setViewportSize({ width, height: 900 })
        await expectNoSidewaysScroll(page)
        await expectAccessibleInBothThemes(page.locator('main'))
      }
    },
    anew,
  )
}, 90_000)
