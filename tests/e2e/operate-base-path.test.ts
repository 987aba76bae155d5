/** The appliance below a path of a shared host, behind a proxy that does not strip the path, and on a unix socket. */
import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { statSync, writeFileSync } from 'node:fs'
import { binaryPath, cli, startAppliance } from '../support/binary.ts'
import { folderTest } from '../support/engine.ts'
import { closeBrowser, withPage } from '../support/browser.ts'
import { event } from '../support/events.ts'
import { run } from '../support/process.ts'
import { tempDir } from '../support/temp-dir.ts'
import { ingestKey, owner, ownerEnv, send, signIn } from './dashboard-actions.ts'

setDefaultTimeout(60_000)
afterAll(closeBrowser)

/** As nginx with `proxy_pass` without a path: the address and the Host go on as they came. */
function startProxy(upstream: string) {
  return Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 30,
    async fetch(request) {
      const { pathname, search } = new URL(request.url)
      if (!/^\/sightglass(?:\/|$)/.test(pathname)) return new Response('the shop', { status: 404 })
      const headers = new Headers(request.headers)
      const { method, body, signal } = request
      const passed = { method, headers, body, signal, redirect: 'manual', decompress: false } as const
      return fetch(upstream + pathname + search, passed)
    },
  })
}

test('the dashboard in a browser: setup, pages, reload, live events, links, download, docs, sign-out', async () => {
  await using appliance = await startAppliance({ args: ['--base-path', '/sightglass/'] })
  expect(appliance.url).toEndWith('/sightglass')
  await using proxy = startProxy(new URL(appliance.url).origin)
  const shared = `http://127.0.0.1:${proxy.port}`
  const link = new URL(await appliance.setupLink())
  await withPage(`${shared}${link.pathname}${link.hash}`, async (page) => {
    const pathOf = () => new URL(page.url()).pathname
    await page.getByLabel('Email').fill(owner.email)
    await page.getByLabel('Password').fill(owner.password)
    await page.getByRole('button', { name: 'Create owner' }).click()
    await page.getByRole('heading', { name: 'Overview', exact: true }).waitFor()
    expect(pathOf()).toBe('/sightglass/overview')
    const command = await page.getByLabel('Command that sends a first event').innerText()
    expect(command).toContain(`${shared}/sightglass/v1/sdk/events`)
    await send(`${shared}/sightglass`, await ingestKey(appliance), [event('evt_base')])
    await page.getByRole('heading', { name: 'Last 7 days' }).waitFor()
    await page.getByRole('link', { name: 'Logs', exact: true }).click()
    await page.locator('.event-row').waitFor() // over the live stream

    await page.getByRole('link', { name: 'Analytics' }).click()
    await page.getByRole('heading', { name: 'Analytics', exact: true }).waitFor()
    expect(pathOf()).toBe('/sightglass/analytics')
    await page.goBack()
    await page.locator('.event-row').waitFor()
    await page.goto(`${shared}/sightglass/settings/system`)
    await page.getByText(`${shared}/sightglass`, { exact: true }).first().waitFor()
    const [cookie] = await page.context().cookies()
    expect(cookie).toMatchObject({ name: 'sightglass', path: '/sightglass' })
    await page.goto(`${shared}/sightglass/docs/languages`)
    await page.getByRole('button', { name: 'Create an ingest key' }).click()
    await page.getByText('Created for the organization').waitFor()
    await page.goto(`${shared}/sightglass/docs`)
    expect(await page.locator('pre').first().innerText()).toContain(`${shared}/sightglass/`)
    await page.locator('a.brand').click()
    await page.locator('.shell').waitFor()
    expect(pathOf()).toStartWith('/sightglass/')
  })
  await withPage(
    `${shared}/sightglass`,
    async (page) => {
      await signIn(page)
      expect(new URL(page.url()).pathname).toStartWith('/sightglass/')
    },
    { allow: [/401/] },
  )
})

