/** Every route that changes something writes exactly one audit row, and none when it fails. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { Secret, TOTP } from 'otpauth'
import { prepareFirstOwner } from '../../server/identity/people/first-owner.ts'
import { auditEntry } from '../../server/audit/entry.ts'
import { commands } from '../../server/cli/run.ts'
import { workTable } from '../../server/cli/data-command.ts'
import type { WorkContext } from '../../server/runtime/work.ts'
import { newId, newToken, sha256Hex } from '../../server/ids.ts'
import type { Log } from '../../server/log.ts'
import {
  auditCount,
  caller,
  cookieOf,
  makeAccount,
  makeOrg,
  password,
  person,
  type Person,
} from '../support/people.ts'
import { allRoutes, nameOf } from '../support/routes.ts'
import { testServer, type TestServer } from '../support/server.ts'
import { makeAudit } from '../store/make.ts'
import { openFiring } from '../store/webhook-make.ts'

let server: TestServer
let owner: Person
let secretKey: string
let receiver: ReturnType<typeof Bun.serve>

beforeAll(async () => {
  // A receiver that answers 410, so that a delivery is a dead letter at once, which can be replayed.
  receiver = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response(null, { status: 410 }) })
  const backoffMs = [60_000, 300_000, 1_800_000]
  const fixed = { allow: ['127.0.0.0/8'], sinkDir: null, caFile: null, proxy: null }
  const webhooks = { cron: '* * * * * *', backoffMs, ...fixed }
  server = await testServer({ webhooks })
  owner = await person(server, server.org, 'owner', { operator: true })
  secretKey = await server.key('secret')
  await makeOrg(server, 'other') // the only organization cannot be deleted
}, 90_000)
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await receiver.stop(true)
})

interface Call {
  path?: string // of a route with parameters
  body?: unknown
  who?: Person // the owner by default
  rows?: number // one by default
}

type Made = Record<string, { id: string }> & Record<'link' | 'token' | 'seed' | 'deliveryId' | 'name', string>
const post = async (path: string, body: unknown = {}, sender = owner): Promise<Made> =>
  (await (await sender.post(path, body)).json()) as Made
const newName = (): string => `w${newToken().slice(0, 10).toLowerCase()}`.replaceAll(/[^a-z]/g, 'x')
const hookUrl = (): string => `http://127.0.0.1:${receiver.port}/${newName()}`
const newViewer = (): Promise<Person> => person(server, server.org, 'viewer')

const createCall = (path: string, id: string, body: unknown = {}): Call => ({
  path: path.replace(/:\w+/, id),
  body,
})
const key = async () => (await post('/api/keys', { kind: 'ingest', label: 'x' }))['key']!.id
const view = async () => (await post('/api/views', { name: newName(), search: '' }))['view']!.id
const shareLink = { name: 'x', page: 'analytics', search: '?range=7d', days: 7 }
const shareLinkId = async () =>
  ((await post('/api/share-links', shareLink)) as unknown as Record<'link', { id: string }>).link.id
const member = async () => (await makeAccount(server, server.org, 'viewer')).id
const invitation = () => post('/api/invitations', { email: `${newName()}@example.com`, role: 'viewer' })
const tokenOf = ({ link }: Made): string => link.slice(link.indexOf('#') + 1)
const endpoint = async () => (await post('/api/webhooks/endpoints', { url: hookUrl() }))['endpoint']!.id
const rule = async (kind = 'new_vendor') =>
  (await post('/api/webhooks/rules', { endpointId: await endpoint(), kind, minutes: 5 }))['rule']!.id

async function deadDelivery(): Promise<string> {
  const { deliveryId } = await post('/api/webhooks/test', { url: hookUrl(), payload: {} })
  for (let i = 0; i < 100; i++) {
    const delivery = (await (await owner.call(`/api/webhooks/${deliveryId}`)).json()) as { status: string }
    if (delivery.status === 'dead_letter') return deliveryId
    await Bun.sleep(100)
  }
  throw new Error('the delivery did not end')
}

const codeOf = (seed: string, timestamp: number) =>
  new TOTP({ secret: Secret.fromBase32(seed) }).generate({ timestamp })

/** A person with a second factor whose next code is unused. It is valid already, however slow the machine is. */
async function guarded(): Promise<Person & { seed: string }> {
  const viewer = await newViewer()
  const { seed, token } = await post('/api/account/second-factor/begin', {}, viewer)
  const code = codeOf(seed, server.clock.now())
  await post('/api/account/second-factor', { token, code, password }, viewer)
  return { ...viewer, seed }
}

