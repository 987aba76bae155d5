/** Every route of the dashboard in every role and without a session, against the table in server/identity/DESIGN.md. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Org, Role } from '../../db/contract/store.ts'
import { auditEntry } from '../../server/audit/entry.ts'
import { newId, newToken, sha256Hex } from '../../server/ids.ts'
import { makeAccount, makeOrg } from '../support/people.ts'
import { allRoutes, nameOf } from '../support/routes.ts'
import { testServer, type TestServer } from '../support/server.ts'

const people = ['owner', 'admin', 'analyst', 'viewer', 'operator'] as const
type Person = (typeof people)[number]
const table = readTable()
const routes = allRoutes().filter(({ path }) => path.startsWith('/api/'))

function readTable(): Map<string, string[]> {
  const text = readFileSync(join(import.meta.dir, '../../server/identity/DESIGN.md'), 'utf8')
  const rows = text.matchAll(/^\| `([A-Z]+ \/api\S*)` +\| (.+?) +\|$/gm)
  return new Map(
    [...rows].map(([, route = '', roleText = '']) => [
      route,
      roleText === 'signed in' ? [...people] : roleText.split(' '),
    ]),
  )
}

let server: TestServer
let otherOrg: Org
const accounts = new Map<Person, string>()

beforeAll(async () => {
  server = await testServer()
  otherOrg = await makeOrg(server, 'other')
  for (const actor of people) {
    const role: Role = actor === 'operator' ? 'viewer' : actor
    accounts.set(actor, (await makeAccount(server, server.org, role, { operator: actor === 'operator' })).id)
  }
}, 90_000)
afterAll(() => server[Symbol.asyncDispose]())

/** A session per call, because some calls end their session. */
async function cookie(accountId: string, org: Org): Promise<string> {
  const token = newToken()
  const now = server.clock.now()
  const id = newId('ses')
  const signIn = {
    id,
    tokenHash: sha256Hex(token),
    accountId,
    orgId: org.id,
    createdAtMs: now,
    lastSeenAtMs: now,
    expiresAtMs: now + 3_600_000,
    address: '127.0.0.1',
    userAgent: 'test',
    byProvider: false,
  }
  const audit = auditEntry({ orgId: org.id, actor: 'cli' }, { action: 'session.created', target: id }, now)
  await server.store.signIns.create({ signIn, audit })
  return `sightglass=${token}`
}

interface Outcome {
  status: number
  reason: string | undefined
}

async function call(method: string, path: string, actor: Person | null): Promise<Outcome> {
  const headers: Record<string, string> = {}
  if (actor !== null) headers['cookie'] = await cookie(accounts.get(actor)!, server.org)
  const filled = path.replaceAll(/:\w+/g, 'no-such-thing')
  const ended = new AbortController()
  const init = method === 'GET' ? { signal: ended.signal } : { body: '{}', signal: ended.signal }
  const answer = await fetch(server.url + filled, {
    method,
    headers: method === 'GET' ? headers : { ...headers, 'content-type': 'application/json' },
    redirect: 'manual',
    ...init,
  })
  const isError = answer.status >= 400
  const body = isError ? ((await answer.json()) as { reason?: string }) : {}
  ended.abort() // the live stream never ends by itself
  return { status: answer.status, reason: body.reason }
}

test('the table has every route of the dashboard, and no other', () => {
  expect([...table.keys()].sort()).toEqual(routes.map(nameOf).sort())
  expect(routes.length).toBeGreaterThan(60)
})

describe('each route', () => {
  for (const route of routes) {
    const may = table.get(nameOf(route)) ?? []
    test(`${nameOf(route)} is for ${may.join(', ') || 'nobody'}`, async () => {
      const outcomes = await Promise.all(
        [null, ...people].map((actor) => call(route.method, route.path, actor)),
      )
      const [outsider, ...members] = outcomes
      if (may.includes('anybody')) {
        expect(outcomes.map(({ reason }) => reason).filter((reason) => reason === 'wrong_role')).toEqual([])
        if (route.path !== '/api/sign-in/code') expect(outsider?.status).not.toBe(401)
        return
      }
      expect(outsider).toEqual({ status: 401, reason: 'no_session' })
      // The operator of this test is also a viewer.
      const allowed = (actor: Person) =>
        may.includes(actor) || (actor === 'operator' && may.includes('viewer'))
      const got = people.map((actor, index) => {
        const { status, reason } = members[index]!
        expect([actor, status]).not.toEqual([actor, 401])
        expect([actor, status < 500 || status === 503]).toEqual([actor, true])
        return [actor, !(status === 403 && reason === 'wrong_role')]
      })
      expect(got).toEqual(people.map((actor) => [actor, allowed(actor)]))
    })
  }
})

test('a page of another site changes nothing, whichever role is signed in', async () => {
  for (const { method, path } of routes.filter((route) => route.method !== 'GET')) {
    const answer = await fetch(server.url + path.replaceAll(/:\w+/g, 'x'), {
      method,
      headers: {
        cookie: await cookie(accounts.get('owner')!, server.org),
        'content-type': 'application/json',
        'sec-fetch-site': 'cross-site',
      },
      body: '{}',
    })
    const { error } = (await answer.json()) as { error: string }
    expect([method, path, answer.status, error]).toEqual([method, path, 403, 'forbidden'])
  }
})

