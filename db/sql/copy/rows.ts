/** Makes the rows of a target's table equal to those of the source, and compares them, in order of their key. */
import { StoreError } from '../../contract/errors.ts'
import { inTransaction, type Database, type SqlValue } from '../database.ts'
import type { Counted } from '../../contract/copy.ts'
import type { Sliced } from '../slices.ts'
import type { CopiedTable } from './tables.ts'
import type { CopySource, CopyTarget } from './sides.ts'

/** What a step reports. */
export interface Meter {
  rows: number
  bytes: number
}

interface Row {
  values: SqlValue[]
  text: string // for comparing
  bytes: number
}

interface Cursor {
  /** Null at the end. */
  row: Row | null
  advance(): void
}

/** Of one read: it is halved and doubled so that rows with large texts fit too. */
const batch = { rowsMin: 8, rowsMax: 4_096, bytesMax: 2 * 1024 * 1024 }

/** Reads without a snapshot: what changes meanwhile is found by the next pass. */
function openCursor(db: Database, { name, columns, keyColumns }: CopiedTable, admit: Admit): Cursor {
  const list = columns.map((column) => (column === 'rowid' ? column : `"${column}"`))
  const key = list.slice(0, keyColumns)
  const marks = key.map(() => '?').join(', ')
  const select = (condition: string, limit: number) =>
    `SELECT ${list.join(', ')} FROM ${name}${condition} ORDER BY ${key.join(', ')} LIMIT ${limit}`
  let limit = 128
  let rows: unknown[][] = []
  let next = 0
  let isLast = false

  function read(): void {
    const last = rows.at(-1)?.slice(0, keyColumns) as SqlValue[] | undefined
    const condition = last === undefined ? '' : ` WHERE (${key.join(', ')}) > (${marks})`
    rows = db.query<unknown, SqlValue[]>(select(condition, limit)).values(...(last ?? []))
    next = 0
    isLast = rows.length < limit
    const bytes = rows.reduce((sum, row) => sum + bytesOf(row as SqlValue[]), 0)
    if (bytes > batch.bytesMax && limit > batch.rowsMin) limit /= 2
    else if (bytes * 2 < batch.bytesMax && limit < batch.rowsMax) limit *= 2
  }

  function advance(): void {
    if (next === rows.length && !isLast) read()
    const values = rows[next++] as SqlValue[] | undefined
    if (values === undefined) cursor.row = null
    else {
      const admitted = admit(values)
      cursor.row = { values: admitted, text: textOf(admitted), bytes: bytesOf(admitted) }
    }
  }

  const cursor: Cursor = { row: null, advance }
  advance()
  return cursor
}

/** A number counts as 8 bytes. */
function bytesOf(values: readonly SqlValue[]): number {
  let bytes = 0
  for (const value of values) {
    if (typeof value === 'string') bytes += value.length
    else if (value instanceof Uint8Array) bytes += value.byteLength
    else bytes += 8
  }
  return bytes
}

function textOf(values: readonly SqlValue[]): string {
  let text = ''
  for (const value of values) {
    if (typeof value === 'number') text += `${value},`
    else if (typeof value === 'string') text += `${JSON.stringify(value)},`
    else if (value instanceof Uint8Array) text += `x${Bun.SHA256.hash(value, 'base64')},`
    else text += `${String(value)},`
  }
  return text
}

/** As both engines order keys: numbers, and texts by their UTF-8 bytes. */
function compareKeys(a: Row, b: Row, keyColumns: number): number {
  for (let index = 0; index < keyColumns; index++) {
    const one = a.values[index]
    const other = b.values[index]
    if (one === other) continue
    if (typeof one === 'number' && typeof other === 'number') return one - other
    return Buffer.compare(Buffer.from(String(one)), Buffer.from(String(other)))
  }
  return 0
}

/** Changes the values of a source's row so that the target can store them. */
type Admit = (values: SqlValue[]) => SqlValue[]

const asItIs: Admit = (values) => values

/** Columns of diagnostics. Releases before 0.2 stored NUL in them; the sign of NUL replaces it, as it does today. */
const diagnostics = ['excerpt', 'message', 'path', 'response_excerpt', 'error', 'last_error']

/** For a target that cannot store NUL in a text. */
function withoutNul({ name, columns, keyColumns }: CopiedTable): Admit {
  const isNul = (value: SqlValue | undefined) => typeof value === 'string' && value.includes('\0')
  return (values) => {
    if (!values.some(isNul)) return values
    return values.map((value, index) => {
      if (typeof value !== 'string' || !value.includes('\0')) return value
      if (diagnostics.includes(columns[index]!)) return value.replaceAll('\0', '\u2400')
      const key = JSON.stringify(values.slice(0, keyColumns))
      throw new StoreError(
        'conflict',
        `${columns[index]} of ${name} ${key} contains a NUL, which the target cannot store: change or delete it`,
      )
    })
  }
}

