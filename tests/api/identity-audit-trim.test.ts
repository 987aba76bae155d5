/** Retention of the audit trail: a trimmed chain and its proof verify; any other deletion is found. */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from 'bun:test'
import type { AuditTrim, Store } from '../../db/contract/store.ts'
import { auditEntry } from '../../server/audit/entry.ts'
import { openSigningKey, ringSigningKey, signHead, signTrim } from '../../server/audit/signing.ts'
import { trimAll } from '../../server/audit/checkpoints.ts'
import { verifyTrail } from '../../server/audit/verify.ts'
import { readKeyRing } from '../../server/system/key-ring.ts'
import { startLog } from '../../server/log.ts'
import { cli } from '../support/binary.ts'
import { folderTest, isOnPostgres, locationOf, openTestFolder, rawSql, testRing } from '../support/engine.ts'
import { person } from '../support/people.ts'
import { documentedVerifier } from '../support/proof-verifier.ts'
import { testServer } from '../support/server.ts'
import { tempDir, type TempDir } from '../support/temp-dir.ts'
import { unending } from '../support/unending.ts'

setDefaultTimeout(90_000)

const dayMs = 24 * 3_600_000
const startMs = Date.UTC(2026, 5, 23, 12)
const orgId = 'org_a'
let dir: TempDir
let store: Store
let logged: string[]
let sites: number

beforeEach(async () => {
  dir = tempDir('trim')
  store = await openTestFolder(dir.path, { now: () => startMs })
  logged = []
  sites = 0
})
afterEach(async () => {
  await store.close()
  dir.remove()
})

/** One entry per day. */
async function write(days: number): Promise<void> {
  const entries = Array.from({ length: days }, (_, day) => {
    const act = { action: 'site.renamed', target: `site_${sites++}` }
    return auditEntry({ orgId, actor: 'cli' }, act, startMs + day * dayMs)
  })
  await Promise.all(entries.map((entry) => store.audit.append(entry)))
}

function trim(atDay: number, auditDays: number | null = 30): Promise<void> {
  const sink = {
    write: (line: string) => void logged.push(line),
    takeDropped: () => 0,
    flush: async () => {},
  }
  const clock = { now: () => startMs + atDay * dayMs }
  const log = startLog({ level: 'info', clock, sink })
  const rule = { days: null, bytes: null, auditDays }
  return trimAll(
    { store, key: ownKey(), folder: isOnPostgres ? null : dir.path, rule, log },
    clock.now(),
    unending,
  )
}

/** The key with which commands on the folder sign. */
const ownKey = () => (isOnPostgres ? ringSigningKey(readKeyRing(testRing)) : openSigningKey(dir.path))

const verdict = async () => {
  const ring = isOnPostgres ? readKeyRing(testRing) : null
  const { ok, faults, chains } = await verifyTrail(dir.path, ring, await locationOf(dir.path))
  return { ok, faults, chain: chains.find((chain) => chain.orgId === orgId) }
}

/** Returns the rows, or the message of the failure. */
async function byHand(sql: string): Promise<unknown[] | string> {
  await store.close()
  return rawSql(dir.path, sql).catch(String)
}

test('expired entries are deleted behind a signed trim, recorded in the chain, the log and the checkpoints', async () => {
  await write(10)
  await trim(34) // the entries of the first four days are older than 30 days
  expect(await verdict()).toMatchObject({ ok: true, faults: [], chain: { count: 11, trim: { count: 4 } } })
  const { entries, next } = await store.audit.list({ orgId, limit: 100, beforeSeq: null })
  expect(next).toBeNull()
  expect(entries.map(({ seq }) => seq)).toEqual([11, 10, 9, 8, 7, 6, 5])
  expect(entries[0]).toMatchObject({
    actor: 'system',
    action: 'audit.trimmed',
    target: orgId,
    metadata: { through: 4, olderThan: '2026-06-27T12:00:00.000Z' },
  })
  const rows = await store.audit.rows({ orgId, afterSeq: 0, limit: 100 })
  expect(rows.map(({ position }) => Number(position))).toEqual([5, 6, 7, 8, 9, 10, 11])
  const { audit_trim } = Object.fromEntries(logged.map((line) => [JSON.parse(line).event, JSON.parse(line)]))
  expect(audit_trim).toMatchObject({ orgId, count: 4, hash: rows[0]?.prevHash })
  expect((await verifyTrail(dir.path, null, await locationOf(dir.path))).checkpoints).toMatchObject({
    sound: 1,
    unsound: [],
  })

  await trim(34) // again: nothing is left to delete, and nothing is written
  expect(await verdict()).toMatchObject({ ok: true, chain: { count: 11, trim: { count: 4 } } })
  await trim(200) // the newest entry stays, whatever its age
  expect(await verdict()).toMatchObject({ ok: true, chain: { count: 12, trim: { count: 10 } } })
  await write(2)
  expect(await verdict()).toMatchObject({ ok: true, chain: { count: 14 } })
})