async function openAlert(): Promise<string> {
  const id = newId('inc')
  const endpointId = await endpoint()
  const ruleId = await rule()
  const times = { ...openFiring, openedAtMs: server.clock.now() }
  const deliveryFields = {
    id: newId('wh'),
    orgId: server.org.id,
    endpointId,
    url: hookUrl(),
    lane: endpointId,
  }
  await server.store.webhooks.openIncident({
    incident: {
      id,
      orgId: server.org.id,
      ruleId,
      subject: id,
      ...times,
      data: { vendor: 'v', firstSeenAt: '' },
    },
    delivery: { ...deliveryFields, body: '{}', scheduledAtMs: server.clock.now() },
    once: false,
    audit: makeAudit(server.org.id),
  })
  return id
}

const visit = { since: '2026-11-01T00:00:00Z', at: '2026-11-01T00:00:00Z', hidden: [], shown: [] }
const backtested = { measure: 'count', condition: { kind: 'above', value: 1 } }
const endpointCalls = (base: string): { [route: string]: Prepare } => ({
  [`POST ${base}/endpoints`]: () => ({ body: { url: hookUrl() } }),
  [`PATCH ${base}/endpoints/:id`]: async (path) => createCall(path, await endpoint(), { types: ['agent.*'] }),
  [`DELETE ${base}/endpoints/:id`]: async (path) => createCall(path, await endpoint()),
  [`POST ${base}/endpoints/:id/pause`]: async (path) => createCall(path, await endpoint()),
  [`POST ${base}/endpoints/:id/resume`]: async (path) => {
    const id = await endpoint()
    await post(`/api/webhooks/endpoints/${id}/pause`)
    return createCall(path, id)
  },
  [`POST ${base}/endpoints/:id/replay`]: async (path) =>
    createCall(path, await endpoint(), { from: '2026-01-01T00:00:00Z' }),
  [`POST ${base}/endpoints/:id/rotate-secret`]: async (path) => createCall(path, await endpoint()),
  [`POST ${base}/endpoints/:id/test`]: async (path) => createCall(path, await endpoint()),
  [`POST ${base}/incidents/:id/acknowledge`]: async (path) => createCall(path, await openAlert()),
  [`POST ${base}/rules`]: async () => ({ body: { endpointId: await endpoint(), kind: 'new_vendor' } }),
  [`PATCH ${base}/rules/:id`]: async (path) => createCall(path, await rule('silence'), { minutes: 9 }),
  [`DELETE ${base}/rules/:id`]: async (path) => createCall(path, await rule()),
  [`POST ${base}/rules/:id/silence`]: async (path) => createCall(path, await rule(), { until: null }),
  [`POST ${base}/rules/backtest`]: () => ({ body: backtested, rows: 0 }),
  [`POST ${base}/test`]: () => ({ body: { url: hookUrl(), payload: {} } }),
  [`POST ${base}/:id/replay`]: async (path) => createCall(path, await deadDelivery()),
})

type Prepare = (path: string) => Promise<Call> | Call

