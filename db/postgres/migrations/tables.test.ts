/** Both engines have the same tables, columns, keys, indexes and conditions. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { database } from '../../../tests/support/postgres.ts'
import { openDatabase } from '../../sqlite/file/connection.ts'
import {
  migrate as migrateSqlite,
  migrations as sqliteMigrations,
} from '../../sqlite/migrations/migrations.ts'
import type { Database } from '../../sql/database.ts'
import { openConnection } from '../connection/connection.ts'
import { migrate, migrations } from './migrations.ts'

/** Dedupe differs by engine. */
const onlySqlite = ['event_id_chunk', 'event_id_filter', 'event_id_group', 'event_id_run', 'sqlite_sequence']
/** Locks are for many nodes. */
const onlyPostgres = ['event_id', 'event_upkeep', 'store_lock']
/**
 * SQLite has a row number without a column, and one writer, which knows the last arrival and all terms. Its last number
 * is that of the newest block, unless that was deleted.
 */
const onlyPostgresColumns = [
  'audit_entry.rowid',
  'event_org.last_received_ms',
  'event_org.term_drops',
  'event_org.deleted_seq',
]
const onlyPostgresIndexes = ['event_term_code']

interface Column {
  table: string
  name: string
  type: string
  isRequired: boolean
  initial: string | null
}

interface Index {
  table: string
  /** Empty for those of keys and UNIQUE columns, which engines name by themselves. */
  name: string
  columns: string
  isUnique: boolean
  condition: string
}

interface Tables {
  columns: Column[]
  indexes: Index[]
  references: string[]
  /** Of every CHECK its values, because the engines write conditions differently. */
  checks: string[]
}

const types: { [type: string]: string } = {
  INTEGER: 'bigint',
  TEXT: 'text COLLATE "C"',
  BLOB: 'bytea STORAGE EXTERNAL',
  REAL: 'double precision',
}

const isShared = ({ table }: { table: string }) => ![...onlySqlite, ...onlyPostgres].includes(table)

