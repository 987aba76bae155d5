/** Damages copies of a database by SQL or a flipped byte, and passes them to a check. */
import type { SqliteDatabase } from '../../db/sqlite/file/connection.ts'
import { closeSync, copyFileSync, openSync, readSync, rmSync, writeSync } from 'node:fs'
import { openReaderConnection, openWriterConnection, pageBytes } from '../../db/sqlite/file/connection.ts'
import type { TempDir } from '../support/temp-dir.ts'

export function readDamaged(
  db: SqliteDatabase,
  dir: TempDir,
  sql: string,
  look: (damaged: SqliteDatabase) => void,
): void {
  const copy = dir.join('damaged.db')
  db.query('VACUUM INTO ?').run(copy)
  const damaged = openWriterConnection(copy, () => {})
  if (damaged.query(sql).run().changes === 0) throw new Error(`nothing was damaged by ${sql}`)
  look(damaged)
  damaged.close()
  rmSync(copy)
}

export function readFlipped(
  db: SqliteDatabase,
  dir: TempDir,
  pages: PageOfTable[],
  look: (damaged: SqliteDatabase, page: PageOfTable) => void,
): void {
  const whole = dir.join('whole.db')
  db.query('VACUUM INTO ?').run(whole)
  for (const page of pages) {
    const copy = dir.join('damaged.db')
    copyFileSync(whole, copy)
    flipByte(copy, page)
    const damaged = openWriterConnection(copy, () => {})
    look(damaged, page)
    damaged.close()
    rmSync(copy)
  }
  rmSync(whole)
}

export interface PageOfTable {
  table: string
  kind: 'leaf' | 'overflow'
  at: 'first' | 'last' // of the pages in the order of the table's key
  /** Bytes after it on the page: a row that continues elsewhere ends with the page number. */
  behind: number
}

/**
 * Flips a byte at the end of a page, as a failing disk would: it belongs to the first row of the page. Skips zeros,
 * because more ones in a filter only let more pass.
 */
function flipByte(path: string, { table, kind, at: end, behind }: PageOfTable): void {
  const db = openReaderConnection(path)
  const pages = db
    .query<{ page: number }, [string, string]>(
      'SELECT pageno AS page FROM dbstat WHERE name = ? AND pagetype = ? ORDER BY path',
    )
    .all(table, kind)
  db.close()
  const page = end === 'first' ? pages[0] : pages.at(-1)
  if (page === undefined) throw new Error(`${table} has no ${kind} page`)
  const file = openSync(path, 'r+')
  const byte = new Uint8Array(1)
  let offset = page.page * pageBytes - behind
  while (byte[0] === 0) readSync(file, byte, 0, 1, --offset)
  byte[0]! ^= 0xff
  writeSync(file, byte, 0, 1, offset)
  closeSync(file)
}
