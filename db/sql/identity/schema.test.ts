/** The drizzle tables and the migrations have the same tables, columns and types. */
import { expect, test } from 'bun:test'
import { openDatabase, type SqliteDatabase } from '../../sqlite/file/connection.ts'
import { getTableColumns, getTableName, is } from 'drizzle-orm'
import { getTableConfig, SQLiteTable } from 'drizzle-orm/sqlite-core'
import { migrate, migrations } from '../../sqlite/migrations/migrations.ts'
import { schemaVersion } from '../../sqlite/file/schema-version.ts'
import * as schema from './schema.ts'
import * as webhooks from '../webhooks/schema.ts'

interface Column {
  name: string
  type: string
  notnull: number
  pk: number
}

function migrated(): SqliteDatabase {
  const db = openDatabase(':memory:', { strict: true })
  migrate(db, migrations, 1)
  return db
}

const tables = Object.values({ ...schema, ...webhooks }).filter((table) => is(table, SQLiteTable))

for (const table of tables) {
  test(`${getTableName(table)} is the same in drizzle and in the migrations`, () => {
    const db = migrated()
    const inDatabase = db
      .query<Column, [string]>('SELECT * FROM pragma_table_info(?)')
      .all(getTableName(table))
    const compound = getTableConfig(table).primaryKeys.flatMap((key) =>
      key.columns.map((column) => column.name),
    )
    const inDrizzle = Object.values(getTableColumns(table)).map((column) => ({
      name: column.name,
      type: column.getSQLType().toUpperCase(),
      key: column.primary || compound.includes(column.name),
      required: column.notNull,
    }))
    const described = inDatabase.map(({ name, type, notnull, pk }) => {
      const rowNumber = pk > 0 && type === 'INTEGER' // never null, which SQLite does not report
      return { name, type, key: pk > 0, required: notnull === 1 || rowNumber }
    })
    expect(inDrizzle).toEqual(described)
    const unique = db
      .query<{ name: string }, [string]>(
        `SELECT info.name FROM pragma_index_list(?1) AS list, pragma_index_info(list.name) AS info
         WHERE list.origin = 'u' ORDER BY 1`,
      )
      .all(getTableName(table))
    const uniqueInDrizzle = Object.values(getTableColumns(table)).filter((column) => column.isUnique)
    expect(uniqueInDrizzle.map((column) => column.name).toSorted()).toEqual(unique.map(({ name }) => name))
    db.close()
  })
}

test('the list of tables to compare is not empty', () => {
  expect(tables.length).toBeGreaterThanOrEqual(8)
})

test('every table is STRICT', () => {
  const db = migrated()
  const loose = db
    .query(
      "SELECT name FROM pragma_table_list WHERE schema = 'main' AND strict = 0 AND name NOT LIKE 'sqlite_%'",
    )
    .all()
  expect(loose).toEqual([])
  db.close()
})

test('migrating again does nothing', () => {
  const db = migrated()
  const rowsBefore = db.query('SELECT * FROM schema_migration').all()
  expect(migrate(db, migrations, 2)).toEqual([])
  expect(db.query('SELECT * FROM schema_migration').all()).toEqual(rowsBefore)
  expect(schemaVersion(db)).toBe(migrations.length)
  db.close()
})

/** The schema and all rows. Bytes would also differ by what a rollback leaves in free pages. */
function contentOf(db: SqliteDatabase): unknown {
  const entries = db.query<{ type: string; name: string }, []>('SELECT * FROM sqlite_schema').all()
  const names = entries.filter(({ type }) => type === 'table').map(({ name }) => name)
  const rows = names.map((name) => db.query<Record<string, unknown>, []>(`SELECT * FROM "${name}"`).all())
  return { entries, rows, version: schemaVersion(db) }
}

test('a migration that fails leaves no change, not even those of earlier ones', () => {
  const db = migrated()
  const next = migrations.length + 1
  const bad = [
    ...migrations,
    { version: next, name: 'good', sql: 'CREATE TABLE half (x)' },
    { version: next + 1, name: 'bad', sql: 'CREATE TABLE other (x); SELECT broken' },
  ]
  const contentBefore = contentOf(db)
  expect(() => migrate(db, bad, 2)).toThrow('broken')
  expect(contentOf(db)).toEqual(contentBefore)
  expect(migrate(db, bad.slice(0, -1), 2)).toEqual([next])
  db.close()
})
