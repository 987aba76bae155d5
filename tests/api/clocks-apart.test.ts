/** A node whose clock is an hour off follows the time of the database: codes, retention and alerts. */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { Secret, TOTP } from 'otpauth'
import { applianceOrgId } from '../../db/contract/audit.ts'
import { openStore } from '../../db/open.ts'
import { openConnection } from '../../db/postgres/connection/connection.ts'
import { readKeyRing } from '../../server/system/key-ring.ts'
import { makeAudit, makeBatch, makeEvent, makeOrg } from '../store/make.ts'
import { password, person } from '../support/people.ts'
import { database } from '../support/postgres.ts'
import { testServer, type TestServer } from '../support/server.ts'
import { until } from '../support/until.ts'
import type { NodeRole } from '../../db/contract/nodes.ts'

setDefaultTimeout(60_000)

const keyRing = readKeyRing('ef'.repeat(32))
const minuteMs = 60_000
const hourMs = 3_600_000

function openNode(url: string, role: NodeRole, aheadMs: number): Promise<TestServer> {
  const open = async (folder: string) => {
    const bootstrap = { org: makeOrg({ slug: 'default' }), audit: makeAudit(applianceOrgId) }
    return openStore({ folder, now: Date.now() + aheadMs, bootstrap, shared: { url, node: role } })
  }
  const webhooks = {
    cron: '* * * * * *',
    backoffMs: [1_000],
    sinkDir: null,
    caFile: null,
    proxy: null,
  }
  const config = {
    keyRing,
    role,
    retention: { days: 1, bytes: null, auditDays: null },
    webhooks: { ...webhooks, allow: ['127.0.0.0/8'] },
  }
  return testServer(config, 'quick', { open, node: { name: role, version: 'test', role }, aheadMs })
}

/** Jobs follow the clock of the machine: by this one retention, due every ten minutes, is due in 5 s. */
function offBy(aboutMs: number): number {
  const toNextMs = 10 * minuteMs - ((Date.now() + aboutMs) % (10 * minuteMs))
  return aboutMs + toNextMs - 5_000
}

/** Events that arrived so long ago, oldest first. */
async function arrive({ store, org }: TestServer, agoMs: number[]): Promise<void> {
  for (const ago of agoMs) {
    const occurredMs = Date.now() - ago
    const batch = makeBatch(org.id, [makeEvent(`evt_${ago}`, { occurredAtMs: occurredMs })])
    await store.events.append({ ...batch, receivedAtMs: occurredMs })
  }
}

const arrivals = [24.5 * hourMs, 23.5 * hourMs, 40 * minuteMs]

/** Rules about silence for 30 minutes, which has been, and for 70, which has not. Created a day ago. */
async function addSilenceRules({ call, key }: TestServer, url: string): Promise<{ [rule: string]: string }> {
  const secret = await key('secret')
  const post = async <T>(path: string, body: object): Promise<T> => {
    const answer = await call(`/v1/webhooks/${path}`, { key: secret, body })
    expect([path, answer.status]).toEqual([path, 201])
    return (await answer.json()) as T
  }
  const { endpoint } = await post<{ endpoint: { id: string } }>('endpoints', { url: 'http://127.0.0.1:9/in' })
  const names: { [rule: string]: string } = {}
  for (const minutes of [30, 70]) {
    const rule = { kind: 'silence', minutes, endpointId: endpoint.id, name: `${minutes} min` }
    names[(await post<{ rule: { id: string } }>('rules', rule)).rule.id] = rule.name
  }
  const owner = openConnection({ url, node: 'owner', statementTimeoutMs: 10_000 })
  owner.run('UPDATE webhook_rule SET created_at_ms = created_at_ms - 86400000')
  owner.close()
  return names
}

const codeAfter = (seed: string, ms: number) =>
  new TOTP({ secret: Secret.fromBase32(seed) }).generate({ timestamp: Date.now() + ms })

/** Sets a second factor up on one node and signs in with it on the other. */
async function expectCodesOfTheDatabase(off: TestServer, exact: TestServer, aheadMs: number): Promise<void> {
  const owner = await person(off, off.org, 'viewer')
  const enrolment = await (await owner.post('/api/account/second-factor/begin')).json()
  const { seed, token } = enrolment as { seed: string; token: string }
  const set = async (ms: number) =>
    (await owner.post('/api/account/second-factor', { token, code: codeAfter(seed, ms), password })).status
  expect(await set(aheadMs)).toBe(400)
  expect(await set(-30_000)).toBe(200)
  const signIn = async (server: TestServer, ms: number) => {
    const half = await server.call('/api/sign-in', { body: { email: owner.email, password } })
    const body = { token: ((await half.json()) as { token: string }).token, code: codeAfter(seed, ms) }
    return (await server.call('/api/sign-in/code', { body })).status
  }
  expect(await signIn(off, 0)).toBe(200)
  expect(await signIn(exact, 30_000)).toBe(200)
}

test.each([
  ['ahead', hourMs],
  ['behind', -hourMs],
])('a node whose clock is an hour %s', async (_, aboutMs) => {
  const { url } = await database('migrated')
  await using exact = await openNode(url, 'web', 0) // runs no jobs
  await arrive(exact, arrivals)
  const names = await addSilenceRules(exact, url)
  const aheadMs = offBy(aboutMs)
  await using off = await openNode(url, 'all', aheadMs)
  expect(Math.abs(off.clock.now() - Date.now())).toBeGreaterThan(45 * minuteMs)
  await expectCodesOfTheDatabase(off, exact, aheadMs)

  const { store, org } = exact
  const page = { orgId: org.id, filter: {}, limit: 9, before: null, ceilingSeq: null }
  const stored = async () => (await store.events.page(page)).events.map(({ seq }) => seq)
  await until(async () => (await stored()).length < arrivals.length, 20_000)
  expect(await stored()).toEqual([3, 2])

  const open = async () => (await store.webhooks.openIncidents(null)).map(({ ruleId }) => names[ruleId])
  await until(async () => (await open()).length > 0, 20_000)
  expect(await open()).toEqual(['30 min'])
})