function valuesOf(table: string, condition: string): string {
  const values = [...condition.matchAll(/'[^']*'|\b\d+\b/g)].map(([value]) => value)
  return `${table}: ${values.toSorted().join(' ')}`
}

const plain = (condition: string | null): string =>
  (condition ?? '').replace(/[()]|::text/g, '').toLowerCase()

function sqliteTables(db: Database): Tables {
  const tables = db
    .query<{ table: string; sql: string }>(
      `SELECT name AS "table", sql FROM sqlite_schema WHERE type = 'table'`,
    )
    .all()
    .filter(isShared)
  return {
    columns: tables.flatMap(({ table }) => sqliteColumns(db, table)),
    indexes: tables.flatMap(({ table }) => sqliteIndexes(db, table)),
    references: tables.flatMap(({ table }) =>
      db
        .query<{ table: string; from: string; to: string; on_delete: string }, [string]>(
          'SELECT * FROM pragma_foreign_key_list(?)',
        )
        .all(table)
        .map(
          (reference) =>
            `${table}.${reference.from} ${reference.table}.${reference.to} ${reference.on_delete} DEFERRABLE`,
        ),
    ),
    checks: tables.flatMap(({ table, sql }) => checksOf(table, sql)),
  }
}

interface TableInfo {
  name: string
  type: string
  notnull: number
  pk: number
  dflt_value: string | null
}

function tableInfo(db: Database, table: string): TableInfo[] {
  return db.query<TableInfo, [string]>('SELECT * FROM pragma_table_info(?)').all(table)
}

function sqliteColumns(db: Database, table: string): Column[] {
  return tableInfo(db, table).map(({ name, type, notnull, pk, dflt_value: initial }) => {
    return { table, name, type: types[type] ?? type, isRequired: notnull === 1 || pk > 0, initial }
  })
}

function sqliteIndexes(db: Database, table: string): Index[] {
  const key = tableInfo(db, table).filter(({ pk }) => pk > 0)
  const columns = key.toSorted((a, b) => a.pk - b.pk).map(({ name }) => name)
  const primary = { table, name: '', columns: columns.join(), isUnique: true, condition: '' }
  const otherIndexes = db
    .query<{ name: string; unique: number; origin: string; sql: string | null }, [string]>(
      `SELECT list.name, list."unique", list.origin, s.sql FROM pragma_index_list(?) AS list
       JOIN sqlite_schema AS s ON s.name = list.name WHERE list.origin <> 'pk'`,
    )
    .all(table)
    .map(({ name, unique, origin, sql }) => ({
      table,
      name: origin === 'u' ? '' : name,
      isUnique: unique === 1,
      columns: db
        .query<{ name: string }, [string]>('SELECT name FROM pragma_index_info(?) ORDER BY seqno')
        .all(name)
        .map((column) => column.name)
        .join(),
      condition: plain(/ WHERE (.*)$/.exec((sql ?? '').replaceAll(/\s+/g, ' '))?.[1] ?? null),
    }))
  return key.length === 0 ? otherIndexes : [primary, ...otherIndexes]
}

/** Conditions contain parentheses. */
function checksOf(table: string, sql: string): string[] {
  const starts = sql.split(/\bCHECK \(/).slice(1)
  return starts.map((remainder) => {
    let depth = 1
    const end = [...remainder].findIndex((char) => (depth += char === '(' ? 1 : char === ')' ? -1 : 0) === 0)
    return valuesOf(table, remainder.slice(0, end))
  })
}

function postgresTables(db: Database): Tables {
  const isOwnTable = `n.nspname = current_schema() AND NOT c.relispartition`
  const columns = db
    .query<Omit<Column, 'isRequired'> & { isRequired: number }>(
      `SELECT c.relname AS "table", a.attname AS name, a.attnotnull AS isRequired,
         pg_get_expr(d.adbin, d.adrelid) AS initial,
         format_type(a.atttypid, NULL) || coalesce(' COLLATE "' || l.collname || '"', '')
           || CASE WHEN a.attstorage = 'e' THEN ' STORAGE EXTERNAL' ELSE '' END AS type
       FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
       LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
       LEFT JOIN pg_collation l ON l.oid = a.attcollation
       WHERE ${isOwnTable} AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped
       ORDER BY c.relname, a.attnum`,
    )
    .all()
    .filter(({ table, name }) => !onlyPostgresColumns.includes(`${table}.${name}`))
    .map((column) => ({ ...column, isRequired: column.isRequired === 1 }))
  return {
    columns: columns.filter(isShared),
    indexes: postgresIndexes(db, isOwnTable).filter(
      (index) => isShared(index) && !onlyPostgresIndexes.includes(index.name),
    ),
    references: db
      .query<{ text: string }>(
        `SELECT c.relname || '.' || a.attname || ' ' || f.relname || '.' || t.attname || ' '
           || CASE k.confdeltype WHEN 'c' THEN 'CASCADE' WHEN 'a' THEN 'NO ACTION' END
           || CASE WHEN k.condeferrable THEN ' DEFERRABLE' ELSE '' END AS text
         FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace
         JOIN pg_class f ON f.oid = k.confrelid
         JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.conkey[1]
         JOIN pg_attribute t ON t.attrelid = f.oid AND t.attnum = k.confkey[1]
         WHERE ${isOwnTable} AND k.contype = 'f'`,
      )
      .all()
      .map(({ text }) => text),
    checks: db
      .query<{ table: string; condition: string }>(
        `SELECT c.relname AS "table", pg_get_constraintdef(k.oid) AS condition
         FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace
         WHERE ${isOwnTable} AND k.contype = 'c'`,
      )
      .all()
      .filter(isShared)
      .map(({ table, condition }) => valuesOf(table, condition)),
  }
}

function postgresIndexes(db: Database, ownTables: string): Index[] {
  return db
    .query<Omit<Index, 'isUnique'> & { isUnique: number; isOwn: number }>(
      `SELECT c.relname AS "table", ic.relname AS name, i.indisunique AS isUnique,
         NOT EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conindid = i.indexrelid AND k.contype <> 'f') AS isOwn,
         pg_get_expr(i.indpred, i.indrelid) AS condition,
         (SELECT string_agg(a.attname, ',' ORDER BY key.place)
          FROM unnest(i.indkey::smallint[]) WITH ORDINALITY AS key (number, place)
          JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = key.number) AS columns
       FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid JOIN pg_class ic ON ic.oid = i.indexrelid
       JOIN pg_namespace n ON n.oid = c.relnamespace WHERE ${ownTables}`,
    )
    .all()
    .filter(({ table, columns }) => !onlyPostgresColumns.includes(`${table}.${columns}`))
    .map(({ isOwn, isUnique, name, condition, ...index }) => ({
      ...index,
      name: isOwn === 1 ? name : '',
      isUnique: isUnique === 1,
      condition: plain(condition),
    }))
}

let sqlite: Tables
let postgres: Tables

beforeAll(async () => {
  const file = openDatabase(':memory:', { strict: true })
  migrateSqlite(file, sqliteMigrations, 1)
  sqlite = sqliteTables(file)
  file.close()
  const { url } = await database()
  const db = openConnection({ url, node: 'test', statementTimeoutMs: 60_000 })
  migrate(db, 'sightglass', migrations, 1)
  postgres = postgresTables(db)
  db.close()
})

const sorted = (list: unknown[]): string[] => list.map((item) => JSON.stringify(item)).toSorted()
const columnText = ({ table, name, type, isRequired, initial }: Column): string =>
  `${table}.${name} ${type}${isRequired ? ' NOT NULL' : ''} ${initial?.replace(/::text$/, '') ?? null}`
const indexText = ({ table, name, columns, isUnique, condition }: Index): string =>
  `${table} ${name}(${columns})${isUnique ? ' UNIQUE' : ''} ${condition}`

test('the same columns of the same types', () => {
  expect(postgres.columns.map(columnText).toSorted()).toEqual(sqlite.columns.map(columnText).toSorted())
  expect(sqlite.columns.length).toBeGreaterThan(200)
})

test('the same keys and indexes', () => {
  expect(postgres.indexes.map(indexText).toSorted()).toEqual(sqlite.indexes.map(indexText).toSorted())
  expect(sqlite.indexes.length).toBeGreaterThan(50)
})

test('the same references, checked at the end of a transaction that asks for it', () => {
  expect(sorted(postgres.references)).toEqual(sorted(sqlite.references))
  expect(sqlite.references.length).toBeGreaterThan(15)
})

test('the same values are accepted', () => {
  expect(sorted(postgres.checks)).toEqual(sorted(sqlite.checks))
  expect(sqlite.checks.length).toBeGreaterThan(15)
})
