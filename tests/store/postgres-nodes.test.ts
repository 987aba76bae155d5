/** Several nodes that write records of one PostgreSQL database at once decide as one writer does. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { openConnection } from '../../db/postgres/connection/connection.ts'
import { migrations } from '../../db/postgres/migrations/migrations.ts'
import type { Outcome } from '../../db/contract/webhooks.ts'
import type { Database } from '../../db/sql/database.ts'
import { database } from '../support/postgres.ts'
import { makeAccount, makeAudit, makeKey, makeOrg, noon } from './make.ts'
import { openRecords, type RecordsStore } from './postgres-records.ts'
import { auditOf, failure } from './subject.ts'
import { makeAttempt, makeClaim, makeDelivery } from './webhook-make.ts'

let url = ''
let nodes: RecordsStore[] = []
/** A connection beside the nodes. */
let watcher: Database

beforeAll(async () => {
  url = (await database()).url
  // All at once, on an empty database.
  nodes = await Promise.all(Array.from({ length: 4 }, () => openRecords({ url })))
  watcher = openConnection({ url, node: 'watcher', statementTimeoutMs: 10_000 })
})

afterAll(async () => {
  watcher.close()
  await Promise.all(nodes.map((node) => node.close()))
})

/**
 * Runs `work` on every node at once: a lock on a table that each of them reads first is released when all wait. Without
 * the lock on records all would then read the same state before any of them changes it.
 */
async function atOnce<T>(
  table: string,
  work: (node: RecordsStore, index: number) => Promise<T>,
): Promise<T[]> {
  watcher.run('BEGIN')
  watcher.run(`LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`)
  const results = Promise.allSettled(nodes.map(work))
  const waiting = watcher.query<{ n: number }>(
    'SELECT count(DISTINCT pid) AS n FROM pg_locks WHERE NOT granted',
  )
  const endMs = performance.now() + 4_000
  while ((waiting.get()?.n ?? 0) < nodes.length && performance.now() < endMs) await Bun.sleep(10)
  watcher.run('COMMIT')
  return (await results).map((result) => {
    if (result.status === 'rejected') throw result.reason
    return result.value
  })
}

async function newOrg(): Promise<string> {
  const org = makeOrg()
  await nodes[0]!.orgs.create({ org, audit: makeAudit(org.id) })
  return org.id
}

test('of nodes that open an empty database at once, one migrates', () => {
  const applied = watcher.query('SELECT version, name FROM schema_migration ORDER BY version').all()
  expect(applied).toEqual(migrations.map(({ version, name }) => ({ version, name })))
  expect(nodes).toHaveLength(4)
})

test('of concurrent claims to be the first owner one succeeds', async () => {
  const orgId = await newOrg()
  const results = await atOnce('membership', (node) => {
    const account = makeAccount()
    const audit = makeAudit(orgId)
    return node.accounts.createFirstOwner({ account, orgId, linkHash: null, now: noon, audit })
  })
  expect(results.toSorted()).toEqual(['created', 'owner_exists', 'owner_exists', 'owner_exists'])
  const owners = (await nodes[1]!.accounts.list()).flatMap(({ memberships }) => memberships)
  expect(owners.filter((membership) => membership.orgId === orgId)).toHaveLength(1)
})

test('an organization keeps its last owner, whichever nodes remove the owners', async () => {
  const orgId = await newOrg()
  const accounts = nodes.map(() => makeAccount())
  for (const account of accounts)
    await nodes[0]!.accounts.create({ account, orgId, role: 'owner', audit: makeAudit(orgId) })
  const results = await atOnce('membership', (node, index) =>
    node.accounts.removeMember({ orgId, accountId: accounts[index]!.id, audit: makeAudit(orgId) }),
  )
  expect(results.toSorted()).toEqual(['done', 'done', 'done', 'last_owner'])
})

