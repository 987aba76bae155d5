/** Edits of the database and of every head in the folder: the checkpoints still find what was cut or rewritten. */
import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { appendFileSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Store } from '../../db/contract/store.ts'
import { openDataFolder } from '../../server/runtime/open-data-folder.ts'
import { startLog } from '../../server/log.ts'
import { readCheckpoints, writeCheckpoints } from '../../server/audit/checkpoints.ts'
import { auditEntry } from '../../server/audit/entry.ts'
import { openSigningKey } from '../../server/audit/signing.ts'
import { verifyTrail } from '../../server/audit/verify.ts'

const clock = { now: () => Date.UTC(2026, 5, 23, 12) }
const orgId = 'org_a'
let dataDir: string
let store: Store
let logged: string[]

beforeEach(async () => {
  dataDir = mkdtempSync(join(tmpdir(), 'sightglass-checkpoints-'))
  store = await openDataFolder(dataDir, clock)
  logged = []
})
afterEach(async () => {
  await store.close()
  rmSync(dataDir, { recursive: true, force: true })
})

async function write(count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const act = { action: 'thing.changed', target: `thing_${i}` }
    await store.audit.append(auditEntry({ orgId, actor: 'cli' }, act, clock.now()))
  }
}

function checkpoint(): Promise<number> {
  const sink = {
    write: (line: string) => void logged.push(line),
    takeDropped: () => 0,
    flush: async () => {},
  }
  const log = startLog({ level: 'info', clock, sink })
  return writeCheckpoints({ store, key: openSigningKey(dataDir), folder: dataDir, log }, clock.now())
}

/** Edits the database like an attacker with access to the file. */
async function byHand(work: (db: Database) => void): Promise<void> {
  await store.close()
  const db = new Database(join(dataDir, 'sightglass.db'))
  for (const name of ['audit_entry_no_delete', 'audit_entry_no_update']) db.run(`DROP TRIGGER ${name}`)
  work(db)
  db.close()
}

/** Cuts the newest entries and adapts every head of the folder. */
function cutTo(db: Database, count: number): void {
  db.query('DELETE FROM audit_entry WHERE orgId = ? AND CAST(position AS INTEGER) > ?').run(orgId, count)
  const { hash } = db
    .query<{ hash: string }, [string]>('SELECT hash FROM audit_entry WHERE orgId = ? ORDER BY position DESC')
    .get(orgId)!
  db.query('UPDATE audit_head SET count = ?, hash = ? WHERE org_id = ?').run(count, hash, orgId)
  const path = join(dataDir, 'audit-heads')
  const file = JSON.parse(readFileSync(path, 'utf8')) as { heads: { [orgId: string]: unknown } }
  file.heads[orgId] = { count, hash }
  writeFileSync(path, JSON.stringify(file))
}

test('a checkpoint is one signed line per chain that grew, in the file and in the log', async () => {
  await write(3)
  expect(await checkpoint()).toBe(2) // the appliance's own chain too
  expect(await checkpoint()).toBe(0)
  await write(1)
  expect(await checkpoint()).toBe(1)
  const { anchors, unsound } = readCheckpoints(dataDir)
  expect(anchors.map(({ orgId, count }) => [orgId, count])).toEqual([
    ['org_a', 3],
    ['org_system', 1],
    ['org_a', 4],
  ])
  expect(unsound).toEqual([])
  expect(logged.filter((line) => line.includes('audit_checkpoint')).length).toBe(3)
  expect(await verifyTrail(dataDir)).toMatchObject({ ok: true, faults: [] })
  for (const name of ['audit-signing.key', 'audit-checkpoints'])
    expect(statSync(join(dataDir, name)).mode & 0o777).toBe(0o600)
})

test('the checkpoint finds a tail that was cut together with every head', async () => {
  await write(5)
  await checkpoint()
  await byHand((db) => cutTo(db, 3))
  const { ok, faults } = await verifyTrail(dataDir)
  expect(ok).toBe(false)
  expect(faults).toMatchObject([{ orgId, position: 4, kind: 'cut' }])
})

test('entries appended after such a cut are found at the row that replaced another', async () => {
  await write(5)
  await checkpoint()
  await byHand((db) => cutTo(db, 3))
  store = await openDataFolder(dataDir, clock)
  await write(4)
  await store.close()
  const { faults } = await verifyTrail(dataDir)
  expect(faults).toMatchObject([{ orgId, position: 5, kind: 'rewritten' }])
  expect(faults[0]?.message).toContain('line 1 of the file audit-checkpoints')
})

