/** A PostgreSQL database as the source or the target of a copy. */
import { columnsOf, inTransaction, type Database } from '../sql/database.ts'
import { newestBlocks, readColumns } from '../sql/events/blocks/block-table.ts'
import { extra } from '../sql/events/blocks/block.ts'
import { readSeed } from '../sql/events/dedupe/fingerprints.ts'
import { dropState, readState, stateTable, writeState, type StoredState } from '../sql/copy/state.ts'
import { requireUnused } from './admin/verbs.ts'
import { openConnection } from './connection/connection.ts'
import { storeError } from './connection/failure.ts'
import { hashOfStored, idHashes, ofOrg } from './events/id-hash.ts'
import { noteDeletedEnd } from './events/ids.ts'
import { awaitWriters, migrate, migrations, requireKnownSchema, schema } from './migrations/migrations.ts'
import type { ConnectionOptions } from './connection/options.ts'
import type { SignedHead } from '../contract/audit.ts'
import type { CopyIds, CopySource, CopyTarget, IdAt, Numbers, Org } from '../sql/copy/sides.ts'

const engine = {
  keyColumns: `SELECT c.relname::text AS "table", a.attname::text AS "column"
    FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
    JOIN unnest(i.indkey::smallint[]) WITH ORDINALITY AS key (number, place) ON true
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = key.number
    WHERE i.indisprimary AND c.relnamespace = current_schema()::regnamespace ORDER BY c.relname, key.place`,
  isOwn: (table: string) => /^(event_id(_\d\d)?|event_upkeep|store_lock)$/.test(table),
  failureOf: (error: unknown) => storeError(error, 'copy'),
}

/** A statement may count or index millions of rows. Between two statements of a transaction the other side works. */
function connect(url: string): Database {
  const options: ConnectionOptions = { url, node: 'copy', schema, statementTimeoutMs: 10 * 60_000 }
  return openConnection({ ...options, idleInTransactionMs: 60_000 })
}

export function openServerSource(url: string, now: number): CopySource {
  const db = connect(url)
  let isFrozen = false
  try {
    requireKnownSchema(db, schema, migrations)
  } catch (error) {
    db.close()
    throw error
  }
  return {
    ...engine,
    db,
    freeze(mark) {
      if (isFrozen) return
      requireUnused(db, { now, schema })
      freeze(db, mark)
      isFrozen = true
    },
    thaw() {
      if (isFrozen) inTransaction(db, () => thaw(db))
      isFrozen = false
    },
    seal() {
      isFrozen = false // the mark and the fence stay
    },
    numbers: () => numbersOf(db),
    checkpoints: () => readCheckpoints(db),
    close() {
      try {
        if (isFrozen) inTransaction(db, () => thaw(db))
      } finally {
        db.close()
      }
    },
  }
}

/**
 * Also stops a node that was suspended and continues: every write fails from the commit of this transaction on, which
 * waits for the writes that have begun.
 */
function freeze(db: Database, mark: StoredState): void {
  inTransaction(db, () => {
    thaw(db)
    writeState(db, mark)
    db.run(`CREATE FUNCTION copy_fence() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      RAISE EXCEPTION 'the database was copied to another one' USING ERRCODE = '25006'; END $$`)
    db.run(
      eachTable(`CREATE TRIGGER copy_fence BEFORE INSERT OR UPDATE OR DELETE ON %I
        FOR EACH STATEMENT EXECUTE FUNCTION copy_fence()`),
    )
  })
}

function thaw(db: Database): void {
  awaitWriters(db)
  db.run(eachTable('DROP TRIGGER copy_fence ON %I', fenced))
  db.run('DROP FUNCTION IF EXISTS copy_fence()')
  dropState(db)
}

/** To drop a trigger that is not there would lock its table against readers too. */
const fenced = `AND oid IN (SELECT tgrelid FROM pg_trigger WHERE tgname = 'copy_fence')`

function eachTable(statement: string, condition = ''): string {
  return `DO $do$ DECLARE one text; BEGIN
    FOR one IN SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace
      AND relkind IN ('r', 'p') AND NOT relispartition AND relname <> '${stateTable}' ${condition} ORDER BY relname
    LOOP EXECUTE format($q$${statement}$q$, one); END LOOP; END $do$`
}

/** Makes a copied database servable again. */
export function reopenServer(url: string): boolean {
  const db = connect(url)
  try {
    const reopened = readState(db)?.role === 'source'
    if (reopened) inTransaction(db, () => thaw(db))
    return reopened
  } finally {
    db.close()
  }
}

export function openServerTarget(url: string, now: number): CopyTarget {
  const db = connect(url)
  let ids: CopyIds | null = null
  let references: StoredState['references'] = []
  try {
    migrate(db, schema, migrations, now)
    requireUnused(db, { now, schema })
  } catch (error) {
    db.close()
    throw error
  }
  return {
    ...engine,
    db,
    refusesNul: true,
    begin(mark, seed) {
      inTransaction(db, () => {
        db.query('DELETE FROM event_seed').run()
        db.query('INSERT INTO event_seed (seed) VALUES (?)').run(seed)
        references = dropReferences(db)
        if (references.length === 0) references = mark.references ?? []
        writeState(db, { ...mark, references })
      })
    },
    get ids() {
      return (ids ??= idsInto(db))
    },
    prepare(numbers, orgs, checkpoints) {
      inTransaction(db, () => {
        setNumbers(db, numbers)
        addCheckpoints(db, checkpoints)
        orgs.forEach((org) => settleOrg(db, org))
      })
      return addReferences(db, references ?? [])
    },
    numbers: () => numbersOf(db),
    checkpoints: () => readCheckpoints(db),
    complete() {
      inTransaction(db, () => dropState(db))
      // Plans of the first queries would assume empty tables.
      db.run(eachTable('ANALYZE %I'))
    },
    close: () => db.close(),
  }
}

