/** A data folder as the source or the target of a copy. */
import { existsSync, readFileSync } from 'node:fs'
import { writeWhole } from '../rules/durable-files.ts'
import { headsKeeper } from '../sql/audit/heads.ts'
import { inTransaction } from '../sql/database.ts'
import { readState, writeState, dropState } from '../sql/copy/state.ts'
import { dedupe } from '../sql/events/dedupe/dedupe.ts'
import { fingerprintOf, fingerprints, readSeed } from '../sql/events/dedupe/fingerprints.ts'
import { loadIds } from '../sql/events/writer.ts'
import {
  checkpointPages,
  closeWriterConnection,
  openReaderConnection,
  openWriterConnection,
  type SqliteDatabase,
} from './file/connection.ts'
import { storeError } from './file/failure.ts'
import { databasePath, makeFolder, requireDatabase } from './file/files.ts'
import { lockFolder, type FolderLock } from './file/lock.ts'
import { requireSoundLog } from './file/log-damage.ts'
import { missingEntries, missingFiles, refuseMissing } from './file/missing-data.ts'
import { migrate, migrations, requireKnownSchema } from './migrations/migrations.ts'
import type { SignedHead } from '../contract/audit.ts'
import type { CopyIds, CopySource, CopyTarget, Numbers } from '../sql/copy/sides.ts'

const engine = {
  keyColumns: `SELECT t.name AS "table", c.name AS "column" FROM sqlite_schema AS t, pragma_table_info(t.name) AS c
    WHERE t.type = 'table' AND c.pk > 0 ORDER BY t.name, c.pk`,
  isOwn: (table: string) => /^(event_id_(chunk|filter|group|run)|sqlite_\w+)$/.test(table),
  failureOf: (error: unknown) => storeError(error, 'copy'),
}

/** Reads beside a server. */
export function openFolderSource(folder: string): CopySource {
  requireDatabase(folder)
  requireSoundLog(databasePath(folder)) // first: a reader without a server begins new shared memory
  const db = openReaderConnection(databasePath(folder))
  let lock: FolderLock | null = null
  const thaw = () => {
    lock?.release()
    lock = null
  }
  try {
    requireKnownSchema(db, migrations, false)
  } catch (error) {
    db.close()
    throw error
  }
  return {
    ...engine,
    db,
    freeze() {
      if (lock !== null) return
      lock = lockFolder(folder, process.pid)
      try {
        const missing = missingFiles(folder, lock) ?? missingEntries(db, folder)
        if (missing !== null) refuseMissing(missing)
      } catch (error) {
        thaw()
        throw error
      }
    },
    thaw,
    seal(mark) {
      changeLocked(folder, lock!, (writer) => inTransaction(writer, () => writeState(writer, mark)))
    },
    numbers: () => numbersOf(db),
    checkpoints: () => readCheckpoints(folder),
    close() {
      db.close()
      thaw()
    },
  }
}

/** Makes a copied folder servable again. `locked` while a process uses it. */
export function reopenFolder(folder: string): boolean {
  requireDatabase(folder)
  const lock = lockFolder(folder, process.pid)
  try {
    let reopened = false
    changeLocked(folder, lock, (db) => {
      reopened = readState(db)?.role === 'source'
      if (reopened) inTransaction(db, () => dropState(db))
    })
    return reopened
  } finally {
    lock.release()
  }
}

function changeLocked(folder: string, lock: FolderLock, change: (db: SqliteDatabase) => void): void {
  const path = databasePath(folder)
  const db = openWriterConnection(path, (connection) => requireKnownSchema(connection, migrations))
  lock.markLog(true)
  try {
    change(db)
    db.query('PRAGMA wal_checkpoint(TRUNCATE)').get()
  } finally {
    closeWriterConnection(db, path, () => lock.markLog(false))
  }
}

