/** Opening a SQLite folder: what is created, what is rejected and left untouched, who holds the lock. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { Database } from 'bun:sqlite'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { openDatabaseAdmin, openStore } from '../../db/open.ts'
import { tempDir, type TempDir } from '../support/temp-dir.ts'
import { makeAudit, makeBatch, makeEvent, makeOrg, noon } from './make.ts'
import { auditOf, failure } from './subject.ts'

setDefaultTimeout(90_000) // every store starts three threads, and other suites may be running

const open = (folder: string) => openStore({ folder, now: noon })

async function openAndClose(folder: string): Promise<void> {
  const store = await open(folder)
  await store.audit.append(makeAudit('org_system'))
  await store.close()
}

let closed: TempDir
beforeAll(async () => {
  closed = tempDir('closed')
  await openAndClose(closed.path)
})
afterAll(() => closed.remove())

/** Gives the folder a copy of a database that was opened and closed once. */
function useFolder(folder: string): void {
  cpSync(closed.path, folder, { recursive: true })
}

test('a new folder and every file in it are their owner’s alone', async () => {
  using dir = tempDir()
  const folder = dir.join('deep', 'data')
  const store = await open(folder)
  await store.audit.append(makeAudit('org_system'))
  expect(statSync(folder).mode & 0o777).toBe(0o700)
  const files = [
    'sightglass.db',
    'sightglass.db-wal',
    'sightglass.db-shm',
    'sightglass.lock',
    'audit-heads',
    'reserve',
  ]
  for (const file of files) {
    expect([file, statSync(`${folder}/${file}`).mode & 0o777]).toEqual([file, 0o600])
  }
  await store.close()
  expect(existsSync(`${folder}/sightglass.db-wal`)).toBe(false)
})

test('the database has the settings that must be set at its creation', async () => {
  using dir = tempDir()
  useFolder(dir.path)
  const db = new Database(dir.join('sightglass.db'), { readonly: true })
  const pragma = (name: string) => Object.values(db.query(`PRAGMA ${name}`).get() as object)[0] as unknown
  expect([pragma('page_size'), pragma('auto_vacuum'), pragma('journal_mode')]).toEqual([8192, 2, 'wal'])
  expect(pragma('integrity_check')).toBe('ok')
  db.close()
})

test('an empty store gets its first organization once', async () => {
  using dir = tempDir()
  const bootstrap = () => {
    const org = makeOrg({ slug: 'default' })
    return { org, audit: makeAudit(org.id, { action: 'org.created' }) }
  }
  const first = bootstrap()
  for (const bootstrapOrg of [first, bootstrap()]) {
    const store = await openStore({ folder: dir.path, now: noon, bootstrap: bootstrapOrg })
    expect(await store.orgs.list()).toEqual([first.org])
    expect(await auditOf(store, first.org.id)).toMatchObject([first.audit])
    expect(await auditOf(store, bootstrapOrg.org.id)).toHaveLength(bootstrapOrg === first ? 1 : 0)
    await store.close()
  }
})

test('one store holds a folder, and the error names it', async () => {
  using dir = tempDir()
  const store = await open(dir.path)
  const error = await failure(open(dir.path))
  expect(error.kind).toBe('locked')
  expect(error.message).toContain(`process ${process.pid}`)
  await store.audit.append(makeAudit('org_system')) // the holder is not disturbed
  await store.close()
  await (await open(dir.path)).close()
})

test('a deleted lock file admits no other process, and ends writing', async () => {
  using dir = tempDir()
  const store = await open(dir.path)
  rmSync(dir.join('sightglass.lock'))
  const error = await failure(open(dir.path))
  expect([error.kind, error.message]).toEqual([
    'locked',
    `the data folder is in use by process ${process.pid}`,
  ])
  expect((await store.broken).kind).toBe('displaced')
  expect((await failure(store.audit.append(makeAudit('org_system')))).kind).toBe('displaced')
  await store.close()
  await (await open(dir.path)).close()
})

test('of ten concurrent opens one gets the folder', async () => {
  using dir = tempDir()
  const opened = await Promise.allSettled(Array.from({ length: 10 }, () => open(dir.path)))
  const stores = opened.filter((result) => result.status === 'fulfilled')
  const kinds = opened.flatMap((result) =>
    result.status === 'rejected' ? [(result.reason as { kind: string }).kind] : [],
  )
  expect(stores.length).toBe(1)
  expect(kinds).toEqual(Array.from({ length: 9 }, () => 'locked'))
  await stores[0]?.value.close()
})

test('rejects a file that is no database and leaves it unchanged', async () => {
  using dir = tempDir()
  const garbage = 'not a database, but somebody’s notes\n'.repeat(400)
  writeFileSync(dir.join('sightglass.db'), garbage)
  expect((await failure(open(dir.path))).kind).toBe('corrupt')
  expect(readFileSync(dir.join('sightglass.db'), 'utf8')).toBe(garbage)
  expect((await failure(openDatabaseAdmin(dir.path).verifyAudit())).kind).toBe('corrupt')
})

test('another program’s database is refused and left as it is', async () => {
  using dir = tempDir()
  const path = dir.join('sightglass.db')
  const otherDatabase = new Database(path, { create: true })
  otherDatabase.run('CREATE TABLE theirs (x)')
  otherDatabase.close()
  const bytesBefore = readFileSync(path)
  const error = await failure(open(dir.path))
  expect([error.kind, error.message]).toEqual(['corrupt', 'the database belongs to another program'])
  expect(readFileSync(path).equals(bytesBefore)).toBe(true)
})

