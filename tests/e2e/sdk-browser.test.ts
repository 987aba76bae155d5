/** The browser part of the client package in Chromium: page, relay, appliance, and events of a page that unloads. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { createGateway, createIntelExporter, createRelayHandler, type IntelExporter } from '../../sdk/node.ts'
import type { Appliance } from '../support/binary.ts'
import { closeBrowser, withPage } from '../support/browser.ts'
import { type Keys, startWithKeys } from './sdk-appliance.ts'

let appliance: Appliance
let keys: Keys
let exporter: IntelExporter
let shop: Bun.Server<undefined>
beforeAll(async () => {
  ;({ appliance, keys } = await startWithKeys())
  const { ingestKey, publishableKey } = keys
  exporter = createIntelExporter({ url: appliance.url, ingestKey, intervalMs: 50 })
  const relay = createRelayHandler({
    exporter,
    publishableKey,
    identify: (request) =>
      request.headers.get('cookie')?.includes('user=7') ? { subject: 'user-7', protocol: 'sso' } : null,
  })
  const built = await Bun.build({
    entrypoints: [join(import.meta.dir, '../../sdk/browser/browser.ts')],
    target: 'browser',
    minify: true,
  })
  const script = (await built.outputs[0]?.text()) ?? ''
  const page = `<!doctype html><title>shop</title><link rel="icon" href="data:,"><script type="module">
    import { createBrowserExporter, init } from '/sdk.js'
    const exporters = [createBrowserExporter({ url: '/traces' })]
    window.client = init({ publishableKey: '${publishableKey}', siteId: 'shop', exporters })
    client.trace({ id: 'on-load', type: 'tool.surfaced', metadata: { password: 'hunter2' } })
  </script>`
  shop = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    routes: {
      '/sdk.js': new Response(script, { headers: { 'content-type': 'text/javascript' } }),
      '/traces': (request, server) => relay(request, server),
      '/elsewhere': new Response('<link rel="icon" href="data:,">bye', {
        headers: { 'content-type': 'text/html' },
      }),
      '/': new Response(page, { headers: { 'content-type': 'text/html', 'set-cookie': 'user=7; Path=/' } }),
    },
  })
}, 120_000)
afterAll(async () => {
  await closeBrowser()
  await shop.stop(true)
  await exporter.close()
  await appliance.stop()
})

async function arrived(id: string): Promise<{ [member: string]: unknown }> {
  const deadlineMs = performance.now() + 10_000
  while (performance.now() < deadlineMs) {
    for await (const event of createGateway({ url: appliance.url, secretKey: keys.secretKey }).traces()) {
      if (event.id === id) return event
    }
    await Bun.sleep(50)
  }
  throw new Error(`${id} did not arrive`)
}

test('events of a page arrive with the server’s fields, also those traced while it unloads', async () => {
  await withPage(shop.url.href, async (page) => {
    const event = await arrived('on-load')
    expect(event).toMatchObject({
      siteId: 'shop',
      agent: { trust: 'verified', userAgent: expect.stringContaining('Chrome') },
      metadata: { password: '[scrubbed]', subject: 'user-7', protocol: 'sso' },
    })
    await page.evaluate(
      `client.trace({ id: 'at-the-end', type: 'tool.executed' }); location.href = '/elsewhere'`,
    )
    await page.waitForURL('**/elsewhere')
    expect(await arrived('at-the-end')).toMatchObject({ type: 'tool.executed', siteId: 'shop' })
  })
}, 90_000)

test('the ingest key does not work in a browser, and no page contains it', async () => {
  const page = await (await fetch(shop.url)).text()
  const script = await (await fetch(new URL('/sdk.js', shop.url))).text()
  for (const text of [page, script]) expect(text).not.toContain('agtx_ik_' + keys.ingestKey.slice(8, 12))
  expect(script.length).toBeLessThan(20_000)
  const built = await Bun.build({
    entrypoints: [join(import.meta.dir, '../../sdk/edge.ts')],
    target: 'browser',
    format: 'esm',
  })
  const whole = Buffer.from((await built.outputs[0]?.text()) ?? '').toString('base64')
  await withPage(`${shop.url.href}elsewhere`, async (visited) => {
    const settings = `{ url: 'http://127.0.0.1:9', ingestKey: 'agtx_ik_${'x'.repeat(32)}' }`
    const message = await visited.evaluate(`(async (source) => {
      const { createIntelExporter } = await import(source)
      try {
        createIntelExporter(${settings})
        return 'worked'
      } catch (error) {
        return error.message
      }
    })('data:text/javascript;base64,${whole}')`)
    expect(message).toMatch(/must not be used in a browser/)
  })
}, 90_000)
