/** Laws of the contract for every route: empty parameters, invalid bodies, no content-type, CSV lines. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createApp } from '../../server/app.ts'
import { operations } from '../../server/docs/openapi.ts'
import type { Services } from '../../server/services.ts'
import { event } from '../support/events.ts'
import { person, type Person } from '../support/people.ts'
import { testServer, type TestServer } from '../support/server.ts'

let server: TestServer
let owner: Person
let keys: { ingest: string; secret: string }

beforeAll(async () => {
  server = await testServer()
  owner = await person(server, server.org, 'owner', { operator: true })
  keys = { ingest: await server.key('ingest'), secret: await server.key('secret') }
  const events = [event('evt_1', { tool: 'line\nbreak' }), event('evt_2')]
  const response = await server.call('/v1/sdk/events', { key: keys.ingest, body: { events } })
  expect(response.status).toBe(202)
})
afterAll(() => server[Symbol.asyncDispose]())

interface Refusal {
  error: string
  issues?: { path: string; message: string; code: string }[]
}

/** Every route that may read a body, the dashboard's too, with the credentials that it needs. */
function bodyRoutes(): { method: string; path: string; headers: Record<string, string> }[] {
  const anyProxy: unknown = new Proxy(() => anyProxy, { get: () => anyProxy, apply: () => anyProxy })
  return createApp(anyProxy as Services)
    .routes.filter(({ method }) => method === 'POST' || method === 'PATCH')
    .map(({ method, path }) => {
      const key = path.startsWith('/v1/sdk') ? keys.ingest : keys.secret
      const credentials = path.startsWith('/api/')
        ? { cookie: owner.cookie }
        : { authorization: `Bearer ${key}` }
      return { method, path: path.replace(/:\w+/g, 'nobody'), headers: { ...credentials } }
    })
    .filter(({ path }) => path !== '/api/sign-out')
}

const bytes = (text: string) => new TextEncoder().encode(text) // a string would be sent as text/plain

test('invalid_body always has issues, with the path "" for the whole body', async () => {
  const bodies: [string, Uint8Array, Record<string, string>][] = [
    ['a list', bytes('[1]'), {}],
    ['a text', bytes('"text"'), {}],
    ['a number', bytes('5'), {}],
    ['null', bytes('null'), {}],
    ['a strange member', bytes('{"nosuchmember":1}'), {}],
    ['a deep member', bytes(`{"a":${'['.repeat(200)}${']'.repeat(200)}}`), {}],
    ...['gzip', 'deflate', 'br', 'zstd'].map((encoding): [string, Uint8Array, Record<string, string>] => [
      `corrupt ${encoding}`,
      bytes('this was never compressed'),
      { 'content-encoding': encoding },
    ]),
  ]
  const routes = bodyRoutes()
  expect(routes.length).toBeGreaterThan(50)
  let wholes = 0
  for (const { method, path, headers } of routes) {
    for (const [caseName, body, extraHeaders] of bodies) {
      const json = { 'content-type': 'application/json' }
      const answer = await server.call(path, {
        method,
        body,
        headers: { ...headers, ...json, ...extraHeaders },
      })
      const text = await answer.text()
      if (answer.ok) continue // it reads no body, or accepts this one
      const refusal = JSON.parse(text) as Refusal
      if (refusal.error !== 'invalid_body') continue
      const refused = { route: `${method} ${path}`, what: caseName, issues: refusal.issues }
      expect(refused).toEqual({ ...refused, issues: expect.any(Array) })
      expect(refusal.issues!.length).toBeGreaterThan(0)
      for (const issue of refusal.issues!) {
        expect(issue).toMatchObject({ path: expect.any(String), message: expect.any(String) })
        expect(issue.code).toMatch(/^[a-z_]+$/)
      }
      if (caseName.startsWith('corrupt')) {
        expect({ ...refused, path: refusal.issues![0]!.path }).toEqual({ ...refused, path: '' })
        wholes++
      }
    }
  }
  expect(wholes).toBeGreaterThan(50)
}, 60_000)

test('an empty value counts as absent, of every parameter of every operation that has one value', async () => {
  let triedCount = 0
  for (const { method, path, query = {}, params = {} } of operations.filter(
    ({ method }) => method === 'get',
  )) {
    if (path.startsWith('/v1/live')) continue // never ends
    const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => params[name]?.example ?? 'nobody')
    const plain = await server.call(filled, { method: method.toUpperCase(), key: keys.secret })
    const single = Object.entries(query).filter(([, { repeats }]) => repeats !== true)
    for (const [name] of single) {
      const empty = await server.call(`${filled}?${name}=`, { key: keys.secret })
      expect([path, name, empty.status]).toEqual([path, name, plain.status])
      triedCount++
    }
  }
  expect(triedCount).toBeGreaterThan(15)
  const streamed = await server.call('/v1/traces?cursor=&since=&until=', {
    key: keys.secret,
    headers: { accept: 'application/x-ndjson' },
  })
  expect((await streamed.text()).trimEnd().split('\n').at(-1)).toBe('{"_end":{"count":2}}')
  const exported = await server.call('/v1/audit/export', { key: keys.secret, body: { since: '', until: '' } })
  expect(exported.status).toBe(200)
})

