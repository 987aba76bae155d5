/** Junk in a query string is a 400 that names the parameter, on every route, and never a 500. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createApp } from '../../server/app.ts'
import type { Services } from '../../server/services.ts'
import { person, type Person } from '../support/people.ts'
import { testServer, type TestServer } from '../support/server.ts'
import { event } from '../support/events.ts'

let server: TestServer
let owner: Person
let keys: { ingest: string; secret: string }

beforeAll(async () => {
  server = await testServer()
  owner = await person(server, server.org, 'owner', { operator: true })
  keys = { ingest: await server.key('ingest'), secret: await server.key('secret') }
})
afterAll(() => server[Symbol.asyncDispose]())

interface Target {
  method: string
  path: string
  headers: Record<string, string>
}

const streams = new Set(['/v1/live', '/api/live'])

function targets(): Target[] {
  const anyProxy: unknown = new Proxy(() => anyProxy, { get: () => anyProxy, apply: () => anyProxy })
  return createApp(anyProxy as Services)
    .routes.filter(({ path }) => path !== '/api/sign-out' && !streams.has(path))
    .map(({ method, path }) => {
      const key = path.startsWith('/v1/sdk') || path === '/v1/logs' ? keys.ingest : keys.secret
      const isKeyed = path.startsWith('/v1/') || path === '/mcp'
      const credentials = isKeyed
        ? { authorization: `Bearer ${key}` }
        : { cookie: owner.cookie, origin: server.url }
      return {
        method,
        path: path.replace(/:\w+/g, 'nobody'),
        headers: { ...credentials } as Record<string, string>,
      }
    })
}

/** Query strings that no client of ours sends. `name` is the parameter that a 400 must name, if it can. */
const junk: [what: string, query: string][] = [
  ['an unknown name', 'nosuch=1'],
  ['a broken escape', 'nosuch=%'],
  ['a broken escape in the name', '%zz=1'],
  ['half of an escape', 'nosuch=%e'],
  ['bytes that are not UTF-8', 'nosuch=%ff%fe'],
  ['a surrogate', 'nosuch=%ed%a0%80'],
  ['NUL', 'nosuch=%00'],
  ['NUL in the name', '%00=1'],
  ['no name', '=1'],
  ['only separators', '&&&='],
  ['a prototype', '__proto__=1'],
  ['a constructor', 'constructor=1'],
  ['2,000 repeats', Array.from({ length: 2_000 }, () => 'nosuch=1').join('&')],
  ['a huge value', `nosuch=${'x'.repeat(9_000)}`],
  ['a huge name', `${'n'.repeat(9_000)}=1`],
]

/** The same for parameters that routes do have. */
const knownParameters = [
  'since',
  'until',
  'cursor',
  'limit',
  'q',
  'type',
  'siteId',
  'step',
  'by',
  'after',
  'format',
  'range',
]
const values = [
  '%',
  '%ff',
  '%00',
  '%ed%a0%80',
  'x'.repeat(3_000),
  '-1',
  '1e999',
  'NaN',
  '[]',
  '{"a":1}',
  "';--",
  '..',
]

/** Some routes first miss one of these. */
const required = new Set(['since', 'by', 'after', 'siteId'])

interface Refusal {
  error?: string
  message?: string
  issues?: { path: string }[]
}

async function ask(
  { method, path, headers }: Target,
  query: string,
): Promise<{ status: number; body: Refusal }> {
  const body = method === 'GET' || method === 'HEAD' || method === 'DELETE' ? {} : { body: {} }
  const response = await server.call(`${path}?${query}`, { method, headers, ...body })
  const text = await response.text()
  const isJson = response.headers.get('content-type')?.includes('json') === true
  return { status: response.status, body: isJson && !response.ok ? (JSON.parse(text) as Refusal) : {} }
}

test('junk is never a 500, and a refused query names its parameter', async () => {
  const allTargets = targets()
  expect(allTargets.length).toBeGreaterThan(100)
  let refused = 0
  const broken: string[] = []
  for (const target of allTargets) {
    // Each route gets all the unknown ones, and every parameter once; which value depends on the route.
    const shift = target.path.length
    const asks = [
      ...junk.map(([, query]) => query),
      ...knownParameters.map((name, n) => `${name}=${values[(n + shift) % values.length]}`),
    ]
    for (const query of asks) {
      const { status, body } = await ask(target, query)
      if (status >= 500 && status !== 503)
        broken.push(`${target.method} ${target.path}?${query.slice(0, 60)}: ${status} ${body.message}`)
      if (status !== 400 || body.error !== 'invalid_query') continue
      refused++
      const name = query
        .split('&')
        .find((part) => part !== '')!
        .split('=')[0]!
      if (!/^[a-z]+$/i.test(name)) continue
      const issuePath = body.issues?.[0]?.path ?? ''
      const isMissing = knownParameters.includes(name) && required.has(issuePath)
      if (!issuePath.startsWith(name.slice(0, 60)) && !isMissing)
        broken.push(`${target.method} ${target.path}?${query.slice(0, 60)}: names ${issuePath}`)
    }
  }
  expect(broken).toEqual([])
  expect(refused).toBeGreaterThan(1_000)
}, 300_000)

test('/healthz and /readyz ignore a query', async () => {
  for (const path of ['/healthz', '/readyz'])
    // Longer ones exceed what the parser reads of a head, which is a 431.
    for (const [, query] of junk.filter(([, text]) => text.length < 10_000))
      expect([path, query, (await server.call(`${path}?${query}`)).status]).toEqual([path, query, 200])
})

test('ids that no address can hold are refused', async () => {
  for (const field of ['id', 'siteId', 'sessionId']) {
    for (const id of ['.', '..']) {
      const events = [event('kept'), event('refused', { [field]: id })]
      const answer = await server.call('/v1/sdk/events', { key: keys.ingest, body: { events } })
      const body = (await answer.json()) as { rejected: number; errors: { path: string }[] }
      expect([field, body.rejected, body.errors[0]?.path]).toEqual([field, 1, field])
    }
  }
  const dotted = ['...', '.a', 'a..b', '%2e', './x'].map((id) => event(id))
  expect((await server.call('/v1/sdk/events', { key: keys.ingest, body: { events: dotted } })).status).toBe(
    202,
  )
  for (const { id } of dotted) {
    const answer = await server.call(`/v1/traces/${encodeURIComponent(id as string)}`, { key: keys.secret })
    expect([id, answer.status]).toEqual([id, 200])
  }
})