describe('records of another organization are not found', () => {
  const timeMs = Date.UTC(2026, 5, 1)
  let ids: { [kind: string]: string }
  let owner: string

  beforeAll(async () => {
    const { store } = server
    const outsider = await makeAccount(server, otherOrg, 'owner')
    const foreignCookie = await cookie(outsider.id, otherOrg)
    const post = async (path: string, body: unknown) =>
      (await (await server.call(path, { body, headers: { cookie: foreignCookie } })).json()) as Record<
        string,
        { id: string }
      >
    const key = (await post('/api/keys', { kind: 'ingest', label: 'x' })) as unknown as {
      key: { id: string }
      secret: string
    }
    const invitation = await post('/api/invitations', { email: 'x@example.com', role: 'viewer' })
    const event = {
      id: 'evt_theirs',
      siteId: 'theirs',
      sessionId: 's',
      occurredAt: new Date(timeMs).toISOString(),
      type: 'authz.evaluated',
      outcome: 'success',
    }
    await server.call('/v1/sdk/events', { key: key.secret, body: { events: [event] } })
    const tool = { name: 'checkout.pay' }
    await server.call('/v1/sdk/tools', { key: key.secret, body: { siteId: 'theirs', tools: [tool] } })
    await server.call('/v1/sdk/memory', {
      key: key.secret,
      body: { siteId: 'theirs', snapshot: { siteMap: {} } },
    })
    const endpoint = await post('/api/webhooks/endpoints', { url: 'https://hooks.example.com/in' })
    const delivery = (await post('/api/webhooks/test', {
      url: 'https://hooks.example.com/in',
      payload: {},
    })) as unknown as {
      deliveryId: string
    }
    const rule = await post('/api/webhooks/rules', {
      endpointId: endpoint['endpoint']!.id,
      kind: 'new_vendor',
    })
    await post('/api/robots', { siteId: 'theirs', text: '' })
    const view = await post('/api/views', { name: 'theirs', search: '' })
    const shared = { name: 'x', page: 'analytics', search: '', days: 1 }
    const { link } = await post('/api/share-links', shared)
    ids = {
      view: view['view']!.id,
      shareLink: link!.id,
      key: key.key.id,
      person: outsider.id,
      invitation: invitation['invitation']!.id,
      signIn: (await store.signIns.list(outsider.id))[0]!.id,
      event: event.id,
      endpoint: endpoint['endpoint']!.id,
      delivery: delivery.deliveryId,
      rule: rule['rule']?.id ?? '',
    }
    owner = accounts.get('owner')!
  })

  /** Ids of the other organization for `:id` and the like, with bodies that are valid in one's own. */
  function createForeignCall(path: string): { path: string; body?: unknown } | null {
    const fill = (id: string | undefined, body: unknown = {}) =>
      id === undefined ? null : { path: path.replace(/:\w+/, encodeURIComponent(id)), body }
    if (path.startsWith('/api/keys/'))
      return fill(ids['key'], path.endsWith('rotate') ? { overlapHours: 0 } : {})
    if (path.startsWith('/api/people/'))
      return fill(ids['person'], path.endsWith('role') ? { role: 'viewer' } : {})
    if (path.startsWith('/api/invitations/')) return fill(ids['invitation'])
    if (path.startsWith('/api/account/sign-ins/')) return fill(ids['signIn'])
    if (path.startsWith('/api/share-links/')) return fill(ids['shareLink'])
    if (path.startsWith('/api/views/')) return fill(ids['view'], { name: 'mine' })
    if (path.startsWith('/api/sessions/')) return fill('s')
    if (path.startsWith('/api/events/') || path.startsWith('/api/authz/why/')) return fill(ids['event'])
    if (path.startsWith('/api/tools/')) return { path: '/api/tools/theirs/checkout.pay' }
    if (path === '/api/memory/:siteId') return { path: '/api/memory/theirs' }
    if (path.startsWith('/api/robots/'))
      return { path: path.replace(':siteId', 'theirs').replace(':version', '1') }
    if (path.startsWith('/api/memory/')) return { path: '/api/memory/theirs/versions/1' }
    if (path.startsWith('/api/webhooks/endpoints/')) {
      const body = path.endsWith('replay') ? { from: new Date(timeMs).toISOString() } : {}
      return fill(ids['endpoint'], body)
    }
    if (path.startsWith('/api/webhooks/rules/')) return fill(ids['rule'], { until: null })
    if (path.startsWith('/api/webhooks/')) return fill(ids['delivery'])
    return null
  }

  // Backups belong to the whole appliance, not to an organization.
  const itemRoutes = routes.filter(({ path }) => path.includes(':') && !path.startsWith('/api/backups/'))
  for (const { method, path } of itemRoutes) {
    test(`${method} ${path}`, async () => {
      const target = createForeignCall(path)
      if (target === null) throw new Error(`add the ids of the other organization for ${path}`)
      const answers: unknown[] = []
      for (const address of [
        target.path,
        path.replaceAll(/:version/g, '1').replaceAll(/:\w+/g, 'no-such-thing'),
      ]) {
        const headers = { cookie: await cookie(owner, server.org) }
        const body = method === 'GET' || method === 'DELETE' ? {} : { body: target.body ?? {} }
        const answer = await server.call(address, { method, headers, ...body })
        const { requestId, ...otherFields } = (await answer.json()) as { requestId: string }
        expect(requestId).toStartWith('req_')
        answers.push([answer.status, otherFields])
      }
      expect(answers[0]).toMatchObject([404, { error: 'not_found' }])
      expect(answers[1]).toEqual(answers[0])
    })
  }
})
