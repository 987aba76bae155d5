/** The audit chain against an attacker with the database file and SQL: every change is found and its row named. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { Database } from 'bun:sqlite'
import { createHash } from 'node:crypto'
import { cpSync, existsSync, readFileSync, rmSync } from 'node:fs'
import { openDatabaseAdmin, openStore } from '../../db/open.ts'
import type { AuditFault } from '../../db/contract/store.ts'
import { tempDir, type TempDir } from '../support/temp-dir.ts'
import { makeAudit, noon } from './make.ts'

setDefaultTimeout(90_000) // every store starts three threads, and other suites may be running

const orgId = 'org_acme'

let original: TempDir
const entries = Array.from({ length: 5 }, (_, n) => makeAudit(orgId, { target: `t${n}` }))

beforeAll(async () => {
  original = tempDir('audit-chain')
  const store = await openStore({ folder: original.path, now: noon })
  for (const entry of entries) await store.audit.append(entry)
  for (const target of ['a', 'b']) await store.audit.append(makeAudit('org_other', { target }))
  await store.close()
  expect((await openDatabaseAdmin(original.path).verifyAudit()).faults).toEqual([])
})
afterAll(() => original.remove())

/** A closed folder with a chain of five entries and a second organization's chain of two. */
function chain(folder: string): void {
  cpSync(original.path, folder, { recursive: true })
}

function tamper(folder: string, sql: string): void {
  const db = new Database(`${folder}/sightglass.db`)
  db.run('DROP TRIGGER audit_entry_no_update')
  db.run('DROP TRIGGER audit_entry_no_delete')
  db.run(sql)
  db.close()
}

const position = (n: number) => `position = '${String(n).padStart(12, '0')}'`
const ofOrg = `orgId = '${orgId}' AND`

async function faultAfter(sql: string): Promise<AuditFault | undefined> {
  using dir = tempDir()
  chain(dir.path)
  tamper(dir.path, sql)
  const { faults, chains } = await openDatabaseAdmin(dir.path).verifyAudit()
  expect(faults.length).toBe(1) // the other organization is sound
  expect(chains.find((orgChain) => orgChain.orgId === 'org_other')?.count).toBe(2)
  return faults[0]
}

for (const column of ['id', 'actor', 'action', 'target', 'metadata', 'occurredAt']) {
  test(`an edited ${column} is found and its row named`, async () => {
    const fault = await faultAfter(
      `UPDATE audit_entry SET ${column} = ${column} || 'x' WHERE ${ofOrg} ${position(3)}`,
    )
    expect(fault).toMatchObject({ orgId, position: 3, kind: 'edited' })
    expect(fault?.entryId).toStartWith(entries[2]?.id ?? '')
  })
}

test('a deleted entry is found at its position', async () => {
  const fault = await faultAfter(`DELETE FROM audit_entry WHERE ${ofOrg} ${position(2)}`)
  expect(fault).toMatchObject({ orgId, position: 2, kind: 'missing', entryId: null })
})

test('entries with swapped positions are found', async () => {
  const fault = await faultAfter(
    `UPDATE audit_entry SET position = 'x' WHERE ${ofOrg} ${position(2)};
     UPDATE audit_entry SET position = '000000000002' WHERE ${ofOrg} ${position(3)};
     UPDATE audit_entry SET position = '000000000003' WHERE position = 'x'`,
  )
  expect(fault).toMatchObject({ orgId, position: 2, kind: 'reordered', entryId: entries[2]?.id })
})

test('entries swapped in the table are found', async () => {
  const fault = await faultAfter(
    `UPDATE audit_entry SET rowid = 100 WHERE ${ofOrg} ${position(2)};
     UPDATE audit_entry SET rowid = 2 WHERE ${ofOrg} ${position(3)};
     UPDATE audit_entry SET rowid = 3 WHERE rowid = 100`,
  )
  expect(fault).toMatchObject({ orgId, position: 3, kind: 'reordered', entryId: entries[2]?.id })
})

test('a truncated chain is found by the head in the database', async () => {
  const fault = await faultAfter(`DELETE FROM audit_entry WHERE ${ofOrg} position > '000000000003'`)
  expect(fault).toMatchObject({ orgId, position: 4, kind: 'cut' })
})

