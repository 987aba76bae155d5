/** Small things that a reader would stumble over: a wrong filter, a key closed by accident, heights, a phone. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Page } from 'playwright'
import { closeBrowser, type PageOptions } from '../support/browser.ts'
import { event } from '../support/events.ts'
import { newOrganization, type Organization, send, withOwner } from './dashboard-actions.ts'
import { expectAccessibleInBothThemes, goInside } from './pages-actions.ts'

let org: Organization
beforeAll(async () => {
  org = await newOrganization()
  const key = org.key
  const events = Array.from({ length: 160 }, (_, n) =>
    event(`l${n}`, {
      sessionId: `session-${n >> 2}`,
      type: ['agent.detected', 'tool.executed'][n % 2],
      occurredAt: new Date(Date.now() - n * 30_000).toISOString(),
    }),
  )
  await send(org.url, key, [...events, event('memory', { type: 'memory.accessed' })])
}, 120_000)
afterAll(closeBrowser)

const visit = (path: string, look: (page: Page) => Promise<void>, options: PageOptions = {}) =>
  withOwner(
    org.url + path,
    async (page) => {
      await page.getByRole('heading', { level: 1 }).waitFor()
      await look(page)
    },
    options,
  )
const phone = { viewport: { width: 390, height: 844 } }

test('an invalid filter in the address is named and can be removed', async () => {
  const look = async (page: Page): Promise<void> => {
    await page.getByRole('alert').getByText('type').first().waitFor()
    expect(await page.getByText('Connection lost').count()).toBe(0)
    await page.getByText('Not live', { exact: true }).waitFor()
    await page.getByRole('link', { name: 'Remove type from the filters' }).click()
    await page.getByText('Live', { exact: true }).waitFor()
    expect(new URL(page.url()).search).toBe('?vendor=Operator')
  }
  await visit('/logs?type=NO+TYPE&vendor=Operator', look, { allow: [/400/] })
}, 40_000)

test('Escape asks for confirmation before it closes the dialog of a new key', async () => {
  await visit('/settings/ingest-keys', async (page) => {
    await page.getByRole('button', { name: 'Create key' }).first().click()
    await page.getByLabel('Label').fill('shown once')
    await page.getByRole('dialog').getByRole('button', { name: 'Create key' }).click()
    const secret = page.getByLabel('New key')
    await secret.waitFor()
    for (const _ of [1, 2, 3]) await page.keyboard.press('Escape')
    await page.getByText('This is not shown again. Close it?').waitFor()
    await expectAccessibleInBothThemes(page.getByRole('dialog'))
    await page.getByRole('button', { name: 'Keep open' }).click()
    expect(await secret.innerText()).toStartWith('agtx_ik_')
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Close anyway' }).click()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
  })
}, 40_000)

test('navigation counts name their unit and equal the headlines', async () => {
  await visit('/knaph', async (page) => {
    await page.locator('nav small').nth(2).waitFor() // with the first answer of the page
    const counts = await page
      .locator('nav small')
      .evaluateAll((elements) =>
        elements.map((element) => [element.textContent, element.getAttribute('title'), element.ariaHidden]),
      )
    expect(counts).toEqual([
      ['7 days', 'Counts below: in the last 7 days', 'true'],
      ['80', '80 visits in the last 7 days, all sites', 'true'],
      ['80', '80 tool calls in the last 7 days, all sites', 'true'],
    ])
    const mean = page.locator('.headlines > div').filter({ hasText: 'Mean score' })
    expect((await mean.innerText()).split('\n').filter(Boolean)).toEqual([
      'Mean score',
      'in the last 7 days',
      '–',
      'none pushed',
    ])
  })
}, 40_000)

test('the list of sessions fills the height of the window', async () => {
  const look = async (page: Page): Promise<void> => {
    const list = page.locator('.sessions .data-scroll')
    await list.getByRole('row').nth(35).waitFor()
    const box = await list.boundingBox()
    expect(box!.y + box!.height).toBeGreaterThan(1_100 - 90)
    // Only the list scrolls, and its last column ends below the link above it.
    const main = await page.locator('main').evaluate((element) => element.scrollHeight - element.clientHeight)
    const csv = await page.getByRole('button', { name: 'Save as CSV' }).boundingBox()
    const padding = await list
      .getByRole('columnheader')
      .last()
      .evaluate((head) => parseFloat(getComputedStyle(head.querySelector('button') ?? head).paddingRight))
    expect([main, box!.x + box!.width - padding]).toEqual([0, csv!.x + csv!.width])
  }
  await visit('/sessions', look, { viewport: { width: 1_280, height: 1_100 } })
}, 40_000)

test('a chart is as tall as the list beside it', async () => {
  for (const path of ['/detect', '/tools']) {
    await visit(
      path,
      async (page) => {
        const parts = page.locator('.beside-list > .panel')
        await parts.nth(1).waitFor()
        const boxes = await parts.evaluateAll((elements) =>
          elements.map((part) => part.getBoundingClientRect()),
        )
        expect(boxes.map(({ top }) => top)).toEqual([boxes[0]!.top, boxes[0]!.top])
        expect(boxes.map(({ height }) => height)).toEqual([boxes[0]!.height, boxes[0]!.height])
        const plot = await page.locator('.beside-list .plot').boundingBox()
        const canvas = await page.locator('.beside-list canvas').boundingBox()
        expect(canvas!.height).toBeCloseTo(plot!.height, 0)
      },
      { viewport: { width: 1_440, height: 900 } },
    )
  }
}, 60_000)

test('on a phone a word of the first column that fits is not broken', async () => {
  await visit(
    '/analytics?range=all',
    async (page) => {
      const link = page.locator('.data-table td:first-child a').filter({ hasText: 'memory.accessed' }).first()
      await link.waitFor()
      const lines = await link.evaluate((element) => {
        const range = document.createRange()
        range.selectNodeContents(element)
        return new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size
      })
      expect(lines).toBe(1)
    },
    phone,
  )
}, 40_000)

test('on a phone the controls take two lines and the live dot is beside the title', async () => {
  await visit(
    '/tools',
    async (page) => {
      const top = async (name: string): Promise<number> => (await page.locator(name).first().boundingBox())!.y
      const title = await page.locator('.page-bar h1').boundingBox()
      const dot = await page.locator('.page-bar .live-dot').boundingBox()
      expect(dot!.y).toBeWithin(title!.y - 20, title!.y + title!.height)
      expect(await top('.compare-choice')).toBe(await top('.range-choice'))
      // Lines of the sticky column meet those of the columns beside it only at whole pixels.
      const rows = page.getByRole('table').first().getByRole('row')
      await rows.nth(1).waitFor()
      const heights = await rows.evaluateAll((elements) =>
        elements.map((row) => row.getBoundingClientRect().height),
      )
      expect(heights.length).toBeGreaterThan(1)
      expect(heights.filter((height) => !Number.isInteger(height))).toEqual([])
      await goInside(page, '/logs')
      const find = page.locator('.find-bar')
      await find.getByText('Export').waitFor()
      const tops = await find
        .getByRole('button')
        .evaluateAll((elements) =>
          elements.map((element) => [element.textContent, element.getBoundingClientRect().top]),
        )
      expect(tops.map(([name]) => name)).toEqual(['Saved views', 'Share', 'Export'])
      expect(new Set(tops.map(([, topPx]) => topPx)).size).toBe(1)
    },
    phone,
  )
}, 40_000)
