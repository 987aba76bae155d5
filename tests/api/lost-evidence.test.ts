/**
 * Every piece of evidence beside the audit chains, removed or emptied together with the newest entries. No start makes
 * it anew in silence: `verify` and `doctor` report it until an operator accepts it.
 */
import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { cpSync, existsSync, readFileSync, readdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { cli } from '../support/binary.ts'
import { tempDir, type TempDir } from '../support/temp-dir.ts'
import { auditEntry } from '../../server/audit/entry.ts'
import { acceptLosses, openLosses } from '../../server/audit/evidence.ts'
import { trimAll, writeCheckpoints } from '../../server/audit/checkpoints.ts'
import { openSigningKey } from '../../server/audit/signing.ts'
import { verifyTrail } from '../../server/audit/verify.ts'
import { startLog } from '../../server/log.ts'
import { openDataFolder } from '../../server/runtime/open-data-folder.ts'
import type { Store } from '../../db/contract/store.ts'

setDefaultTimeout(120_000)

const dayMs = 24 * 3_600_000
const clock = { now: () => Date.UTC(2026, 5, 23, 12) }
const orgId = 'org_a'
const sink = { write: () => {}, takeDropped: () => 0, flush: async () => {} }
const log = startLog({ level: 'info', clock, sink })

let original: TempDir
beforeAll(async () => {
  original = tempDir('lost-evidence')
  const store = await openDataFolder(original.path, clock)
  for (let n = 0; n < 5; n++) {
    await append(store, n)
    await checkpoint(store, original.path)
  }
  await store.close()
})
afterAll(() => original.remove())

function append(store: Store, n: number, now = clock.now()): Promise<void> {
  const act = { action: 'thing.changed', target: `thing_${n}` }
  return store.audit.append(auditEntry({ orgId, actor: 'cli' }, act, now))
}

function checkpoint(store: Store, dataDir: string): Promise<number> {
  return writeCheckpoints({ store, key: openSigningKey(dataDir), folder: dataDir, log }, clock.now())
}

/** Cuts the newest entries and adapts the head in the database, as somebody with SQL would. */
function cut(dataDir: string, positionMax: number): void {
  const db = new Database(`${dataDir}/sightglass.db`)
  db.run('DROP TRIGGER audit_entry_no_delete')
  db.query('DELETE FROM audit_entry WHERE orgId = ? AND CAST(position AS INTEGER) > ?').run(
    orgId,
    positionMax,
  )
  db.query(
    `UPDATE audit_head SET count = ?1, hash = (SELECT hash FROM audit_entry WHERE orgId = ?2
       AND CAST(position AS INTEGER) = ?1) WHERE org_id = ?2`,
  ).run(positionMax, orgId)
  db.close()
}

type Loss = (dataDir: string) => void

const removed =
  (...names: string[]): Loss =>
  (dataDir) =>
    names.forEach((name) => rmSync(`${dataDir}/${name}`))

/** Without the heads file, because with it the cut alone is refused. */
const losses: { [name: string]: Loss } = {
  'audit-heads removed': removed('audit-heads'),
  'audit-heads and audit-checkpoints removed': removed('audit-heads', 'audit-checkpoints'),
  'audit-heads and audit-signing.key removed': removed('audit-heads', 'audit-signing.key'),
  'all three removed': removed('audit-heads', 'audit-checkpoints', 'audit-signing.key'),
  'audit-heads without a chain': (dataDir) =>
    writeFileSync(`${dataDir}/audit-heads`, '{"format":"sightglass-audit-heads-1","heads":{}}'),
  'audit-checkpoints emptied': (dataDir) => {
    rmSync(`${dataDir}/audit-heads`)
    truncateSync(`${dataDir}/audit-checkpoints`, 0)
  },
  'audit-checkpoints cut to the entries that are left': (dataDir) => {
    rmSync(`${dataDir}/audit-heads`)
    const path = `${dataDir}/audit-checkpoints`
    const lines = readFileSync(path, 'utf8')
      .split('\n')
      .filter((line) => /"count":[123],/.test(line))
    writeFileSync(path, `${lines.join('\n')}\n`)
  },
}

for (const [name, lose] of Object.entries(losses))
  test(`${name}: reported before the next start, after it, and until it is accepted`, async () => {
    using dir = tempDir('lost-evidence')
    cpSync(original.path, dir.path, { recursive: true })
    cut(dir.path, 3)
    lose(dir.path)
    expect((await verifyTrail(dir.path)).ok).toBe(false)
    for (let start = 0; start < 2; start++) {
      const store = await openDataFolder(dir.path, clock)
      await append(store, 10 + start)
      await checkpoint(store, dir.path)
      await store.close()
      expect((await verifyTrail(dir.path)).ok).toBe(false)
    }
    const { renewed } = await verifyTrail(dir.path)
    expect(renewed.length).toBeGreaterThan(0)
    expect(new Set(renewed.map(({ file }) => file)).size).toBe(renewed.length) // each once
    for (const file of ['audit-heads', 'audit-checkpoints', 'audit-signing.key'])
      expect(existsSync(dir.join(file))).toBe(true)

    const store = await openDataFolder(dir.path, clock)
    const files = openLosses(await store.audit.evidence())
    await acceptLosses(store, { dataDir: dir.path, files, actor: 'cli' }, clock.now())
    await store.close()
    const accepted = await verifyTrail(dir.path)
    expect(openLosses({ losses: accepted.renewed })).toEqual([])
    expect(accepted.renewed).toHaveLength(renewed.length)
    // Checkpoints that remained still show the cut.
    if (name === 'audit-heads removed' || name === 'audit-heads without a chain')
      expect(accepted.faults).toMatchObject([{ orgId, kind: 'rewritten' }])
    else expect(accepted).toMatchObject({ ok: true, faults: [], missing: [] })
  })

test('a database without any audit entry is not intact when it has organizations', async () => {
  using dir = tempDir('lost-evidence')
  cpSync(original.path, dir.path, { recursive: true })
  const db = new Database(dir.join('sightglass.db'))
  db.run('DROP TRIGGER audit_entry_no_delete')
  db.run('DELETE FROM audit_entry')
  db.run('DELETE FROM audit_head')
  db.close()
  removed('audit-heads', 'audit-checkpoints', 'audit-signing.key')(dir.path)
  expect(await verifyTrail(dir.path)).toMatchObject({ ok: false, faults: [{ kind: 'cut', position: 1 }] })
  await (await openDataFolder(dir.path, clock)).close()
  const { ok, renewed } = await verifyTrail(dir.path)
  expect([ok, renewed.map(({ file }) => file)]).toEqual([
    false,
    ['audit-heads', 'audit-checkpoints', 'audit-signing.key'],
  ])
})

test('retention trims no loss that nobody has accepted, and after a lost key its trims are signed again', async () => {
  using dir = tempDir('lost-evidence')
  cpSync(original.path, dir.path, { recursive: true })
  const trim = async (store: Store, now: number) =>
    trimAll(
      {
        store,
        key: openSigningKey(dir.path),
        folder: dir.path,
        log,
        rule: { days: null, bytes: null, auditDays: 30 },
      },
      now,
      new AbortController().signal,
    )
  let store = await openDataFolder(dir.path, clock)
  await append(store, 20, clock.now() + 40 * dayMs)
  await trim(store, clock.now() + 41 * dayMs)
  await store.close()
  expect((await verifyTrail(dir.path)).chains.find((chain) => chain.orgId === orgId)?.trim?.count).toBe(5)

  rmSync(dir.join('audit-signing.key'))
  const later = { now: () => clock.now() + 41 * dayMs }
  store = await openDataFolder(dir.path, later)
  await store.audit.append(
    auditEntry(
      { orgId: 'org_system', actor: 'cli' },
      { action: 'thing.changed', target: 'x' },
      clock.now() + 90 * dayMs,
    ),
  )
  await trim(store, clock.now() + 91 * dayMs)
  const files = openLosses(await store.audit.evidence())
  expect(files).toEqual(['audit-signing.key'])
  await acceptLosses(store, { dataDir: dir.path, files, actor: 'cli' }, clock.now() + 91 * dayMs)
  await store.close()
  expect(await verifyTrail(dir.path)).toMatchObject({ ok: true, faults: [], checkpoints: { unsound: [] } })
  expect(readdirSync(dir.path).filter((name) => name.startsWith('set-aside-'))).toHaveLength(1)
})

test('the command line reports the loss, accepts it once and says so for ever', async () => {
  using dir = tempDir('lost-evidence')
  cpSync(original.path, dir.path, { recursive: true })
  cut(dir.path, 3)
  for (const name of ['audit-heads', 'audit-checkpoints']) rmSync(dir.join(name))
  const dataDir = dir.path
  expect((await cli(['org', 'create', '--name', 'B'], { dataDir })).code).toBe(0)
  const verify = await cli(['verify', 'audit'], { dataDir })
  expect([verify.code, verify.stdout]).toEqual([1, expect.stringContaining('NOT everything is intact')])
  expect(verify.stdout).toContain('sightglass accept-loss')
  const doctor = await cli(['doctor'], { dataDir })
  expect([doctor.code, doctor.stdout]).toEqual([
    1,
    expect.stringContaining('Evidence of the audit trail was missing: audit-heads, audit-checkpoints.'),
  ])
  const questionExit = await cli(['accept-loss'], { dataDir })
  expect([questionExit.code, questionExit.stderr]).toEqual([
    1,
    expect.stringContaining('audit-heads, audit-checkpoints'),
  ])
  expect((await cli(['accept-loss', '--yes'], { dataDir })).code).toBe(0)
  expect((await cli(['accept-loss'], { dataDir })).stdout).toContain('Nothing is missing')
  const accepted = await cli(['verify', 'audit'], { dataDir })
  expect([accepted.code, accepted.stdout]).toEqual([0, expect.stringContaining('Everything is intact.')])
  expect(accepted.stdout).toContain('Note: audit-heads was missing on')
})