test('a truncated chain with a truncated head is found by the file beside the database', async () => {
  const fault = await faultAfter(
    `DELETE FROM audit_entry WHERE ${ofOrg} position > '000000000003';
     UPDATE audit_head SET count = 3, hash = (SELECT hash FROM audit_entry WHERE ${ofOrg} ${position(3)})
       WHERE org_id = '${orgId}'`,
  )
  expect(fault).toMatchObject({ orgId, position: 4, kind: 'cut' })
})

test('a deleted chain is found', async () => {
  const fault = await faultAfter(
    `DELETE FROM audit_entry WHERE orgId = '${orgId}'; DELETE FROM audit_head WHERE org_id = '${orgId}'`,
  )
  expect(fault).toMatchObject({ orgId, position: 1, kind: 'cut' })
})

/** Rewrites the documented hash of every row, as somebody who read the source would. */
function rehash(folder: string): void {
  const db = new Database(`${folder}/sightglass.db`)
  type Row = { [column: string]: string }
  let prevHash = '0'.repeat(64)
  for (const row of db
    .query<Row, [string]>('SELECT * FROM audit_entry WHERE orgId = ? ORDER BY position')
    .all(orgId)) {
    const names = ['position', 'id', 'orgId', 'actor', 'action', 'target', 'metadata', 'occurredAt']
    const text = JSON.stringify(['sightglass-audit-1', prevHash, ...names.map((name) => row[name])])
    const hash = createHash('sha256').update(text).digest('hex')
    db.query('UPDATE audit_entry SET prevHash = ?, hash = ? WHERE id = ?').run(
      prevHash,
      hash,
      row['id'] ?? '',
    )
    prevHash = hash
  }
  db.query('UPDATE audit_head SET hash = ? WHERE org_id = ?').run(prevHash, orgId)
  db.close()
}

test('the documented hash gives the hashes in the table', async () => {
  using dir = tempDir()
  chain(dir.path)
  tamper(dir.path, 'SELECT 1')
  rehash(dir.path)
  expect((await openDatabaseAdmin(dir.path).verifyAudit()).faults).toEqual([])
})

test('an edited and rehashed chain is found by the file beside the database', async () => {
  using dir = tempDir()
  chain(dir.path)
  tamper(dir.path, `UPDATE audit_entry SET actor = 'nobody' WHERE ${ofOrg} ${position(1)}`)
  rehash(dir.path)
  const { faults } = await openDatabaseAdmin(dir.path).verifyAudit()
  expect(faults).toMatchObject([{ orgId, position: 5, kind: 'rewritten', entryId: entries[4]?.id }])
})

test('a replaced and rehashed row does not match the next row', async () => {
  using dir = tempDir()
  chain(dir.path)
  tamper(dir.path, `UPDATE audit_entry SET actor = 'nobody' WHERE ${ofOrg} ${position(2)}`)
  const db = new Database(dir.join('sightglass.db'))
  const row = db
    .query<{ [column: string]: string }, []>(`SELECT * FROM audit_entry WHERE ${ofOrg} ${position(2)}`)
    .get()
  const names = ['prevHash', 'position', 'id', 'orgId', 'actor', 'action', 'target', 'metadata', 'occurredAt']
  const text = JSON.stringify(['sightglass-audit-1', ...names.map((name) => row?.[name])])
  const hash = createHash('sha256').update(text).digest('hex')
  db.query(`UPDATE audit_entry SET hash = ? WHERE ${ofOrg} ${position(2)}`).run(hash)
  db.close()
  expect((await openDatabaseAdmin(dir.path).verifyAudit()).faults).toMatchObject([
    { orgId, position: 3, kind: 'rewritten' },
  ])
})