/** A successful call of each route. Its preparation is not counted. */
const calls: { [route: string]: Prepare } = {
  'POST /api/retention': () => ({ body: { days: 30 } }),
  'POST /api/reports': () => ({ body: {} }),
  'POST /api/overview/visit': () => ({ body: visit, rows: 0 }), // it only says that somebody read
  'POST /api/erase': () => ({ body: { session: newName() } }),
  'POST /api/erase/count': () => ({ body: { session: newName() }, rows: 0 }), // it only reads
  'POST /api/setup': () => ({ rows: 0 }), // an owner exists; the first one is tested below
  'POST /api/sign-in': async () => ({ body: { email: (await newViewer()).email, password } }),
  'POST /api/sign-in/code': async () => {
    const { email, seed } = await guarded()
    const { token } = await post('/api/sign-in', { email, password })
    return { body: { token, code: codeOf(seed, server.clock.now() + 30_000) } }
  },
  'POST /api/sign-out': async () => ({ who: await newViewer() }),
  'POST /api/reset-password': async () => {
    const token = newToken()
    const expiresAtMs = server.clock.now() + 60_000
    const link = {
      hash: sha256Hex(token),
      purpose: 'password' as const,
      accountId: await member(),
      expiresAtMs,
    }
    await server.store.accounts.createLink({ link, audit: null })
    return { body: { token, password: 'a much better password' } }
  },
  'POST /api/invitations/look': async () => ({ body: { token: tokenOf(await invitation()) }, rows: 0 }),
  'POST /api/invitations/accept': async () => ({
    body: { token: tokenOf(await invitation()), password: 'a much better password' },
  }),
  'POST /api/session/org': async () => ({ who: await newViewer(), body: { orgId: server.org.id } }),
  'POST /api/account/password': async () => ({
    who: await newViewer(),
    body: { current: password, password: 'a much better password' },
  }),
  'POST /api/account/sign-ins/:id/end': async (path) => {
    const viewer = await newViewer()
    await server.call('/api/sign-in', { body: { email: viewer.email, password } })
    const { signIns } = (await (await viewer.call('/api/account')).json()) as {
      signIns: { id: string; current: boolean }[]
    }
    return { ...createCall(path, signIns.find(({ current }) => !current)!.id), who: viewer }
  },
  'POST /api/account/sign-ins/end-others': async () => {
    const viewer = await newViewer()
    await server.call('/api/sign-in', { body: { email: viewer.email, password } })
    return { who: viewer }
  },
  'POST /api/account/second-factor/begin': () => ({ rows: 0 }), // nothing is stored before the code is verified
  'POST /api/account/second-factor': async () => {
    const viewer = await newViewer()
    const { seed, token } = await post('/api/account/second-factor/begin', {}, viewer)
    return { who: viewer, body: { token, code: codeOf(seed, server.clock.now()), password } }
  },
  'POST /api/account/second-factor/recovery-codes': async () => ({
    who: await guarded(),
    body: { password },
  }),
  'POST /api/account/second-factor/remove': async () => ({ who: await guarded(), body: { password } }),
  'POST /api/orgs': () => ({ body: { name: 'Another', slug: newName() } }),
  'POST /api/org/rename': () => ({ body: { name: 'Renamed' } }),
  'POST /api/org/delete': () => ({ body: { confirm: server.org.slug } }),
  'POST /api/clock/confirm': () => ({ rows: 0 }), // the clock is right, so there is nothing to confirm
  'POST /api/org/sign-in-rule': async () => {
    const org = await makeOrg(server, newName())
    const newOwner = await person(server, org, 'owner')
    const act = { action: 'account.second_factor_set', target: newOwner.id }
    await server.store.secondFactors.set({
      factor: { accountId: newOwner.id, encryptedSeed: 'never opened', lastStep: 0, sinceMs: 0 },
      recoveryHashes: [],
      audit: auditEntry({ orgId: org.id, actor: 'cli' }, act, server.clock.now()),
    })
    return { body: { secondFactorRequired: true }, who: newOwner }
  },
  'POST /api/org/keep': async () => {
    await owner.post('/api/org/delete', { confirm: server.org.slug })
    return {}
  },
  'POST /api/people/:id/role': async (path) => createCall(path, await member(), { role: 'analyst' }),
  'POST /api/people/:id/remove': async (path) => createCall(path, await member()),
  'POST /api/invitations': () => ({ body: { email: `${newName()}@example.com`, role: 'viewer' } }),
  'POST /api/invitations/:id/revoke': async (path) =>
    createCall(path, (await invitation())['invitation']!.id),
  'POST /api/views': () => ({ body: { name: newName(), search: '?type=agent.*' } }),
  'PATCH /api/views/:id': async (path) => createCall(path, await view(), { name: newName() }),
  'DELETE /api/views/:id': async (path) => createCall(path, await view()),
  'POST /api/share-links': () => ({ body: shareLink }),
  'POST /api/share-links/:id/revoke': async (path) => createCall(path, await shareLinkId()),
  'POST /api/sites': () => ({ body: { siteId: newName(), name: 'A site' } }),
  'POST /api/robots': () => ({ body: { siteId: newName(), text: 'User-agent: *\nDisallow: /\n' } }),
  'POST /api/robots/test': () => ({ body: { siteId: newName(), text: '' }, rows: 0 }), // it only reads
  'POST /api/keys': () => ({ body: { kind: 'secret', label: 'x' } }),
  'POST /api/keys/:id/change': async (path) => createCall(path, await key(), { label: 'y' }),
  'POST /api/keys/:id/rotate': async (path) => createCall(path, await key(), { overlapHours: 1 }),
  'POST /api/keys/:id/revoke': async (path) => createCall(path, await key()),
  'POST /api/audit/export': () => ({}),
  'POST /v1/audit/export': () => ({}),
  // Begins a session of questions.
  'POST /mcp': () => ({ body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'count' } } }),
  ...endpointCalls('/api/webhooks'),
  ...endpointCalls('/v1/webhooks'),
  'POST /api/webhooks/replay-dead': async () => {
    await deadDelivery()
    return {}
  },
  'POST /api/webhooks/secret/rotate': () => ({}),
}

