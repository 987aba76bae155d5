/** The client package as the appliance serves it: npm installs it without a registry, a page imports the module. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { writeClientPackage } from '../../scripts/client-package.ts'
import type { Appliance } from '../support/binary.ts'
import { closeBrowser, withPage } from '../support/browser.ts'
import { run } from '../support/process.ts'
import { tempDir } from '../support/temp-dir.ts'
import { startWithOwner, withOwner } from './dashboard-actions.ts'
import { hostEnv, type Keys, makeKeys, storedIds } from './sdk-appliance.ts'

let appliance: Appliance
let keys: Keys
let manifest: {
  version: string
  package: string
  browser: { path: string; immutablePath: string; integrity: string }
  webmcp: { path: string; immutablePath: string; integrity: string }
}
beforeAll(async () => {
  appliance = await startWithOwner({ args: ['--ingest-listen', '127.0.0.1:0'] })
  keys = await makeKeys(appliance)
  manifest = await (await fetch(`${appliance.url}/sdk/manifest.json`)).json()
}, 60_000)
afterAll(async () => {
  await closeBrowser()
  await appliance.stop()
})

test('npm installs it with no registry reachable, and the first program of its README runs as it stands', async () => {
  using dir = tempDir('npm-project')
  writeFileSync(dir.join('package.json'), '{"private":true,"type":"module"}\n')
  const closed = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('', { status: 503 }) })
  const registry = closed.url.origin
  await closed.stop(true)
  const env = {
    PATH: process.env.PATH ?? '',
    HOME: dir.path,
    npm_config_cache: dir.join('.npm'),
    npm_config_registry: registry,
    npm_config_audit: 'false',
    npm_config_fund: 'false',
  }
  const npm = run(['npm', 'install', `${appliance.url}/sdk/sightglass-sdk.tgz`], { cwd: dir.path, env })
  expect({ code: await npm.exited, stderr: npm.stderr().replace(/^npm warn.*\n/gm, '') }).toEqual({
    code: 0,
    stderr: '',
  })
  const readme = readFileSync(dir.join('node_modules/@sightglass/sdk/README.md'), 'utf8')
  writeFileSync(dir.join('first.js'), /```js\n([\s\S]*?)```/.exec(readme)?.[1] ?? '')
  const countBefore = (await storedIds(appliance.url, keys.secretKey)).length
  const program = run(['node', 'first.js'], { cwd: dir.path, env: hostEnv(appliance.url, keys) })
  expect({ code: await program.exited, stderr: program.stderr() }).toEqual({ code: 0, stderr: '' })
  expect((await storedIds(appliance.url, keys.secretKey)).length).toBe(countBefore + 1)
}, 60_000)

test('both listeners serve it to every host and origin, without a key, cached as its address says', async () => {
  const { browser, webmcp } = manifest
  const module = ['text/javascript; charset=utf-8', 'no-cache', browser.integrity] as const
  const script = ['text/javascript; charset=utf-8', 'no-cache', webmcp.integrity] as const
  const forever = 'public, max-age=31536000, immutable'
  for (const url of [appliance.url, appliance.ingestUrl]) {
    for (const [path, type, cache, integrity] of [
      ['/sdk/sightglass-sdk.tgz', 'application/gzip', 'no-cache', ''],
      ['/sdk/browser.js', ...module],
      ['/sdk/webmcp.js', ...script],
      [browser.immutablePath, module[0], forever, module[2]],
      [webmcp.immutablePath, script[0], forever, script[2]],
    ] as const) {
      const headers = { host: 'shop.example', origin: 'https://shop.example' }
      const answer = await fetch(url + path, { headers })
      expect([path, answer.status, answer.headers.get('content-type')]).toEqual([path, 200, type])
      expect(answer.headers.get('cache-control')).toBe(cache)
      expect(answer.headers.get('access-control-allow-origin')).toBe('*')
      expect(answer.headers.get('cross-origin-resource-policy')).toBe('cross-origin')
      const bytes = new Uint8Array(await answer.arrayBuffer())
      if (path.endsWith('.js'))
        expect(`sha384-${createHash('sha384').update(bytes).digest('base64')}`).toBe(integrity)
      const etag = answer.headers.get('etag') ?? ''
      expect((await fetch(url + path, { headers: { 'if-none-match': etag } })).status).toBe(304)
      expect((await fetch(url + path, { method: 'POST' })).status).toBe(405)
    }
    const otherVersion = await fetch(`${url}/sdk/0123456789abcdef/browser.js`)
    expect([otherVersion.status, await otherVersion.json()]).toMatchObject([
      404,
      { hint: expect.stringContaining(browser.immutablePath) },
    ])
  }
})

test('a page of another origin imports the module, under the integrity value of the manifest', async () => {
  const { immutablePath, integrity } = manifest.browser
  const url = appliance.url + immutablePath
  const page = (value: string): string => `<!doctype html><title>shop</title><link rel="icon" href="data:,">
    <script type="module" crossorigin integrity="${value}" src="${url}"></script>
    <script type="module">
      import { createBrowserExporter, init } from '${url}'
      const exporters = [createBrowserExporter({ url: '/traces' })]
      window.client = init({ publishableKey: '${keys.publishableKey}', siteId: 'shop', exporters })
      client.trace({ id: 'from-a-page', type: 'tool.surfaced' })
    </script>`
  const posted = Promise.withResolvers<{ events: { id: string }[] }>()
  const shop = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    routes: {
      '/traces': async (request) => {
        posted.resolve((await request.json()) as { events: { id: string }[] })
        return Response.json({ ok: true }, { status: 202 })
      },
      '/': () => new Response(page(integrity), { headers: { 'content-type': 'text/html' } }),
    },
  })
  try {
    await withPage(
      shop.url.origin,
      async () => {
        expect((await posted.promise).events.map(({ id }) => id)).toEqual(['from-a-page'])
      },
      { allow: [/^request to another host: GET \S+\/sdk\/\w+\/browser\.js$/] },
    )
  } finally {
    await shop.stop(true)
  }
}, 30_000)

test('Settings shows the command and the script with this appliance’s address', async () => {
  await withOwner(`${appliance.url}/settings/ingest-keys`, async (page) => {
    const command = page.getByLabel('Install command')
    expect(await command.textContent()).toBe(`npm install ${appliance.url}/sdk/sightglass-sdk.tgz`)
    const script = (await page.getByLabel('Browser script').textContent()) ?? ''
    expect(script).toContain(manifest.browser.integrity)
    expect(script).toContain(manifest.browser.immutablePath)
  })
}, 30_000)

test('the script is at most 3 KB and the module with WebMCP at most 8 KB, compressed as a browser gets them', async () => {
  for (const [path, bytesMax] of [
    ['/sdk/webmcp.js', 3 * 1_024],
    ['/sdk/browser.js', 8 * 1_024],
  ] as const) {
    const answer = await fetch(appliance.url + path, {
      headers: { 'accept-encoding': 'gzip' },
      decompress: false,
    })
    expect(answer.headers.get('content-encoding')).toBe('gzip')
    expect((await answer.bytes()).length).toBeLessThanOrEqual(bytesMax)
  }
})

test('the same sources give the same bytes, whenever they are packed', async () => {
  using dir = tempDir('twice')
  for (const name of ['one', 'two']) await writeClientPackage(dir.join(name))
  for (const name of ['sightglass-sdk.tgz', 'browser.js', 'webmcp.js'])
    expect(Bun.hash(readFileSync(join(dir.path, 'one', name)))).toBe(
      Bun.hash(readFileSync(join(dir.path, 'two', name))),
    )
}, 60_000)