test('plain SQL cannot change or delete an entry', async () => {
  using dir = tempDir()
  chain(dir.path)
  const db = new Database(dir.join('sightglass.db'))
  expect(() => db.run("UPDATE audit_entry SET actor = 'x'")).toThrow('audit entries are never changed')
  expect(() => db.run('DELETE FROM audit_entry')).toThrow('audit entries are never deleted')
  db.run("INSERT INTO audit_checkpoint VALUES (1, 'org_a', 3, 'h', 'a', 'k', 's')")
  for (const sql of [
    "UPDATE audit_checkpoint SET hash = 'x'",
    'DELETE FROM audit_checkpoint',
    "INSERT OR REPLACE INTO audit_checkpoint VALUES (1, 'org_a', 2, 'h', 'a', 'k', 's')",
  ])
    expect(() => db.run(sql)).toThrow(/^checkpoints of the audit trail are never/)
  const values =
    "actor, action, target, metadata, occurredAt, position || 'x', prevHash, hash FROM audit_entry"
  for (const replacing of [
    'SELECT rowid, * FROM audit_entry LIMIT 1',
    `SELECT NULL, id, 'org_new', ${values} LIMIT 1`,
    `SELECT 1, 'new', 'org_new', ${values} LIMIT 1`,
    "SELECT NULL, 'new', orgId, actor, action, target, metadata, occurredAt, position, '', '' FROM audit_entry LIMIT 1",
  ]) {
    const columns = 'rowid, id, orgId, actor, action, target, metadata, occurredAt, position, prevHash, hash'
    expect(() => db.run(`INSERT OR REPLACE INTO audit_entry (${columns}) ${replacing}`)).toThrow(
      'never replaced',
    )
  }
  db.close()
  expect((await openDatabaseAdmin(dir.path).verifyAudit()).faults).toEqual([])
})

test('a file that lags behind, as after a crash, is not a fault, and the next verb updates it', async () => {
  using dir = tempDir()
  chain(dir.path)
  const old = dir.join('old-heads')
  cpSync(dir.join('audit-heads'), old)
  const store = await openStore({ folder: dir.path, now: noon })
  await store.audit.append(makeAudit(orgId))
  expect((await store.audit.verify([])).faults).toEqual([])
  await store.close()
  cpSync(old, dir.join('audit-heads'))
  expect((await openDatabaseAdmin(dir.path).verifyAudit()).faults).toEqual([])
  const again = await openStore({ folder: dir.path, now: noon })
  await again.audit.append(makeAudit('org_third'))
  await again.close()
  const { heads } = JSON.parse(readFileSync(dir.join('audit-heads'), 'utf8')) as {
    heads: { [org: string]: unknown }
  }
  expect(Object.entries(heads).map(([org, head]) => [org, (head as { count: number }).count])).toEqual([
    [orgId, 6],
    ['org_other', 2],
    ['org_third', 1],
  ])
})

const cutTail = `DELETE FROM audit_entry WHERE ${ofOrg} position > '000000000003';
  UPDATE audit_head SET count = 3, hash = (SELECT hash FROM audit_entry WHERE ${ofOrg} ${position(3)})
    WHERE org_id = '${orgId}'`

test('a truncated chain makes the start fail', async () => {
  using dir = tempDir()
  chain(dir.path)
  tamper(dir.path, cutTail)
  const refusal = await openStore({ folder: dir.path, now: noon }).catch((error: unknown) => error)
  expect(refusal).toMatchObject({
    kind: 'incomplete',
    message: expect.stringContaining('audit-heads records 5'),
  })
})

test('the file keeps its heads when a running store continues after a truncation', async () => {
  using dir = tempDir()
  chain(dir.path)
  const store = await openStore({ folder: dir.path, now: noon })
  tamper(dir.path, cutTail)
  await store.audit.append(makeAudit(orgId))
  await store.audit.append(makeAudit('org_other'))
  expect((await store.audit.verify([])).faults).toMatchObject([{ orgId, position: 5, kind: 'cut' }])
  const replacement = makeAudit(orgId)
  await store.audit.append(replacement)
  const { faults } = await store.audit.verify([])
  expect(faults).toMatchObject([{ orgId, position: 5, kind: 'rewritten', entryId: replacement.id }])
  await store.close()
  const { heads } = JSON.parse(readFileSync(dir.join('audit-heads'), 'utf8')) as {
    heads: { [org: string]: unknown }
  }
  expect(heads).toMatchObject({ [orgId]: { count: 5 }, org_other: { count: 3 } })
})

test('without the file the chain is still verified against itself', async () => {
  using dir = tempDir()
  chain(dir.path)
  rmSync(dir.join('audit-heads'))
  expect((await openDatabaseAdmin(dir.path).verifyAudit()).faults).toEqual([])
  expect(existsSync(dir.join('audit-heads'))).toBe(false)
})