export function openFolderTarget(folder: string, now: number): CopyTarget {
  makeFolder(folder)
  const lock = lockFolder(folder, process.pid)
  const path = databasePath(folder)
  let db: SqliteDatabase
  try {
    const missing = missingFiles(folder, lock)
    if (missing !== null) refuseMissing(missing)
    db = openWriterConnection(
      path,
      (connection) => requireKnownSchema(connection, migrations, false),
      checkpointPages,
    )
    lock.markLog(true)
    migrate(db, migrations, now)
    db.run('PRAGMA foreign_keys = OFF') // rows arrive in any order
  } catch (error) {
    lock.release()
    throw error
  }
  const heads = headsKeeper(db, folder)
  let ids: CopyIds | null = null
  return {
    ...engine,
    db,
    refusesNul: false,
    begin(mark, seed) {
      inTransaction(db, () => {
        db.query('DELETE FROM event_seed').run()
        db.query('INSERT INTO event_seed (seed) VALUES (?)').run(seed)
        writeState(db, mark)
      })
    },
    get ids() {
      return (ids ??= idsInto(db))
    },
    prepare(numbers, _orgs, checkpoints) {
      inTransaction(db, () => setNumbers(db, numbers))
      const lines = checkpoints.map(({ orgId, count, hash, at: signedAt, key, signature }) =>
        JSON.stringify({ orgId, count, hash, at: signedAt, key, signature }),
      )
      writeWhole(checkpointsPath(folder), lines.map((line) => `${line}\n`).join(''))
      heads.follow()
      const strays = db.query<{ table: string; parent: string }>('PRAGMA foreign_key_check').all()
      return strays
        .slice(0, 10)
        .map(({ table, parent }) => `a row of ${table} names a row of ${parent} that is missing`)
    },
    numbers: () => numbersOf(db),
    checkpoints: () => readCheckpoints(folder),
    complete: () => inTransaction(db, () => dropState(db)),
    close() {
      try {
        db.query('PRAGMA wal_checkpoint(TRUNCATE)').get()
        closeWriterConnection(db, path, () => lock.markLog(false))
      } finally {
        lock.release()
      }
    },
  }
}

const checkpointsPath = (folder: string) => `${folder}/audit-checkpoints`

/** The last line may be cut by a crash, and was not acknowledged. */
function readCheckpoints(folder: string): SignedHead[] {
  const path = checkpointsPath(folder)
  const lines = existsSync(path) ? readFileSync(path, 'utf8').split('\n') : []
  return lines.flatMap((line) => {
    try {
      return line === '' ? [] : [JSON.parse(line) as SignedHead]
    } catch {
      return []
    }
  })
}

/** Rows that AUTOINCREMENT numbers; the other numbers follow from the rows. */
function numbersOf(db: SqliteDatabase): Numbers {
  const rows = db.query<{ name: string; seq: number }>('SELECT name, seq FROM sqlite_sequence').all()
  return Object.fromEntries(rows.filter(({ seq }) => seq > 0).map(({ name, seq }) => [name, seq]))
}

function setNumbers(db: SqliteDatabase, numbers: Numbers): void {
  db.run('DELETE FROM sqlite_sequence')
  const set = db.query('INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)')
  for (const [name, seq] of Object.entries(numbers)) set.run(name, seq)
}

/** Half of the arrivals that a run may span: what was deleted leaves gaps, and a run is written at each long one. */
const gapMax = 2 ** 20

/** Writes id runs as a server does, from the ids of the blocks. */
function idsInto(db: SqliteDatabase): CopyIds {
  const print = fingerprints(readSeed(db).ids)
  const idIndex = dedupe(db)
  const lastSeqs = new Map<number, number>()
  const load = () => {
    lastSeqs.clear()
    loadIds(db, idIndex, print)
  }
  load()
  return {
    replace(org, removedIds, come) {
      // An erased id has the fingerprint of the id.
      const removedSeqs = new Set(removedIds.map(([seq]) => seq))
      for (const [seq, id] of come) {
        const fingerprint = removedSeqs.has(seq) ? null : fingerprintOf(id, (text) => print(org, text))
        if (fingerprint === null) continue
        if (Math.abs(seq - (lastSeqs.get(org) ?? seq)) > gapMax) idIndex.settle()
        lastSeqs.set(org, seq)
        idIndex.add(org, seq, fingerprint)
      }
      idIndex.step(come.length)
    },
    undone: load,
    count: () => null,
  }
}
