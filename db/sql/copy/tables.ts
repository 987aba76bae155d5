/** The tables of two databases that are copied row by row, from their schemas, so that a future table is included. */
import { StoreError } from '../../contract/errors.ts'
import { columnsOf } from '../database.ts'
import { stateTable } from './state.ts'
import type { CopySource, CopyTarget } from './sides.ts'

export interface CopiedTable {
  name: string
  columns: string[] // those of the key first
  keyColumns: number // how many
}

/** Which processes use a database. Checkpoints are rows or lines of a file. */
const notRows = ['schema_migration', stateTable, 'node', 'job_lease', 'audit_checkpoint']
/** `blocks.ts` copies them. */
const ofBlocks = ['event_seed', 'event_org', 'event_block', 'event_body']

/** Tables without a primary key on every engine. Rows of the audit trail keep their order among organizations. */
const keys: { [table: string]: string[] } = {
  audit_entry: ['rowid'],
  registry_tool_version: ['org_id', 'site_id', 'name', 'version'],
  memory_version: ['org_id', 'site_id', 'version'],
}

/** Only one engine has them; `prepare` derives them. */
const derivedColumns = ['event_org.last_received_ms', 'event_org.term_drops', 'event_org.deleted_seq']

/** Triggers allow the deletion of trimmed entries only after their trim is there. */
const first = ['audit_trim']

export function copiedTables(source: CopySource, target: CopyTarget): CopiedTable[] {
  const from = schemaOf(source)
  const to = schemaOf(target)
  const names = [...from.keys()].filter((name) => !notRows.includes(name))
  requireSame(names, from, to)
  return names
    .filter((name) => !ofBlocks.includes(name))
    .toSorted((a, b) => Number(first.includes(b)) - Number(first.includes(a)) || (a < b ? -1 : 1))
    .map((name) => {
      const { columns, key } = from.get(name)!
      const keyOf = keys[name] ?? key
      if (keyOf.length === 0) throw new StoreError('internal', `the table ${name} has no key to copy it by`)
      const otherColumns = columns.filter((column) => !keyOf.includes(column))
      return { name, columns: [...keyOf, ...otherColumns], keyColumns: keyOf.length }
    })
}

interface Schema {
  columns: string[]
  key: string[]
}

function schemaOf({ db, keyColumns, isOwn }: CopySource | CopyTarget): Map<string, Schema> {
  const tables = new Map<string, Schema>()
  for (const { table, column } of columnsOf(db)) {
    if (isOwn(table) || column === 'rowid' || derivedColumns.includes(`${table}.${column}`)) continue
    const tableSchema = tables.get(table) ?? { columns: [], key: [] }
    tables.set(table, { ...tableSchema, columns: [...tableSchema.columns, column] })
  }
  for (const { table, column } of db.query<{ table: string; column: string }>(keyColumns).all())
    tables.get(table)?.key.push(column)
  return tables
}

/** A table or column that only one side has would be lost silently. */
function requireSame(names: string[], from: Map<string, Schema>, to: Map<string, Schema>): void {
  const list = (tables: Map<string, Schema>) =>
    [...tables]
      .filter(([name]) => !notRows.includes(name))
      .flatMap(([name, { columns }]) => columns.map((column) => `${name}.${column}`))
  const source = list(from)
  const target = list(to)
  const odd = [
    ...source.filter((columnName) => !target.includes(columnName)),
    ...target.filter((columnName) => !source.includes(columnName)),
  ]
  if (odd.length > 0 || names.length === 0)
    throw new StoreError('internal', `only one of the databases has ${odd.join(', ') || 'tables'}`)
}