// Ingest writes events, which are a record of their own (contract §8). Backups have their own tests.
const elsewhere = /^\S+ (?:\/v1\/sdk\/|\/v1\/(?:traces|logs|metrics)$|\/api\/backups)/
const changing = allRoutes()
  .filter(({ method }) => method !== 'GET')
  .filter((route) => !elsewhere.test(nameOf(route)))

const isForKeys = (path: string): boolean => path.startsWith('/v1/') || path === '/mcp'

function send(method: string, path: string, { body = {}, who: sender = owner }: Call): Promise<Response> {
  if (isForKeys(path)) return server.call(path, { method, body, key: secretKey })
  return sender.call(path, { method, body })
}

test('this test calls every route that changes something, and no other', () => {
  expect(Object.keys(calls).sort()).toEqual(changing.map(nameOf).sort())
})

/** The newest entry has the address and, with a session, the person. */
async function expectSender(kind: 'key' | 'user'): Promise<void> {
  const newest = async (orgId: string) =>
    (await server.store.audit.list({ orgId, limit: 20, beforeSeq: null })).entries.find(
      // The dispatcher may pause an endpoint at any time.
      ({ actor, action }) => actor !== 'system' || !action.startsWith('webhook_endpoint.'),
    )
  const rows = await Promise.all(Object.keys(await server.store.audit.heads()).map(newest))
  const latestMs = Math.max(...rows.map((row) => row?.occurredAtMs ?? 0))
  const row = rows.find((candidate) => candidate?.occurredAtMs === latestMs)!
  expect(row).toMatchObject({ metadata: { address: '127.0.0.1' } })
  expect(row.actor).toStartWith(`${kind}:`)
  const unsigned = ['session.created', 'account.password_reset', 'invitation.accepted']
  if (unsigned.includes(row.action)) return
  const label = kind === 'key' ? 'test' : expect.stringContaining('@example.com')
  expect(row.metadata['actorLabel']).toEqual(label)
}

describe('each changing route', () => {
  for (const route of changing) {
    test(
      nameOf(route),
      async () => {
        const call = await calls[nameOf(route)]!(route.path)
        const countBefore = await auditCount(server)
        const answer = await send(route.method, call.path ?? route.path, call)
        const isRefused = nameOf(route) === 'POST /api/setup'
        expect([await answer.text(), answer.ok]).toEqual([expect.any(String), !isRefused])
        expect((await auditCount(server)) - countBefore).toBe(call.rows ?? 1)
        if ((call.rows ?? 1) > 0) await expectSender(isForKeys(route.path) ? 'key' : 'user')

        const unknown = route.path.replaceAll(/:\w+/g, 'no-such-thing')
        const failures = [
          await server.call(unknown, {
            method: route.method,
            body: '{',
            headers: { 'content-type': 'application/json' },
          }),
          await server.call(unknown, { method: route.method, body: '[]', key: 'agtx_sk_wrong' }),
        ]
        if (route.path.includes(':'))
          failures.push(await send(route.method, unknown, { body: call.body ?? {} }))
        // Signing out without a session succeeds.
        if (route.path !== '/api/sign-out')
          expect(failures.map(({ status }) => status >= 400)).toEqual(failures.map(() => true))
        expect((await auditCount(server)) - countBefore).toBe(call.rows ?? 1)
      },
      20_000,
    )
  }
})

