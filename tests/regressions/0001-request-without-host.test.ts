/** A request without a valid Host header is checked and routed by the same path. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { event } from '../support/events.ts'
import { testServer, type TestServer } from '../support/server.ts'

let server: TestServer
let secret: string
let ingest: string

beforeAll(async () => {
  server = await testServer({ ingestListen: { host: '127.0.0.1', port: 0 } })
  secret = await server.key('secret')
  ingest = await server.key('ingest')
})
afterAll(() => server[Symbol.asyncDispose]())

/** Sends bytes unchanged and returns the status of the response. */
function status(url: string, head: string, body = ''): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  const socket = connect(Number(new URL(url).port), '127.0.0.1', () => socket.write(`${head}\r\n\r\n${body}`))
  socket.on('error', reject)
  socket.on('data', (data) => {
    resolve(Number(/^HTTP\/1\.1 (\d+)/.exec(String(data))?.[1]))
    socket.destroy()
  })
  return promise
}

const hosts = ['Host: a b', 'Host: ', 'Host: \u00e9']

test('the ingest listener serves nothing else for a path that only resembles ingest', async () => {
  for (const host of hosts) {
    for (const path of ['/x/v1/sdk/v1/traces', '/x/v1/sdk/api/setup', '/x/v1/sdk/v1/metrics']) {
      const head = `GET ${path} HTTP/1.1\r\n${host}\r\nauthorization: Bearer ${secret}`
      expect([path, await status(server.ingestUrl!, head)]).toEqual([path, 404])
    }
  }
})

test('a path that only resembles the public API does not pass the Host check of the dashboard', async () => {
  for (const host of hosts) {
    expect(await status(server.url, `GET /x/v1/aa/api/setup HTTP/1.1\r\n${host}`)).toBe(403)
    expect(await status(server.url, `GET /api/setup HTTP/1.1\r\n${host}`)).toBe(403)
  }
})

test('health and the public API answer without a Host: HTTP/1.0 health checks send none', async () => {
  expect(await status(server.url, 'GET /healthz HTTP/1.0')).toBe(200)
  expect(await status(server.ingestUrl!, 'GET /readyz HTTP/1.0')).toBe(200)
  for (const host of hosts) {
    expect(await status(server.url, `GET /v1/limits HTTP/1.1\r\n${host}`)).toBe(200)
    const body = JSON.stringify({ events: [event('without-host')] })
    const head = [
      'POST /v1/sdk/events HTTP/1.1',
      host,
      `authorization: Bearer ${ingest}`,
      `content-length: ${body.length}`,
    ]
    expect(await status(server.url, head.join('\r\n'), body)).toBe(202)
  }
})