test('a changed, a deleted and two swapped rows are found', async () => {
  await write(5)
  await checkpoint()
  const positionFilter = (n: number) => `position = '${String(n).padStart(12, '0')}' AND orgId = '${orgId}'`
  await byHand((db) => db.run(`UPDATE audit_entry SET actor = 'user:usr_other' WHERE ${positionFilter(2)}`))
  expect((await verifyTrail(dataDir)).faults).toMatchObject([{ position: 2, kind: 'edited' }])
  const db = new Database(join(dataDir, 'sightglass.db'))
  db.run(`UPDATE audit_entry SET actor = 'cli' WHERE ${positionFilter(2)}`)
  expect((await verifyTrail(dataDir)).ok).toBe(true)
  db.run(`UPDATE audit_entry SET position = 'x' WHERE ${positionFilter(3)}`)
  db.run(`UPDATE audit_entry SET position = '000000000003' WHERE ${positionFilter(4)}`)
  db.run(`UPDATE audit_entry SET position = '000000000004' WHERE position = 'x'`)
  expect((await verifyTrail(dataDir)).faults).toMatchObject([{ position: 3, kind: 'reordered' }])
  db.run(`UPDATE audit_entry SET position = 'x' WHERE ${positionFilter(3)}`)
  db.run(`UPDATE audit_entry SET position = '000000000003' WHERE ${positionFilter(4)}`)
  db.run(`UPDATE audit_entry SET position = '000000000004' WHERE position = 'x'`)
  db.run(`DELETE FROM audit_entry WHERE ${positionFilter(3)}`)
  expect((await verifyTrail(dataDir)).faults).toMatchObject([{ position: 3, kind: 'missing' }])
  db.close()
})

test('an edited line, or one with another signature, is unsound; one cut by a crash is not', async () => {
  await write(2)
  await checkpoint()
  const path = join(dataDir, 'audit-checkpoints')
  const [line = ''] = readFileSync(path, 'utf8').split('\n')
  const otherFolder = mkdtempSync(join(tmpdir(), 'sightglass-key-'))
  const foreign = { ...JSON.parse(line), key: openSigningKey(otherFolder).publicKey }
  rmSync(otherFolder, { recursive: true })
  appendFileSync(
    path,
    `${line.replace('"count":2', '"count":9')}\n${JSON.stringify(foreign)}\nnonsense\n{"orgId":`,
  )
  const { unsound, anchors } = readCheckpoints(dataDir)
  expect(anchors.length).toBe(2)
  expect(unsound.map(({ line, message }) => [line, message])).toEqual([
    [3, 'has an invalid signature'],
    [4, 'is signed by a key that is neither audit-signing.key nor in the key ring'],
    [5, 'is not a checkpoint'],
  ])
  expect((await verifyTrail(dataDir)).ok).toBe(false)
})

test('a last line that a crash cut off is a note, and the next checkpoint removes it', async () => {
  await write(2)
  await checkpoint()
  const path = join(dataDir, 'audit-checkpoints')
  const whole = readFileSync(path)
  for (const cut of [1, 40, whole.length - whole.indexOf(0x0a) - 2]) {
    writeFileSync(path, whole.subarray(0, -cut))
    // The database counts a line only after it is on disk.
    const { recorded } = await store.audit.evidence()
    await store.audit.recordEvidence({ signingKey: recorded?.signingKey ?? null, checkpoints: 1 })
    const verdictBefore = await verifyTrail(dataDir)
    expect(verdictBefore).toMatchObject({ ok: true })
    // A line without its line feed is complete.
    if (cut > 1) expect(verdictBefore.checkpoints.torn).toMatchObject({ line: 2 })
    await write(1)
    await checkpoint()
    expect(await verifyTrail(dataDir)).toMatchObject({ ok: true, checkpoints: { torn: null } })
    expect(readFileSync(path, 'utf8').split('\n').at(-2)).toContain('"orgId":')
  }
  // The same bytes cut from the middle are not a crash.
  const text = readFileSync(path, 'utf8')
  writeFileSync(path, `${text.slice(0, 50)}${text.slice(text.indexOf('\n') + 20)}`)
  expect((await verifyTrail(dataDir)).ok).toBe(false)
})

test('a tail that was truncated together with both files is found, also after the next start', async () => {
  await write(5)
  await checkpoint()
  await byHand((db) => cutTo(db, 3))
  for (const name of ['audit-heads', 'audit-checkpoints']) rmSync(join(dataDir, name))
  expect(await verifyTrail(dataDir)).toMatchObject({
    ok: false,
    missing: ['audit-heads', 'audit-checkpoints'],
  })
  store = await openDataFolder(dataDir, clock)
  await checkpoint()
  const { ok, missing, renewed } = await verifyTrail(dataDir)
  expect([ok, missing, renewed]).toMatchObject([
    false,
    [],
    [
      { file: 'audit-heads', acceptedAt: null },
      { file: 'audit-checkpoints', acceptedAt: null },
    ],
  ])
})

test('either file missing is a finding, except in a new folder', async () => {
  expect(await verifyTrail(dataDir)).toMatchObject({ ok: true, missing: [] })
  openSigningKey(dataDir)
  expect(await verifyTrail(dataDir)).toMatchObject({ ok: true, missing: [] })
  for (const name of ['audit-heads', 'audit-checkpoints']) {
    const bytes = readFileSync(join(dataDir, name))
    rmSync(join(dataDir, name))
    expect(await verifyTrail(dataDir)).toMatchObject({ ok: false, missing: [name] })
    writeFileSync(join(dataDir, name), bytes)
  }
})
