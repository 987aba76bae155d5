/** The table `copy_state`, which exists while a database must not be served: a half-made copy, or a copied source. */
import { StoreError } from '../../contract/errors.ts'
import { columnsOf, type Database } from '../database.ts'
import type { CopyState } from '../../contract/copy.ts'

export const stateTable = 'copy_state'

/** What the copy itself needs to know as well. */
export interface StoredState extends CopyState {
  /** Of a target: which database it is a copy of. */
  sourceId?: string
  /** Of a target: references that are added again at the end. */
  references?: { table: string; name: string; definition: string }[]
}

/** Null for a database that may be served. */
export function readState(db: Database): StoredState | null {
  if (!columnsOf(db).some(({ table }) => table === stateTable)) return null
  const row = db.query<{ value: string }>(`SELECT value FROM ${stateTable}`).get()
  return row === null ? null : (JSON.parse(row.value) as StoredState)
}

/** Inside a transaction. */
export function writeState(db: Database, state: StoredState): void {
  db.run(`CREATE TABLE IF NOT EXISTS ${stateTable} (value TEXT NOT NULL)`)
  db.run(`DELETE FROM ${stateTable}`)
  db.query(`INSERT INTO ${stateTable} (value) VALUES (?)`).run(JSON.stringify(state))
}

export function dropState(db: Database): void {
  db.run(`DROP TABLE IF EXISTS ${stateTable}`)
}

/** Throws `conflict` for a database that must not be served. The source of a copy may still be read. */
export function requireServable(db: Database, access: 'read' | 'write'): void {
  const state = readState(db)
  if (state === null || (access === 'read' && state.role === 'source')) return
  throw new StoreError('conflict', stateText(state))
}

export function stateText({ role, other: otherName, sinceMs }: CopyState): string {
  const sinceTime = new Date(sinceMs).toISOString().slice(0, 19)
  return role === 'target'
    ? `this is an unfinished copy of ${otherName}, begun ${sinceTime}Z: ` +
        'run the same "sightglass copy" again to complete it, or delete it'
    : `this data was copied to ${otherName} at ${sinceTime}Z: start the server there; ` +
        '"sightglass copy reopen" continues here instead'
}
