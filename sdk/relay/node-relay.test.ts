/** The Node.js relay with the http server of Node.js. */
import { afterEach, expect, test } from 'bun:test'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { CompleteEvent } from '../client/event.ts'
import { publishableKey } from '../../tests/support/fake-appliance.ts'
import { createNodeRelay, type NodeRequest } from './node-relay.ts'

const servers: Server[] = []
afterEach(() => {
  for (const server of servers.splice(0)) server.close()
})

async function setUp(parse: (request: NodeRequest, text: string) => void = () => {}) {
  const exported: CompleteEvent[] = []
  const exporter = { export: (event: CompleteEvent) => exported.push(event) > 0, flush: async () => true }
  const relay = createNodeRelay({ exporter, publishableKey, bodyBytesMax: 10_000, eventsPerMinute: 5 })
  const server = createServer((request, response) => {
    const pass = (): void => void relay(request, response)
    if (parse.length === 0) return pass()
    let text = ''
    request.on('data', (part: Buffer) => {
      text += part.toString()
    })
    request.on('end', () => {
      parse(request as unknown as NodeRequest, text)
      pass()
    })
  })
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const post = (body: unknown) =>
    fetch(`${url}/traces`, { method: 'POST', body: JSON.stringify(body), headers: { origin: url } })
  return { post, exported, url }
}

const body = { publishableKey, events: [{ id: 'trc_1', siteId: 'shop', type: 'a', agent: { class: 'dom' } }] }

test('reads the body itself', async () => {
  const { post, exported } = await setUp()
  const response = await post(body)
  expect([response.status, await response.json()]).toEqual([202, { ok: true, accepted: 1 }])
  expect(exported[0]).toMatchObject({ id: 'trc_1', agent: { class: 'dom', trust: 'detected' } })
})

test('accepts a parsed body and applies its own limit', async () => {
  const { post, exported } = await setUp((request, text) => {
    request.body = JSON.parse(text)
  })
  expect((await post(body)).status).toBe(202)
  expect(exported.length).toBe(1)
  expect((await post({ ...body, more: 'x'.repeat(20_000) })).status).toBe(413)
})

test('a body over the limit is rejected, and the rate limit applies per address', async () => {
  const { post, url } = await setUp()
  expect((await post({ ...body, more: 'x'.repeat(20_000) })).status).toBe(413)
  for (let index = 0; index < 5; index++) expect((await post(body)).status).toBe(202)
  expect((await post(body)).status).toBe(429)
  expect((await fetch(url)).status).toBe(405)
})