test('opening and closing again writes nothing', async () => {
  using dir = tempDir()
  useFolder(dir.path)
  const bytesBefore = readFileSync(dir.join('sightglass.db'))
  await (await open(dir.path)).close()
  expect(readFileSync(dir.join('sightglass.db')).equals(bytesBefore)).toBe(true)
})

test('rejects a database of a newer release and leaves it unchanged', async () => {
  using dir = tempDir()
  useFolder(dir.path)
  const db = new Database(dir.join('sightglass.db'))
  db.run("INSERT INTO schema_migration VALUES (999, '0999_future', 0)")
  db.run('CREATE TABLE future (x)')
  db.run('PRAGMA wal_checkpoint(TRUNCATE)')
  db.close()
  const bytesBefore = readFileSync(dir.join('sightglass.db'))
  const error = await failure(open(dir.path))
  expect(error.kind).toBe('newer_schema')
  expect(error.message).toContain('999')
  expect(readFileSync(dir.join('sightglass.db')).equals(bytesBefore)).toBe(true)
  expect((await failure(openDatabaseAdmin(dir.path).verifyAudit())).kind).toBe('newer_schema')
})

test('rejects a used folder with a missing or empty database', async () => {
  using dir = tempDir()
  useFolder(dir.path)
  truncateSync(dir.join('sightglass.db'), 0)
  expect((await failure(open(dir.path))).kind).toBe('incomplete')
  rmSync(dir.join('sightglass.db'))
  expect((await failure(open(dir.path))).kind).toBe('incomplete')
  expect(existsSync(dir.join('sightglass.db'))).toBe(false)
})

test('rejects a damaged file of audit heads', async () => {
  using dir = tempDir()
  useFolder(dir.path)
  writeFileSync(dir.join('audit-heads'), '{"format":')
  expect((await failure(open(dir.path))).kind).toBe('corrupt')
})

test('completes an interrupted creation', async () => {
  using dir = tempDir()
  const half = new Database(dir.join('sightglass.db'), { create: true })
  half.run('PRAGMA page_size = 8192')
  half.run('PRAGMA auto_vacuum = INCREMENTAL')
  half.run('PRAGMA journal_mode = WAL')
  half.close()
  await openAndClose(dir.path)
  expect((await openDatabaseAdmin(dir.path).verifyAudit()).chains).toHaveLength(1)
})

test('a path that is a file, and a folder that allows no files, are read_only', async () => {
  using dir = tempDir()
  writeFileSync(dir.join('file'), 'x')
  expect((await failure(open(dir.join('file')))).kind).toBe('read_only')
  mkdirSync(dir.join('data'))
  mkdirSync(dir.join('data', 'sightglass.lock')) // cannot be opened as a file, even by root
  expect((await failure(open(dir.join('data')))).kind).toBe('read_only')
  expect((await failure(openDatabaseAdmin(dir.join('data')).verifyAudit())).kind).toBe('not_found')
})

test('reading a damaged page fails as corrupt, and the store keeps running', async () => {
  using dir = tempDir()
  const store = await open(dir.path)
  const metadata = { pad: 'x'.repeat(2_000) }
  for (let n = 0; n < 40; n++) await store.audit.append(makeAudit('org_a', { metadata }))
  await store.close()
  const path = dir.join('sightglass.db')
  const db = new Database(path)
  const leaves = db
    .query<{ pageno: number }, []>(
      "SELECT pageno FROM dbstat WHERE name = 'audit_entry' AND pagetype = 'leaf'",
    )
    .all()
  db.close()
  const bytes = readFileSync(path)
  const start = ((leaves[5]?.pageno ?? 0) - 1) * 8_192
  bytes.fill(0xa5, start, start + 8_192)
  writeFileSync(path, bytes)
  const damaged = await open(dir.path)
  expect((await failure(auditOf(damaged, 'org_a'))).kind).toBe('corrupt')
  expect(await damaged.orgs.list()).toEqual([])
  await damaged.close()
})

test('the log is truncated once the writer is idle', async () => {
  using dir = tempDir()
  const store = await open(dir.path)
  await store.events.append(makeBatch('org_a', [makeEvent('e')]))
  expect((await store.health()).logBytes).toBeGreaterThan(0)
  const deadlineMs = performance.now() + 10_000
  while ((await store.health()).logBytes !== 0 && performance.now() < deadlineMs) await Bun.sleep(50)
  expect((await store.health()).logBytes).toBe(0)
  await store.close()
})

test('a slow read ends with deadline, and the next one succeeds', async () => {
  using dir = tempDir()
  const store = await openStore({ folder: dir.path, now: noon, readers: 1, readDeadlineMs: 1 })
  for (let n = 0; n < 30; n++) {
    const events = Array.from({ length: 1_000 }, (_, index) => makeEvent(`${n}-${index}`))
    await store.events.append(makeBatch('org_a', events))
  }
  const emptyQuery = { orgId: 'org_a', filter: { tools: ['none'] }, limit: 1, before: null, ceilingSeq: null }
  expect((await failure(store.events.page(emptyQuery))).kind).toBe('deadline')
  expect(await store.events.byId({ orgId: 'org_a', id: '0-0' })).not.toBeNull()
  await store.close()
})