test('a delivery is replayed once', async () => {
  const orgId = await newOrg()
  const id = `replayed-${orgId}`
  await nodes[0]!.webhooks.schedule({ delivery: makeDelivery(orgId, id, id), audit: makeAudit(orgId) })
  const end = { status: 'dead_letter' } as const
  await claimAndSettle(nodes[0]!, `lease-${orgId}`, end)
  const countBefore = (await auditOf(nodes[0]!, orgId)).length
  const results = await atOnce('webhook_delivery', (node) =>
    node.webhooks.replay({ orgId, id, now: noon, audit: makeAudit(orgId) }).then(
      () => 'replayed',
      (error: { kind: string }) => error.kind,
    ),
  )
  expect(results.toSorted()).toEqual(['conflict', 'conflict', 'conflict', 'replayed'])
  expect((await auditOf(nodes[0]!, orgId)).length).toBe(countBefore + 1)
  await claimAndSettle(nodes[0]!, `lease-2-${orgId}`, { status: 'delivered' })
})

async function claimAndSettle(node: RecordsStore, leaseId: string, next: Outcome['next']): Promise<string[]> {
  const claim = makeClaim(leaseId, { leaseMs: 60_000, dueMs: noon + 1 })
  const claims = await node.webhooks.recordAndClaim({ now: noon, outcomes: [], released: [], claim })
  const outcomes = claims.map(({ delivery }): Outcome => {
    return { deliveryId: delivery.id, leaseId, attempt: makeAttempt({ error: null }), next }
  })
  await node.webhooks.recordAndClaim({ now: noon, outcomes, released: [], claim: null })
  return claims.map(({ delivery }) => delivery.id)
}

test('claimers of one lane stay within its limit together', async () => {
  const orgId = await newOrg()
  for (let n = 0; n < 20; n++) {
    const delivery = makeDelivery(orgId, `lane-${orgId}-${n}`, `lane-${orgId}`)
    await nodes[0]!.webhooks.schedule({ delivery, audit: makeAudit(orgId) })
  }
  const claimed = await atOnce('webhook_delivery', (node, index) => {
    const claim = makeClaim(`limit-${orgId}-${index}`, { leaseMs: 60_000, perLaneMax: 3 })
    return node.webhooks.recordAndClaim({ now: noon, outcomes: [], released: [], claim })
  })
  const ids = claimed.flat().map(({ delivery }) => delivery.id)
  expect(ids).toHaveLength(3)
  expect(new Set(ids).size).toBe(3)
  for (const [index, claims] of claimed.entries()) {
    const leaseId = `limit-${orgId}-${index}`
    const outcomes = claims.map(({ delivery }): Outcome => {
      return { deliveryId: delivery.id, leaseId, attempt: makeAttempt(), next: { status: 'delivered' } }
    })
    await nodes[0]!.webhooks.recordAndClaim({ now: noon, outcomes, released: [], claim: null })
  }
  for (
    let n = 0;
    (await claimAndSettle(nodes[0]!, `rest-${orgId}-${n}`, { status: 'delivered' })).length > 0;
  )
    n++
})

test('of many deliveries each is sent once, by one of the claimers', async () => {
  const orgId = await newOrg()
  const ids = Array.from({ length: 120 }, (_, n) => `many-${orgId}-${n}`)
  for (const [n, id] of ids.entries()) {
    const delivery = makeDelivery(orgId, id, `lane-${orgId}-${n % 10}`)
    await nodes[n % 4]!.webhooks.schedule({ delivery, audit: makeAudit(orgId) })
  }
  const sentIds = await Promise.all(
    nodes.map(async (node, index) => {
      const ownIds: string[] = []
      let idle = 0
      for (let n = 0; idle < 3; n++) {
        const delivered = await claimAndSettle(node, `many-${orgId}-${index}-${n}`, { status: 'delivered' })
        ownIds.push(...delivered)
        idle = delivered.length > 0 ? 0 : idle + 1
      }
      return ownIds
    }),
  )
  expect(sentIds.flat().toSorted()).toEqual(ids.toSorted())
  for (const id of ids) {
    const delivery = await nodes[0]!.webhooks.find({ orgId, id })
    expect(delivery).toMatchObject({ delivery: { status: 'delivered', attempts: 1 } })
  }
})