/** Rows arrive in any order, and only a superuser may disable the triggers of references. */
function dropReferences(db: Database): NonNullable<StoredState['references']> {
  const references = db
    .query<{ table: string; name: string; definition: string }>(
      `SELECT c.relname::text AS "table", k.conname::text AS name, pg_get_constraintdef(k.oid) AS definition
       FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
       WHERE k.contype = 'f' AND c.relnamespace = current_schema()::regnamespace ORDER BY c.relname, k.conname`,
    )
    .all()
  for (const { table, name } of references) db.run(`ALTER TABLE "${table}" DROP CONSTRAINT "${name}"`)
  return references
}

/** One transaction. Returns what refers to nothing. */
function addReferences(db: Database, references: NonNullable<StoredState['references']>): string[] {
  try {
    inTransaction(db, () => {
      for (const { table, name, definition } of references)
        db.run(`ALTER TABLE "${table}" ADD CONSTRAINT "${name}" ${definition}`)
    })
    return []
  } catch (error) {
    const failure = storeError(error, 'copy')
    if (failure.kind !== 'not_found') throw failure
    return [failure.message]
  }
}

function settleOrg(db: Database, { num }: Org): void {
  db.query('INSERT INTO event_upkeep (org) VALUES (?) ON CONFLICT DO NOTHING').run(num)
  const [newest] = newestBlocks(db, num, 1)
  const columns = newest === undefined ? null : readColumns(db, newest.place)
  const receivedMs = columns?.value(extra.received, columns.rows - 1) ?? 0
  db.query('UPDATE event_org SET last_received_ms = ? WHERE num = ?').run(receivedMs, num)
  noteDeletedEnd(db, num)
}

function readCheckpoints(db: Database): SignedHead[] | null {
  if (!columnsOf(db).some(({ table }) => table === 'audit_checkpoint')) return null
  const sql = 'SELECT org_id AS orgId, count, hash, at, key, signature FROM audit_checkpoint ORDER BY seq'
  return db.query<SignedHead>(sql).all()
}

/** Keeps stored checkpoints, because triggers protect them from changes. */
function addCheckpoints(db: Database, checkpoints: readonly SignedHead[]): void {
  const stored = readCheckpoints(db)
  if (stored === null) return
  const add = db.query(
    'INSERT INTO audit_checkpoint (seq, org_id, count, hash, at, key, signature) VALUES (?, ?, ?, ?, ?, ?, ?)',
  )
  checkpoints.slice(stored.length).forEach(({ orgId, count, hash, at: signedAt, key, signature }, index) => {
    add.run(stored.length + index + 1, orgId, count, hash, signedAt, key, signature)
  })
}

/** Numbers of other tables follow from their rows. */
const numbered = ['rejected_sample', 'webhook_delivery']
const followed = [
  ['audit_entry', 'rowid'],
  ['event_org', 'num'],
] as const

function numbersOf(db: Database): Numbers {
  const lastNumbers: Numbers = {}
  for (const table of numbered) {
    const { name } = db
      .query<{ name: string }, [string]>(`SELECT pg_get_serial_sequence(CAST(? AS text), 'seq') AS name`)
      .get(table)!
    const row = db.query<{ n: number }>(
      `SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS n FROM ${name}`,
    )
    const { n } = row.get()!
    if (n > 0) lastNumbers[table] = n
  }
  return lastNumbers
}

function setNumbers(db: Database, numbers: Numbers): void {
  const set = (table: string, column: string, last: number) =>
    db
      .query(
        `SELECT setval(pg_get_serial_sequence(CAST(? AS text), CAST(? AS text)), ?, CAST(? AS bigint) = 1) AS n`,
      )
      .get(table, column, Math.max(1, last), last > 0 ? 1 : 0)
  for (const table of numbered) set(table, 'seq', numbers[table] ?? 0)
  for (const [table, column] of followed) {
    const row = db.query<{ n: number | null }>(`SELECT max(${column}) AS n FROM ${table}`).get()
    set(table, column, row?.n ?? 0)
  }
}

const idRows = 'unnest(CAST(?1 AS uuid[]), CAST(?2 AS bigint[])) AS t (h, seq)'
const removeIds = `DELETE FROM event_id AS known USING ${idRows} WHERE known.h = t.h AND known.seq = t.seq`
const addIds = `INSERT INTO event_id (h, seq) SELECT t.h, t.seq FROM ${idRows}
  ON CONFLICT (h) DO UPDATE SET seq = excluded.seq`

function listsOf(rows: [number, string][]): [string, string] {
  return [`{${rows.map(([, hash]) => hash).join()}}`, `{${rows.map(([seq]) => seq).join()}}`]
}

function idsInto(db: Database): CopyIds {
  const hash = idHashes(readSeed(db))
  const hashes = (org: number, ids: readonly IdAt[]) =>
    new Map(ids.map(([seq, id]) => [seq, hashOfStored(hash, org, id)!]))
  return {
    replace(org, removedIds, come) {
      const removedSeqs = hashes(org, removedIds)
      const after = hashes(org, come)
      const removed = [...removedSeqs].filter(([seq, idHash]) => after.get(seq) !== idHash)
      const added = [...after].filter(([seq, idHash]) => removedSeqs.get(seq) !== idHash)
      if (removed.length > 0) db.query(removeIds).run(...listsOf(removed))
      if (added.length > 0) db.query(addIds).run(...listsOf(added))
    },
    undone() {},
    count: (org) =>
      db.query<{ n: number }, [number]>(`SELECT count(*) AS n FROM event_id WHERE ${ofOrg('?1')}`).get(org)!
        .n,
  }
}
