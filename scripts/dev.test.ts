/** The development server: pages from source, everything else from the appliance, which may be down. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { run, type Running } from '../tests/support/process.ts'
import { root } from './build.ts'

const appliance = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  async fetch(request) {
    const { pathname, search } = new URL(request.url)
    const { host, origin } = Object.fromEntries(request.headers)
    return Response.json({
      method: request.method,
      path: pathname + search,
      host,
      origin,
      body: await request.text(),
    })
  },
})
const applianceHost = `127.0.0.1:${appliance.port}`
let server: Running
let url = ''

beforeAll(async () => {
  const args = ['--api', `http://${applianceHost}`, '--listen', '127.0.0.1:0']
  server = run([process.execPath, join(root, 'scripts/dev.ts'), ...args], { cwd: root, env: {} })
  url = await server.line((line) => /work on (http:\S+),/.exec(line)?.[1] ?? null, 15_000)
}, 20_000)

afterAll(async () => {
  server.signal('SIGTERM')
  await server.exited
  await appliance.stop(true)
})

test('every path of the dashboard returns its page, and the files that it names exist', async () => {
  for (const path of ['/', '/settings/keys']) {
    const answer = await fetch(url + path)
    expect(answer.status).toBe(200)
    const script = /src="(\/assets\/[^"]+\.js)"/.exec(await answer.text())?.[1]
    const file = await fetch(`${url}${script}`)
    expect(file.headers.get('content-type')).toStartWith('text/javascript')
    expect((await file.text()).length).toBeGreaterThan(1_000)
  }
})

test('requests reach the appliance as if they were sent to it directly', async () => {
  const headers = { origin: url, 'content-type': 'application/json' }
  const answer = await fetch(`${url}/api/sign-in?a=1`, { method: 'POST', headers, body: '{"b":2}' })
  const request = {
    method: 'POST',
    path: '/api/sign-in?a=1',
    host: applianceHost,
    origin: `http://${applianceHost}`,
    body: '{"b":2}',
  }
  expect(await answer.json()).toEqual(request)
  expect(await (await fetch(`${url}/v1/limits`)).json()).toMatchObject({ method: 'GET', path: '/v1/limits' })
})