test('nothing is deleted without a setting; an organization may have its own', async () => {
  await write(10)
  await trim(4_000, null)
  expect(await verdict()).toMatchObject({ ok: true, chain: { count: 10, trim: null } })
  const orgs = await store.orgs.list()
  const setting = { days: null, bytes: null, auditDays: 5 }
  const ownEntry = auditEntry(
    { orgId: orgs[0]!.id, actor: 'cli' },
    { action: 'retention.changed', target: 'x' },
    startMs,
  )
  await store.retention.set({ orgId: orgs[0]!.id, setting, audit: ownEntry })
  await store.audit.append({ ...ownEntry, id: 'aud_later', occurredAtMs: startMs + dayMs })
  await trim(10, null)
  const { chains } = await verifyTrail(dir.path, null, await locationOf(dir.path))
  const trimmed = chains.filter(({ trim }) => trim !== null).map(({ orgId }) => orgId)
  expect(trimmed).toEqual([orgs[0]!.id])
})

test('a damaged chain does not hold up the trims of the others', async () => {
  await write(10)
  const otherEntry = auditEntry(
    { orgId: 'org_b', actor: 'cli' },
    { action: 'site.renamed', target: 'x' },
    startMs,
  )
  await store.audit.append(otherEntry)
  await store.audit.append({ ...otherEntry, id: 'aud_later', occurredAtMs: startMs + dayMs })
  expect(Object.keys(await store.audit.heads()).indexOf(orgId)).toBe(0)
  const { position } = (await store.audit.rows({ orgId, afterSeq: 9, limit: 1 }))[0]!
  const next = String(Number(position) + 1).padStart(position.length, '0')
  // A row that no append wrote has the position of the next entry.
  const columns = 'orgId, actor, action, target, metadata, occurredAt'
  await byHand(`INSERT INTO audit_entry (id, ${columns}, position, prevHash, hash)
    SELECT 'aud_forged', ${columns}, '${next}', prevHash, hash FROM audit_entry
    WHERE orgId = '${orgId}' AND position = '${position}'`)
  store = await openTestFolder(dir.path, { now: () => startMs })
  expect(await trim(33).catch(String)).toContain(`organization ${orgId}: `)
  const { chains } = await verifyTrail(dir.path, null, await locationOf(dir.path))
  const trimmed = chains.filter(({ trim }) => trim !== null).map(({ orgId }) => orgId)
  expect(trimmed).toEqual(['org_b'])
})

test('a trimmed chain passes the documented verifier, and a forged beginning does not', async () => {
  await write(10)
  await trim(34)
  const out = dir.join('proof.jsonl')
  await store.close()
  const exportExit = await cli(['export', 'audit', '--org', orgId, '--proof', '--out', out], {
    dataDir: dir.path,
  })
  expect([exportExit.code, exportExit.stderr]).toEqual([0, ''])
  const proof = await Bun.file(out).text()
  expect(await documentedVerifier(proof)).toStartWith('sound: 8 entries of org_a after 4 trimmed ones')
  const [first = '', fifth = '', ...otherLines] = proof.trimEnd().split('\n')
  const begin = JSON.parse(first) as { head: object; trim: AuditTrim }
  const { hash } = JSON.parse(fifth) as { hash: string }
  const further = { ...begin, trim: { ...begin.trim, count: 5, hash } }
  expect(await documentedVerifier([JSON.stringify(further), ...otherLines].join('\n'))).toContain(
    'the signature of the trim is wrong',
  )
  const { trim: _, ...otherFields } = begin
  expect(await documentedVerifier([JSON.stringify(otherFields), fifth, ...otherLines].join('\n'))).toContain(
    'entry 1 (',
  )
  const json = dir.join('trail.json')
  await cli(['export', 'audit', '--org', orgId, '--format', 'json', '--out', json], { dataDir: dir.path })
  const trail = (await Bun.file(json).json()) as { entries: { action: string }[]; count: number }
  expect([trail.entries.length, trail.count]).toEqual([9, 9])
})