test('a node that claims for the first time leaves the leases of the others', async () => {
  const orgId = await newOrg()
  const id = `leased-${orgId}`
  await nodes[0]!.webhooks.schedule({ delivery: makeDelivery(orgId, id, id), audit: makeAudit(orgId) })
  const claim = makeClaim(`held-${orgId}`, { leaseMs: 60_000 })
  const claims = await nodes[0]!.webhooks.recordAndClaim({ now: noon, outcomes: [], released: [], claim })
  expect(claims.map(({ delivery }) => delivery.id)).toEqual([id])
  const late = await openRecords({ url })
  const second = { ...claim, leaseId: `late-${orgId}` }
  const request = { outcomes: [], released: [] }
  expect(await late.webhooks.recordAndClaim({ now: noon + 1, ...request, claim: second })).toEqual([])
  const afterLease = await late.webhooks.recordAndClaim({ now: noon + 60_001, ...request, claim: second })
  expect(afterLease.map(({ delivery }) => delivery.id)).toEqual([id])
  const released = [{ deliveryId: id, leaseId: `late-${orgId}` }]
  await late.webhooks.recordAndClaim({ now: noon, outcomes: [], released, claim: null })
  await late.close()
})

test('the audit chain of an organization stays dense and verifies', async () => {
  const orgId = await newOrg()
  const countBefore = (await auditOf(nodes[0]!, orgId)).length
  await atOnce('audit_head', async (node) => {
    await Promise.all(Array.from({ length: 25 }, () => node.audit.append(makeAudit(orgId))))
  })
  const verdict = await nodes[1]!.audit.verify([])
  expect(verdict.faults).toEqual([])
  expect(verdict.chains.find((chain) => chain.orgId === orgId)?.count).toBe(countBefore + 100)
  expect(await auditOf(nodes[2]!, orgId)).toHaveLength(countBefore + 100)
})

test('a node that stalls in a transaction blocks the others until its timeout', async () => {
  const orgId = await newOrg()
  const impatient = await openRecords({ url, lockTimeoutMs: 200 })
  watcher.run('BEGIN')
  watcher.run("SET LOCAL idle_in_transaction_session_timeout = '1s'")
  watcher.run("SELECT 1 FROM store_lock WHERE name = 'records' FOR UPDATE")
  const refused = await failure(impatient.audit.append(makeAudit(orgId)))
  expect(refused.kind).toBe('unavailable')
  const patient = nodes[0]!.audit.append(makeAudit(orgId, { target: 'patient' }))
  await patient
  await impatient.audit.append(makeAudit(orgId, { target: 'again' }))
  const targets = (await auditOf(nodes[1]!, orgId)).map(({ target }) => target)
  expect(targets.slice(0, 2)).toEqual(['again', 'patient'])
  expect(() => watcher.run('COMMIT')).toThrow()
  await impatient.close()
})

test('verbs that lock their own rows do not wait for the lock on records', async () => {
  const orgId = await newOrg()
  const key = makeKey(orgId)
  await nodes[0]!.keys.create({ key, audit: makeAudit(orgId) })
  await nodes[0]!.nodes.register({ node: { name: orgId, version: '1', role: 'all' }, now: noon })
  const lease = await nodes[0]!.jobs.claim({ job: orgId, node: orgId, leaseMs: 60_000, now: noon })
  const sample = { orgId, keyId: key.id, atMs: noon, code: 'c', message: 'm', path: 'p', excerpt: 'e' }
  const attempt = { names: [{ name: orgId, isSender: false, refused: 0 }], freeTries: 3, now: noon }
  watcher.run('BEGIN')
  watcher.run("SELECT 1 FROM store_lock WHERE name = 'records' FOR UPDATE")
  for (const node of nodes) {
    await node.rejected.add([sample])
    await node.keys.touch([{ keyId: key.id, atMs: noon, address: '127.0.0.1' }])
    await node.nodes.heartbeat({ name: orgId, report: null, now: noon })
    expect(await node.jobs.renew({ ...lease!, leaseMs: 60_000, now: noon })).toBe(true)
    expect((await node.throttle.begin(attempt)).start).toBe('begun')
    await node.throttle.end({ ...attempt, outcome: 'none' })
  }
  watcher.run('COMMIT')
  expect(await nodes[0]!.rejected.list({ orgId, limit: 10 })).toHaveLength(4)
})

