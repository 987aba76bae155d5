/** Every route that changes something reads JSON only, and refuses another content-type before reading the body. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { makeAccount } from '../support/people.ts'
import { allRoutes, nameOf } from '../support/routes.ts'
import { testServer, type TestServer } from '../support/server.ts'
import { openStalled } from '../support/stalled.ts'
import { newId, newToken, sha256Hex } from '../../server/ids.ts'
import { auditEntry } from '../../server/audit/entry.ts'
import type { Route } from '../../server/app.ts'

const changing = allRoutes().filter(({ method }) => method !== 'GET' && method !== 'HEAD')

const foreign = [
  'text/plain',
  'text/plain;charset=UTF-8',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  'application/jsonp',
  'application/json, text/plain',
  'text/json',
  'application/x-ndjson',
  'application/x-protobuf',
  'application/octet-stream',
  'application/json; charset=utf-16',
]

/** Other content types that the contract names (§4, §11, §13), by route. */
const alsoRead: { readonly [route: string]: readonly string[] } = {
  'POST /v1/sdk/events': ['application/x-ndjson'],
  'POST /v1/sdk/access-logs': ['text/plain', 'text/plain;charset=UTF-8', 'application/x-ndjson'],
  'POST /v1/traces': ['application/x-protobuf'],
  'POST /v1/logs': ['application/x-protobuf'],
  'POST /v1/metrics': ['application/x-protobuf'],
}

let server: TestServer
let keys: { ingest: string; secret: string }
let ownerId: string

beforeAll(async () => {
  server = await testServer({ rateLimits: { gateway: null, ingest: null, dashboard: null } as never })
  keys = { ingest: await server.key('ingest'), secret: await server.key('secret') }
  ownerId = (await makeAccount(server, server.org, 'owner', { operator: true })).id
}, 60_000)
afterAll(() => server[Symbol.asyncDispose]())

/** A session of its own, because some routes end theirs. */
async function sessionCookie(): Promise<string> {
  const token = newToken()
  const now = server.clock.now()
  const id = newId('ses')
  const { org } = server
  const audit = auditEntry({ orgId: org.id, actor: 'cli' }, { action: 'session.created', target: id }, now)
  const signIn = {
    id,
    tokenHash: sha256Hex(token),
    accountId: ownerId,
    orgId: org.id,
    createdAtMs: now,
    lastSeenAtMs: now,
    expiresAtMs: now + 3_600_000,
    address: '127.0.0.1',
    userAgent: 'test',
    byProvider: false,
  }
  await server.store.signIns.create({ signIn, audit })
  return `cookie: sightglass=${token}`
}

async function credentials({ path }: Route): Promise<string> {
  if (path.startsWith('/api/')) return sessionCookie()
  const isIngest = path.startsWith('/v1/sdk/') || /^\/v1\/(traces|logs|metrics)$/.test(path)
  return `authorization: Bearer ${isIngest ? keys.ingest : keys.secret}`
}

const filled = (path: string) => path.replaceAll(/:\w+/g, 'no-such-thing')

/** The status of the response to a request whose body is announced and never sent. */
async function statusWithoutBody(route: Route, type: string): Promise<string> {
  const query = route.path === '/v1/sdk/access-logs' ? '?siteId=shop' : ''
  const connection = await openStalled(server.url, [
    `${route.method} ${filled(route.path)}${query} HTTP/1.1`,
    await credentials(route),
    `content-type: ${type}`,
    'content-length: 1000',
  ])
  try {
    for (let tries = 0; tries < 150; tries++) {
      const status = /^HTTP\/1\.1 (\d{3})/.exec(connection.text())?.[1]
      if (status !== undefined) return status
      await Bun.sleep(10)
    }
    return 'waits for the body'
  } finally {
    connection.end()
  }
}

describe('another content-type is 415 before the body arrives', () => {
  test.each(changing.map((route) => [nameOf(route), route] as const))('%s', async (name, route) => {
    const refused = foreign.filter((type) => !(alsoRead[name] ?? []).includes(type))
    const statuses: string[] = []
    for (const type of refused) statuses.push(`${type}: ${await statusWithoutBody(route, type)}`)
    expect(statuses).toEqual(refused.map((type) => `${type}: 415`))
  })
})

describe('JSON, and a body without a content-type, are read', () => {
  const readers = changing.filter(({ path }) => path !== '/v1/sdk/access-logs' && path !== '/api/setup')
  test.each(readers.map((route) => [nameOf(route), route] as const))('%s', async (_name, route) => {
    for (const type of ['application/json', 'Application/JSON; charset=UTF-8', null]) {
      const [credentialName = '', value = ''] = (await credentials(route)).split(': ')
      const headers = { [credentialName]: value, ...(type === null ? {} : { 'content-type': type }) }
      const body = Buffer.from('{}')
      const response = await fetch(server.url + filled(route.path), { method: route.method, headers, body })
      await response.body?.cancel()
      expect([type, response.status]).not.toEqual([type, 415])
    }
  })
})

test('the document names these content types and no other', async () => {
  const document = (await (await server.call('/openapi.json')).json()) as {
    paths: { [path: string]: { [method: string]: { requestBody?: { content: object } } } }
  }
  const wrong: string[] = []
  for (const [path, operations] of Object.entries(document.paths)) {
    for (const [method, { requestBody }] of Object.entries(operations)) {
      const name = `${method.toUpperCase()} ${path.replaceAll(/\{(\w+)\}/g, ':$1')}`
      const allowed = ['application/json', ...(alsoRead[name] ?? [])]
      for (const type of Object.keys(requestBody?.content ?? {}))
        if (!allowed.includes(type)) wrong.push(`${name} ${type}`)
    }
  }
  expect(wrong).toEqual([])
})