test('the triggers allow deleting only what a trim covers', async () => {
  await write(10)
  await trim(34)
  const never = 'audit entries are never deleted'
  expect(await byHand(`DELETE FROM audit_entry WHERE orgId = '${orgId}'`)).toContain(never)
  expect(await byHand("DELETE FROM audit_entry WHERE orgId = 'org_system'")).toContain(never)
  expect(await byHand('DELETE FROM audit_trim')).toContain('never deleted')
  expect(await byHand('UPDATE audit_trim SET count = 1')).toContain('never go back')
  expect(await byHand("UPDATE audit_trim SET hash = 'x'")).toContain('never go back')
  expect(await verdict()).toMatchObject({ ok: true })
})

test('a forged trim is found: with another signature, with that of a checkpoint, on another chain', async () => {
  await write(10)
  await trim(34)
  const rows = await store.audit.rows({ orgId, afterSeq: 0, limit: 10 })
  const point = { count: 7, hash: rows[2]!.hash }
  const checkpoint = signHead(ownKey(), orgId, point, startMs)
  const forge = async (
    count: number,
    hash: string,
    { key, signature, at: checkpointAt }: typeof checkpoint,
  ) => {
    const values = `hash = '${hash}', key = '${key}', signature = '${signature}', at = '${checkpointAt}'`
    expect(await byHand(`UPDATE audit_trim SET count = ${count}, ${values}`)).toEqual([])
    const covered = `orgId = '${orgId}' AND CAST(position AS INTEGER) <= ${count}`
    expect(await byHand(`DELETE FROM audit_entry WHERE ${covered}`)).toEqual([])
  }
  await forge(7, point.hash, checkpoint)
  expect(await verdict()).toMatchObject({ ok: false, faults: [{ orgId, position: 7, kind: 'forged' }] })
  await forge(8, 'x'.repeat(64), { ...checkpoint, signature: 'A'.repeat(86) })
  expect((await verdict()).faults).toMatchObject([{ orgId, position: 8, kind: 'forged' }])
  const verified = await cli(['verify', 'audit'], { dataDir: dir.path })
  expect([verified.code, verified.stdout]).toEqual([1, expect.stringContaining('audit position 8 is forged')])
})

test('a checkpoint of another chain up to the trim overrides the trim', async () => {
  await write(10)
  const knownRow = (await store.audit.rows({ orgId, afterSeq: 3, limit: 1 }))[0]!
  await trim(34)
  expect(
    (await store.audit.verify([{ orgId, count: 4, hash: knownRow.hash, source: 'a log' }])).faults,
  ).toEqual([])
  const otherCheckpoints = [{ orgId, count: 4, hash: 'f'.repeat(64), source: 'a log' }]
  expect((await store.audit.verify(otherCheckpoints)).faults).toMatchObject([{ position: 4, kind: 'forged' }])
})

test('a process that ends between trim and deletion leaves a valid chain; the next run deletes the rest', async () => {
  await write(10)
  await trim(34)
  const { hash } = (await store.audit.rows({ orgId, afterSeq: 5, limit: 1 }))[0]!
  const further = signTrim(ownKey(), orgId, { count: 6, hash }, startMs)
  const audit = auditEntry({ orgId, actor: 'system' }, { action: 'audit.trimmed', target: orgId }, startMs)
  await store.audit.trim({ trim: further, audit })
  expect(await verdict()).toMatchObject({ ok: true, chain: { count: 12, trim: { count: 6 } } })
  expect((await store.audit.rows({ orgId, afterSeq: 0, limit: 1 }))[0]?.position).toBe('000000000007')
  await trim(34)
  const leastPosition = await byHand("SELECT min(position) AS p FROM audit_entry WHERE orgId = 'org_a'")
  expect(leastPosition).toEqual([{ p: '000000000007' }])
  expect(await verdict()).toMatchObject({ ok: true })
})