test('empty times count as absent on the dashboard’s routes too', async () => {
  const anyProxy: unknown = new Proxy(() => anyProxy, { get: () => anyProxy, apply: () => anyProxy })
  const pages = createApp(anyProxy as Services)
    .routes.filter(({ method, path }) => method === 'GET' && path.startsWith('/api/') && !path.includes(':'))
    .filter(({ path }) => path !== '/api/live')
  let taking = 0
  for (const { path } of pages) {
    for (const name of ['cursor', 'since', 'until']) {
      const wrong = await owner.call(`${path}?${name}=nonsense`)
      const refusal = wrong.status === 400 ? ((await wrong.json()) as Refusal) : null
      if (refusal === null || refusal.issues?.[0]?.code === 'unknown') continue
      const plain = await owner.call(path)
      const empty = await owner.call(`${path}?${name}=`)
      expect([path, name, empty.status]).toEqual([path, name, plain.status])
      taking++
    }
  }
  expect(taking).toBeGreaterThan(10)
}, 60_000)

interface Model {
  properties?: { [name: string]: unknown }
  required?: readonly string[]
}

test('null is an absent value, of every optional field of every body that creates or sends something', async () => {
  const creation = operations.find(
    ({ method, path }) => method === 'post' && path === '/v1/webhooks/endpoints',
  )
  const endpointResponse = await server.call('/v1/webhooks/endpoints', {
    key: keys.secret,
    body: creation!.body!.example,
  })
  const { endpoint } = (await endpointResponse.json()) as { endpoint: { id: string } }
  let triedCount = 0
  for (const { method, path, key, body } of operations) {
    const { properties = {}, required = [] } = (body?.schema ?? {}) as Model
    const isCreation = method === 'post' && !path.includes('{') && path !== '/mcp' // whose id is no optional value
    if (!isCreation || typeof body?.example !== 'object') continue
    const example = body.example as { [name: string]: unknown }
    const whole = 'endpointId' in properties ? { ...example, endpointId: endpoint.id } : example
    for (const name of Object.keys(properties).filter((property) => !required.includes(property))) {
      const { [name]: _removed, ...absent } = whole
      const send = async (payload: object) => {
        const headers = { 'content-type': 'application/json' }
        const text = JSON.stringify(payload)
        return server.call(path, { method: 'POST', key: keys[key as 'secret'], body: text, headers })
      }
      const plain = await send(absent)
      const withNull = await send({ ...absent, [name]: null })
      expect([path, name, withNull.status]).toEqual([path, name, plain.status])
      triedCount++
    }
  }
  expect(triedCount).toBeGreaterThan(20)
}, 60_000)

test('a missing content-type is JSON', async () => {
  for (const { method, path, headers } of bodyRoutes()) {
    const answer = await server.call(path, { method, body: bytes('{"nosuchmember":1}'), headers })
    expect([path, answer.status === 415]).toEqual([path, false])
  }
  const events = JSON.stringify({ events: [event('evt_1')] })
  const response = await server.call('/v1/sdk/events', {
    method: 'POST',
    body: bytes(events),
    headers: { authorization: `Bearer ${keys.ingest}` },
  })
  expect(response.status).toBe(202)
  const exported = await server.call('/v1/audit/export', {
    method: 'POST',
    body: bytes('{"format":"csv"}'),
    headers: { authorization: `Bearer ${keys.secret}` },
  })
  expect(exported.headers.get('content-type')).toBe('text/csv; charset=utf-8')
}, 60_000)

test('lines of every CSV end with LF, and none with CR', async () => {
  const csv = async (path: string, body?: unknown) => {
    const answer = await server.call(path, {
      key: keys.secret,
      headers: { accept: 'text/csv' },
      ...(body === undefined ? {} : { body }),
    })
    return answer.text()
  }
  const offered = operations.filter(({ answers }) => JSON.stringify(answers).includes('text/csv'))
  expect(offered.map(({ id }) => id).toSorted()).toEqual(['explore', 'exportAudit', 'listTraces'])
  const texts = [
    await csv('/v1/traces'),
    await csv('/v1/audit/export', { format: 'csv' }),
    await csv('/v1/explore?by=type'),
  ]
  for (const text of texts) {
    expect(text).not.toContain('\r')
    expect(text.endsWith('\n')).toBe(true)
  }
  expect(texts[0]!.split('\n').length).toBe(5) // the header, two events, a line break in a cell, the end
})