test('nodes that touch keys, reject requests and try to sign in at once do not deadlock', async () => {
  const orgIds = [await newOrg(), await newOrg()]
  const keys = orgIds.flatMap((orgId) => [makeKey(orgId), makeKey(orgId)])
  for (const key of keys) await nodes[0]!.keys.create({ key, audit: makeAudit(key.orgId) })
  const names = orgIds.map((name) => ({ name, isSender: false, refused: 0 }))
  const turned = <T>(list: T[], index: number): T[] => (index % 2 === 0 ? list : list.toReversed())
  await Promise.all(
    nodes.map(async (node, index) => {
      for (let n = 0; n < 25; n++) {
        const uses = keys.map((key) => ({ keyId: key.id, atMs: noon + n, address: `${index}` }))
        await node.keys.touch(turned(uses, index))
        const samples = orgIds.map((orgId) => {
          return { orgId, keyId: 'k', atMs: noon, code: 'c', message: 'm', path: 'p', excerpt: 'e' }
        })
        await node.rejected.add(turned(samples, index))
        const attempt = { names: turned(names, index), freeTries: 1_000, now: noon }
        await node.throttle.begin(attempt)
        await node.throttle.end({ ...attempt, outcome: 'wrong' })
      }
    }),
  )
  const usedKeys = await nodes[0]!.keys.list({ orgId: orgIds[0]! })
  expect(usedKeys.map(({ lastUsedAtMs }) => lastUsedAtMs)).toEqual([noon + 24, noon + 24])
  const row = watcher.query<{ failures: number }, [string]>(
    'SELECT failures FROM sign_in_throttle WHERE name = ?',
  )
  expect(orgIds.map((orgId) => row.get(orgId)?.failures)).toEqual([100, 100])
})

/** As the append of another node, which counts one organization after the other. */
test('ingest counts of several organizations and an append of another node do not deadlock', async () => {
  const orgIds: string[] = []
  for (let n = 0; n < 2; n++) orgIds.push(await newOrg())
  // The number decides, not the id.
  const [first, second] = orgIds.toSorted().toReversed() as [string, string]
  for (const orgId of [first, second]) watcher.query('SELECT open_event_org(?)').get(orgId)
  const counted = { keyId: 'k', requests: 1, refused: 0, accepted: 1, deduped: 0, rejected: 0 }
  const count = (orgId: string, hour: number) => {
    return { orgId, hourStartMs: hour * 3_600_000, ...counted, aheadMaxMs: 0, behindMinMs: null }
  }
  await nodes[0]!.ingestCounts.add({ counts: [count(first, 1), count(second, 1)], keptSinceMs: 0 })
  watcher.run('BEGIN')
  const trim = 'DELETE FROM ingest_hour WHERE org_id = ? AND hour < 2'
  const bump = 'UPDATE ingest_hour SET requests = requests + 1 WHERE org_id = ? AND hour = 9'
  await nodes[0]!.ingestCounts.add({ counts: [count(first, 9), count(second, 9)], keptSinceMs: 0 })
  watcher.query(bump).run(first)
  watcher.query(trim).run(first)
  const adding = nodes[0]!.ingestCounts.add({
    counts: [count(second, 9), count(first, 9)],
    keptSinceMs: 2 * 3_600_000,
  })
  const waiting = watcher.query<{ n: number }>('SELECT count(*) AS n FROM pg_locks WHERE NOT granted')
  while ((waiting.get()?.n ?? 0) === 0) await Bun.sleep(10)
  watcher.query(bump).run(second)
  watcher.query(trim).run(second)
  watcher.run('COMMIT')
  await adding
  for (const orgId of [first, second])
    expect(await nodes[1]!.ingestCounts.list({ orgId, sinceMs: 0 })).toMatchObject([{ requests: 3 }])
})
