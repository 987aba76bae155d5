/** Several tabs of one browser share one stream. No tab misses or repeats an event, whatever opens or closes. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { BrowserContext, Page } from 'playwright'
import type { Appliance } from '../support/binary.ts'
import { closeBrowser } from '../support/browser.ts'
import { event } from '../support/events.ts'
import { ingestKey, rows, send, startWithOwner, withOwner } from './dashboard-actions.ts'

const token = 'a-token-for-the-metrics'

let appliance: Appliance
let key: string
beforeAll(async () => {
  appliance = await startWithOwner({ args: ['--metrics-token', token] })
  key = await ingestKey(appliance)
}, 120_000)
afterAll(async () => {
  await closeBrowser()
  await appliance.stop()
})

/** Open streams, and how many were ever opened, as the appliance itself counts them. */
async function streams(): Promise<{ open: number; ever: number }> {
  const answer = await fetch(`${appliance.url}/metrics`, { headers: { authorization: `Bearer ${token}` } })
  const text = await answer.text()
  const open = /^sightglass_live_streams(?:\{[^}]*\})? (\d+)$/m.exec(text)?.[1]
  const lines = text.matchAll(/^sightglass_http_request_seconds_count\{([^}]*)\} (\d+)$/gm)
  const ever = [...lines].filter(([, labels]) => labels?.includes('route="/api/live"'))
  return { open: Number(open), ever: ever.reduce((sum, line) => sum + Number(line[2]), 0) }
}

async function openTab(context: BrowserContext, path: string): Promise<Page> {
  const page = await context.newPage()
  await page.goto(appliance.url + path)
  await page.getByText('Live', { exact: true }).waitFor()
  return page
}

let sentCount = 0
/** Posts some events, one after the other, and says which tools they called. */
async function post(count: number, siteId: string): Promise<string[]> {
  const tools = Array.from({ length: count }, () => `tool-${sentCount++}.`)
  for (const tool of tools)
    await send(appliance.url, key, [
      event(tool, { tool, siteId, type: 'tool.executed', occurredAt: new Date().toISOString() }),
    ])
  return tools
}

async function expectTools(page: Page, tools: string[]): Promise<void> {
  for (const tool of tools) await page.locator('.event-row').filter({ hasText: tool }).first().waitFor()
  const shown = (await rows(page)).map((row) => /tool-\d+\./.exec(row)?.[0])
  expect(shown).toEqual([...tools].reverse())
}

test('four tabs share one stream, also when the first one closes while events arrive', async () => {
  const fourTabs = async (first: Page): Promise<void> => {
    await first.getByText('Live', { exact: true }).waitFor()
    const context = first.context()
    const logsTab = await openTab(context, '/logs')
    const ofBlog = await openTab(context, '/logs?siteId=blog')
    const counts = await openTab(context, '/tools')
    expect(await streams()).toEqual({ open: 1, ever: 1 })
    const shop = await post(5, 'shop')
    const blog = await post(5, 'blog')
    await expectTools(first, [...shop, ...blog])
    const posting = post(20, 'blog')
    await first.close()
    const later = await posting
    await expectTools(logsTab, [...shop, ...blog, ...later])
    await expectTools(ofBlog, [...blog, ...later])
    await counts.locator('.headlines strong', { hasText: /^30$/ }).first().waitFor({ timeout: 8_000 })
    const joined = await openTab(context, '/logs?siteId=shop')
    await expectTools(joined, [...shop, ...(await post(2, 'shop'))])
    expect(await streams()).toEqual({ open: 1, ever: 1 })
  }
  // So high that every row is drawn. `context` gives a page of its own: after another file, a reused one missed rows.
  await withOwner(`${appliance.url}/logs`, fourTabs, {
    context: { viewport: { width: 1280, height: 2_000 } },
  })
}, 90_000)

test('without shared workers each tab opens its own stream', async () => {
  await withOwner(`${appliance.url}/logs?siteId=alone`, async (page) => {
    await page.addInitScript(() => Reflect.deleteProperty(window, 'SharedWorker'))
    await page.reload()
    await page.getByText('Live', { exact: true }).waitFor()
    await expectTools(page, await post(3, 'alone'))
  })
}, 40_000)