folderTest('a heads file older than a trim catches up; one of another chain does not', async () => {
  const heads = dir.join('audit-heads')
  const headOf = async () =>
    ((await Bun.file(heads).json()) as { heads: { [org: string]: { count: number } } }).heads[orgId]
  await write(4)
  const early = await Bun.file(heads).text()
  await write(6)
  await trim(34)
  await store.close()
  await Bun.write(heads, early) // as after a crash or on a full disk
  expect(await verdict()).toMatchObject({ ok: true })
  store = await openTestFolder(dir.path, { now: () => startMs })
  await write(1)
  expect(await headOf()).toMatchObject({ count: 12 })
  await store.close()
  const otherText = early.replace(/"hash": "[0-9a-f]{64}"/g, `"hash": "${'f'.repeat(64)}"`)
  await Bun.write(heads, otherText.replaceAll('"count": 4', '"count": 8'))
  expect((await verdict()).faults.filter((fault) => fault.orgId === orgId)).toMatchObject([
    { kind: 'forged', position: 8 },
  ])
  store = await openTestFolder(dir.path, { now: () => startMs })
  await write(1)
  expect(await headOf()).toMatchObject({ count: 8, hash: 'f'.repeat(64) })
})

test('a trim that is not on the chain, or is at its newest entry, is rejected', async () => {
  await write(3)
  const audit = auditEntry({ orgId, actor: 'system' }, { action: 'audit.trimmed', target: orgId }, startMs)
  const heads = (await store.audit.heads())[orgId]!
  const signed = { orgId, at: '', key: '', signature: '' }
  for (const point of [heads, { count: 2, hash: heads.hash }]) {
    const trimming = store.audit.trim({ trim: { ...signed, ...point }, audit })
    expect(await trimming.catch(String)).toContain('cannot begin after')
  }
  expect((await store.audit.heads())[orgId]).toEqual(heads)
})

test('owners set the retention of their organization’s trail; an invalid number of days is rejected', async () => {
  await using server = await testServer({ retention: { days: 90, bytes: null, auditDays: 400 } })
  const owner = await person(server, server.org, 'owner')
  const viewer = await person(server, server.org, 'viewer')
  const setting = async () =>
    (await (await viewer.call('/api/retention')).json()) as { [member: string]: unknown }
  expect(await setting()).toMatchObject({ auditDays: null, appliance: { auditDays: 400 } })
  const set = (body: unknown) => owner.post('/api/retention', body)
  expect((await set({ days: 30, auditDays: 60 })).status).toBe(200)
  expect(await setting()).toMatchObject({ days: 30, bytes: null, auditDays: 60 })
  const { entries } = await server.store.audit.list({ orgId: server.org.id, limit: 1, beforeSeq: null })
  expect(entries[0]).toMatchObject({
    action: 'retention.changed',
    metadata: { before: { auditDays: null }, after: { auditDays: 60 } },
  })
  for (const auditDays of [0, -1, 1.5, 36_501, '30']) {
    const refused = await set({ auditDays })
    expect([
      refused.status,
      ((await refused.json()) as { issues: { path: string }[] }).issues[0]?.path,
    ]).toEqual([400, 'auditDays'])
  }
  expect((await viewer.post('/api/retention', { auditDays: 1 })).status).toBe(403)
  expect((await set({})).status).toBe(200)
  expect(await setting()).toMatchObject({ days: null, auditDays: null })
})

test('an entry dated ahead does not block a trim, and is deleted with the older one after it', async () => {
  const appendAtDay = async (day: number) => {
    const act = { action: 'thing.changed', target: 'thing' }
    await store.audit.append(auditEntry({ orgId, actor: 'cli' }, act, startMs + day * dayMs))
  }
  for (const day of [0, 400, 1, 401, 20]) await appendAtDay(day)
  await trim(40) // cutoff: day 10; the last entry before day 20 may be of that day
  expect(await verdict()).toMatchObject({ ok: true, chain: { trim: { count: 3 } } })
})