test('outside the base path only health responds, and links and documents contain it', async () => {
  const args = ['--base-path=/a/b', '--public-url=https://tools.example', '--ingest-listen=127.0.0.1:0']
  await using appliance = await startAppliance({ args, env: ownerEnv })
  const origin = new URL(appliance.url).origin
  const get = (path: string) => fetch(origin + path, { redirect: 'manual' })
  expect((await get('/healthz')).status).toBe(200)
  expect((await get('/a/b/healthz')).status).toBe(200)
  for (const path of ['/', '/v1/limits', '/a/bc/', '/a/v1/limits', '/A/b/']) {
    const answer = await get(path)
    expect([path, answer.status]).toEqual([path, 404])
    expect(await answer.json()).toMatchObject({ hint: 'This appliance is served under /a/b/.' })
  }
  const bare = await get('/a/b?x=1')
  expect([bare.status, bare.headers.get('location')]).toEqual([308, '/a/b/?x=1'])
  expect(((await (await get('/a/b/openapi.json')).json()) as { servers: unknown }).servers).toEqual([
    { url: '/a/b' },
  ])
  expect((await fetch(`${appliance.ingestUrl}/v1/limits`)).status).toBe(200)
  const accountExit = await appliance.cli(
    'account',
    'create',
    '--email=b@example.com',
    '--role=viewer',
    '--json',
  )
  expect((JSON.parse(accountExit.stdout) as { link: string }).link).toStartWith(
    'https://tools.example/a/b/reset#',
  )
  const page = await get('/a/b/logs')
  const html = await page.text()
  expect(html).toContain('<meta name="base-path" content="/a/b"')
  const script = /src="(\/a\/b\/assets\/[^"]+)"/.exec(html)![1]!
  for (const encoding of ['br', 'gzip', 'identity']) {
    const asset = await fetch(origin + script, { headers: { 'accept-encoding': encoding } })
    expect([asset.status, asset.headers.get('content-encoding') ?? 'identity']).toEqual([200, encoding])
    expect(await asset.text()).not.toMatch(/["'`]\/assets\//)
  }
  expect((await get(script.slice('/a/b'.length))).status).toBe(404)
})

test('the setup link names a reachable address when the server listens on every address', async () => {
  await using appliance = await startAppliance({ args: ['--listen', '0.0.0.0:0'] })
  expect(appliance.url).toStartWith('http://0.0.0.0:')
  const link = new URL(await appliance.setupLink())
  expect(link.hostname).not.toBe('0.0.0.0')
  expect((await fetch(new URL('/setup', link.origin))).status).toBe(200)
})

folderTest(
  'on a unix socket the proxy is trusted, a dead socket is replaced, a live one and a file are not',
  async () => {
    using dir = tempDir('socket')
    const socket = dir.join('http.sock')
    const command = [binaryPath, 'serve', '--data-dir', dir.join('data'), '--listen', `unix:${socket}`]
    const env = { PATH: process.env.PATH ?? '', HOME: dir.path, ...ownerEnv }
    const ready = (line: string) => (line.startsWith('sightglass ') ? line : null)
    for (const end of ['SIGKILL', 'SIGTERM'] as const) {
      const child = run(command, { cwd: dir.path, env })
      expect(await child.line(ready, 15_000)).toMatch(new RegExp(` listening on unix:${socket}$`))
      expect(statSync(socket).mode & 0o777).toBe(0o660)
      expect(await (await fetch('http://localhost/healthz', { unix: socket })).json()).toMatchObject({
        status: 'ok',
      })
      const headers = {
        'content-type': 'application/json',
        'x-forwarded-proto': 'https',
        'x-forwarded-for': '192.0.2.7',
      }
      const body = JSON.stringify(owner)
      const entered = await fetch('http://localhost/api/sign-in', {
        unix: socket,
        method: 'POST',
        headers,
        body,
      })
      expect([entered.status, entered.headers.get('set-cookie')]).toEqual([
        200,
        expect.stringMatching(/^__Host-/),
      ])
      const second = await cli(['serve', '--listen', `unix:${socket}`], { dataDir: dir.join('other') })
      expect([second.code, second.stderr]).toEqual([
        1,
        expect.stringContaining('another process is listening there'),
      ])
      const doctor = await cli(['doctor', '--json', '--listen', `unix:${socket}`], {
        dataDir: dir.join('data'),
      })
      expect(doctor.stdout).toContain('"server-store","status":"ok"')
      const rows = await cli(['export', 'audit', '--json'], { dataDir: dir.join('data') })
      expect(rows.stdout).toContain('192.0.2.7')
      const live = await cli(['demo', '--live'], { dataDir: dir.join('data') })
      expect([live.code, live.stderr]).toEqual([1, expect.stringContaining('with --url')])
      child.signal(end)
      await child.exited
    }
    expect(statSync(socket, { throwIfNoEntry: false })).toBeUndefined()
    writeFileSync(socket, 'a file')
    const blocked = await cli(['serve', '--listen', `unix:${socket}`], { dataDir: dir.join('data') })
    expect([blocked.code, blocked.stderr]).toEqual([1, expect.stringContaining('is not a socket')])
  },
)