describe('reading writes no row, except exports and sign-ins', () => {
  /** Exports are audited (contract §8). A sign-in through a provider ends in a GET; without one it is rejected. */
  const audited: { [route: string]: { query?: string; accept?: string } } = {
    'GET /api/export/events': { query: '?format=ndjson' },
    'GET /v1/traces': { accept: 'application/x-ndjson' },
  }
  const reading = allRoutes().filter(({ method }) => method === 'GET')
  for (const route of reading.filter(({ path }) => path !== '/api/live')) {
    test(nameOf(route), async () => {
      const path = route.path.replaceAll(/:\w+/g, 'x')
      const get = async (query = '', accept = 'application/json') => {
        const headers = { accept, ...(path.startsWith('/v1/') ? {} : { cookie: owner.cookie }) }
        const key = path.startsWith('/v1/') ? { key: secretKey } : {}
        const answer = await server.call(path + query, { headers, ...key })
        await answer.text()
        return answer
      }
      const countBefore = await auditCount(server)
      const exporting = audited[nameOf(route)]
      if (exporting === undefined || exporting.accept !== undefined) {
        await get()
        expect(await auditCount(server)).toBe(countBefore)
      }
      if (exporting === undefined) return
      expect((await get(exporting.query, exporting.accept)).status).toBe(200)
      expect(await auditCount(server)).toBe(countBefore + 1)
    })
  }
})

describe('the first owner, by each way to create one', () => {
  const email = 'first@example.com'
  const link = async ({ store, clock }: TestServer): Promise<string> => {
    const token = newToken()
    const expiresAtMs = clock.now() + 60_000
    const link = { hash: sha256Hex(token), purpose: 'setup' as const, accountId: null, expiresAtMs }
    await store.accounts.createLink({ link, audit: null })
    return token
  }
  const log = { error: (event: string) => expect(event).toBe('nothing to log') } as unknown as Log
  const cliContext = ({ store, clock }: TestServer): WorkContext => ({
    store,
    clock,
    baseUrl: 'http://127.0.0.1:7400',
    webhooks: () => expect.unreachable(),
  })
  const ways: { [way: string]: (fresh: TestServer) => Promise<unknown> } = {
    'POST /api/setup': async (fresh) => {
      const answer = await fresh.call('/api/setup', { body: { token: await link(fresh), email, password } })
      expect(answer.status).toBe(201)
      const session = await caller(fresh, cookieOf(answer)).call('/api/session')
      expect(await session.json()).toMatchObject({ account: { email, operator: true }, role: 'owner' })
    },
    'the environment at start': ({ store, clock }) =>
      prepareFirstOwner({
        store,
        clock,
        log,
        config: { admin: { email, password }, shared: null, role: 'all', keyRing: null },
      }),
    'account create': (fresh) =>
      workTable(commands).get('account create')!(cliContext(fresh), {
        email,
        role: 'owner',
        org: 'default',
        password,
      }),
  }
  for (const [way, make] of Object.entries(ways)) {
    test(`${way} writes one row, and none once there is one`, async () => {
      await using fresh = await testServer()
      const countBefore = await auditCount(fresh)
      await make(fresh)
      expect(await fresh.store.accounts.ownerExists()).toBe(true)
      expect((await auditCount(fresh)) - countBefore).toBe(1)
      const { entries } = await fresh.store.audit.list({ orgId: fresh.org.id, limit: 1, beforeSeq: null })
      expect(entries).toMatchObject([{ action: 'account.created', metadata: { email, operator: true } }])
      await make(fresh).catch(() => null)
      expect((await auditCount(fresh)) - countBefore).toBe(1)
    })
  }
})
