/** The API reference at /docs in Chromium: complete, without a network, in both themes, with curl calls that work. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type Appliance, startAppliance } from '../support/binary.ts'
import { picture } from '../support/picture.ts'
import { closeBrowser, withPage } from '../support/browser.ts'

let server: Appliance

beforeAll(async () => {
  server = await startAppliance()
})
afterAll(async () => {
  await closeBrowser()
  await server.stop()
})

interface Document {
  webhooks: { [type: string]: unknown }
  paths: { [path: string]: { [method: string]: { operationId: string; summary: string } } }
}

test('every operation and message of the OpenAPI document has a link, a section and an example', async () => {
  const api = (await (await fetch(`${server.url}/openapi.json`)).json()) as Document
  const ids = Object.values(api.paths).flatMap((path) =>
    Object.values(path).map((operation) => operation.operationId),
  )
  await withPage(`${server.url}/docs`, async (page) => {
    expect(await page.title()).toBe('API reference · Sightglass')
    const sections = await page
      .locator('section.operation')
      .evaluateAll((elements) => elements.map(({ id }) => id))
    const messages = Object.keys(api.webhooks)
    expect(messages).toContain('trace.batch')
    expect(sections.toSorted()).toEqual(['client-package', ...ids, ...messages].toSorted())
    const links = await page
      .locator('nav a[href^="#"]')
      .evaluateAll((elements) => elements.map((link) => link.getAttribute('href')))
    expect(links).toEqual(sections.map((id) => `#${id}`))
    expect(await page.locator('section:not(:has(pre))').count()).toBe(0)
  })
})

test('the sentence about OpenAPI fits in one line at both widths', async () => {
  await withPage(`${server.url}/docs`, async (page) => {
    for (const width of [1440, 390]) {
      await page.setViewportSize({ width, height: 900 })
      const lines = await page
        .locator('header .docs-lead')
        .last()
        .evaluate((lead) => {
          const range = document.createRange()
          range.selectNodeContents(lead)
          const tops = [...range.getClientRects()].map(({ top }) => Math.round(top))
          return tops.filter((top, index) => index === 0 || top - tops[index - 1]! > 5).length
        })
      expect([width, lines]).toEqual([width, 1])
    }
  })
})

test('"Copy as curl" copies a call to this appliance', async () => {
  await withPage(`${server.url}/docs`, async (page) => {
    await page.locator('#postEvents').getByRole('button', { name: 'Copy as curl' }).click()
    await page.locator('#postEvents').getByRole('button', { name: 'Copied' }).waitFor()
    const copied = await page.evaluate(() => navigator.clipboard.readText())
    expect(copied).toStartWith(
      `curl '${server.url}/v1/sdk/events' \\\n  -H "authorization: Bearer $SIGHTGLASS_INGEST_KEY"`,
    )
    expect(copied).toContain(`-d '{"events":[{"id":"evt_1"`)
  })
})

test('the copied call works in a shell', async () => {
  const key = JSON.parse(
    (await server.cli('key', 'create', '--kind', 'ingest', '--label', 'docs', '--json')).stdout,
  ) as { key: string }
  const html = await (await fetch(`${server.url}/docs`)).text()
  const call = /aria-label="curl">(curl [^<]*sdk\/events[^<]*)</.exec(html)?.[1] ?? ''
  const text = call
    .replaceAll('&#x27;', "'")
    .replaceAll('&quot;', '"')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&')
  // The shell splits the call into words, so the test needs no curl.
  const words = Bun.spawnSync(['sh', '-c', `curl() { printf '%s\\0' "$@"; }; ${text}`], {
    env: { PATH: process.env.PATH ?? '', SIGHTGLASS_INGEST_KEY: key.key },
  })
  const [address = '', , authorization = '', , contentType = '', , body = ''] = words.stdout
    .toString()
    .split('\0')
  const [sentEvent] = (JSON.parse(body) as { events: { occurredAt: string }[] }).events
  expect(Math.abs(Date.now() - Date.parse(sentEvent!.occurredAt))).toBeLessThan(2 * 3_600_000)
  const header = (line: string) => line.split(': ') as [string, string]
  const headers = Object.fromEntries([header(authorization), header(contentType)])
  const response = await fetch(address, { method: 'POST', headers, body })
  expect([response.status, await response.json()]).toEqual([202, { ok: true, accepted: 1, deduped: 0 }])
})

test('the audit proof format is a page with a complete verifier', async () => {
  await withPage(`${server.url}/docs`, async (page) => {
    await page.getByRole('link', { name: 'Audit proof format' }).click()
    await page.waitForURL('**/docs/proof')
    expect(await page.locator('h1').innerText()).toBe('Audit proof format')
    expect(await page.locator('main ol > li').count()).toBe(2)
    const code = await page.locator('main pre').last().innerText()
    expect(code).toStartWith("import { createHash, createPublicKey, verify } from 'node:crypto'")
    await page.setViewportSize({ width: 390, height: 800 })
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)
    expect(overflow).toBeLessThanOrEqual(0)
  })
})

test('the guide of several nodes is a page that fits a phone', async () => {
  await withPage(
    `${server.url}/docs/operations`,
    async (page) => {
      await page.getByRole('link', { name: 'Several nodes' }).click()
      await page.waitForURL('**/docs/nodes')
      expect(await page.locator('h1').innerText()).toBe('Several nodes')
      const codes = await page.locator('main pre').allInnerTexts()
      for (const part of ['listen sightglass', 'proxy_next_upstream', 'synchronous_mode_strict'])
        expect(codes.filter((code) => code.includes(part))).toHaveLength(1)
      await picture(page, 'guide-nodes-1440')
      await page.setViewportSize({ width: 390, height: 844 })
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)
      expect(overflow).toBeLessThanOrEqual(0)
      await page.evaluate(() => document.querySelector('#load-balancer')?.scrollIntoView())
      await picture(page, 'guide-nodes-390')
      await page.evaluate(() => document.querySelector('#what-differs-from-one-machine')?.scrollIntoView())
      await picture(page, 'guide-nodes-390-end')
    },
    { viewport: { width: 1440, height: 900 } },
  )
})

test.each(['light', 'dark'] as const)(
  'in %s it has the colours of the dashboard and fits a phone',
  async (colorScheme) => {
    await withPage(
      `${server.url}/docs`,
      async (page) => {
        const ground = await page.evaluate(() => getComputedStyle(document.body).backgroundColor)
        expect(ground).toBe(colorScheme === 'light' ? 'rgb(246, 246, 244)' : 'rgb(18, 19, 21)')
        await page.setViewportSize({ width: 390, height: 800 })
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)
        expect(overflow).toBeLessThanOrEqual(0)
      },
      { colorScheme },
    )
  },
)