/** Writes per transaction. */
const flushed = { rows: 8_192, bytes: 4 * 1024 * 1024 }

interface TableCopy {
  source: CopySource
  target: CopyTarget
  table: CopiedTable
  meter: Meter
  /** Whether nothing else writes to the source, so that a conflict is a fault. */
  isFrozen: boolean
}

/** Yields after each batch. Beside a server that writes, the rest is found by the next pass. */
export function* copyTable(copy: TableCopy): Sliced<void> {
  const { target, isFrozen } = copy
  try {
    yield* mergeInto(copy, false)
  } catch (error) {
    // A row that is about to be deleted has the unique value of a new one.
    if (!isConflict(target, error)) throw error
    yield* mergeInto(copy, true)
    try {
      yield* mergeInto(copy, false)
    } catch (again) {
      if (isFrozen || !isConflict(target, again)) throw again
    }
  }
}

function isConflict(target: CopyTarget, error: unknown): boolean {
  const failure = target.failureOf(error)
  return failure instanceof StoreError && failure.kind === 'conflict' && !/NUL/.test(failure.message)
}

function* mergeInto({ source, target, table, meter }: TableCopy, onlyDelete: boolean): Sliced<void> {
  const admit = target.refusesNul ? withoutNul(table) : asItIs
  const from = openCursor(source.db, table, admit)
  const to = openCursor(target.db, table, asItIs)
  let writes: SqlValue[][] = []
  let deletes: SqlValue[][] = []
  let bytes = 0
  let rowCount = 0
  const keyOf = (row: Row) => row.values.slice(0, table.keyColumns)
  const flush = (): void => {
    if (writes.length + deletes.length > 0)
      inTransaction(target.db, () => writeRows(target.db, table, deletes, writes))
    writes = []
    deletes = []
    bytes = 0
  }
  while (from.row !== null || to.row !== null) {
    const order =
      from.row === null ? 1 : to.row === null ? -1 : compareKeys(from.row, to.row, table.keyColumns)
    if (order > 0) deletes.push(keyOf(to.row!))
    else {
      const row = from.row!
      const isChanged = order < 0 || row.text !== to.row!.text
      if (isChanged && !onlyDelete) writes.push(row.values)
      if (isChanged && onlyDelete && order === 0) deletes.push(keyOf(row))
      if (isChanged) bytes += row.bytes
      meter.rows++
      meter.bytes += row.bytes
    }
    if (order <= 0) from.advance()
    if (order >= 0) to.advance()
    if (writes.length + deletes.length >= flushed.rows || bytes >= flushed.bytes) flush()
    if (++rowCount % 512 === 0) yield
  }
  flush()
}

function writeRows(
  db: Database,
  { name, columns, keyColumns }: CopiedTable,
  deletes: SqlValue[][],
  writes: SqlValue[][],
): void {
  const names = columns.map((column) => (column === 'rowid' ? column : `"${column}"`))
  const key = names.slice(0, keyColumns)
  const set = names.slice(keyColumns).map((column) => `${column} = excluded.${column}`)
  const onConflict = set.length === 0 ? 'DO NOTHING' : `DO UPDATE SET ${set.join(', ')}`
  // The order of an audit trail's rows is no key on every engine, and entries are never replaced.
  const upsert = key.includes('rowid') ? '' : ` ON CONFLICT (${key.join(', ')}) ${onConflict}`
  const condition = key.map((column) => `${column} = ?`).join(' AND ')
  db.runEach(`DELETE FROM ${name} WHERE ${condition}`, deletes)
  const marks = names.map(() => '?').join(', ')
  db.runEach(`INSERT INTO ${name} (${names.join(', ')}) VALUES (${marks})${upsert}`, writes)
}

/** Counts and digests a table's rows. */
export function* digestTable(
  side: CopySource | CopyTarget,
  table: CopiedTable,
  refusesNul: boolean,
  meter: Meter,
): Sliced<Counted> {
  const cursor = openCursor(side.db, table, refusesNul ? withoutNul(table) : asItIs)
  const hash = new Bun.CryptoHasher('sha256')
  let rows = 0
  let texts: string[] = []
  for (; cursor.row !== null; cursor.advance()) {
    texts.push(cursor.row.text)
    meter.bytes += cursor.row.bytes
    rows++
    meter.rows++
    if (rows % 512 !== 0) continue
    hash.update(texts.join('\n'))
    texts = []
    yield
  }
  hash.update(texts.join('\n'))
  return { rows, digest: hash.digest('hex') }
}
