/** The floors: the least work that any such server must do, measured in the same run as the product. */
import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs'
import { openWriterConnection } from '../../db/sqlite/file/connection.ts'
import { deflateFrame } from '../../db/sql/events/blocks/texts.ts'

/** A server in a process of its own that parses the JSON of every post, responds, and does nothing else. */
export async function startParseOnly(): Promise<{ url: string; stop(): Promise<void> }> {
  const child = Bun.spawn([process.execPath, import.meta.path], { stdout: 'pipe', stderr: 'inherit' })
  const { value } = await child.stdout.getReader().read()
  return {
    url: new TextDecoder().decode(value).trim(),
    async stop() {
      child.kill()
      await child.exited
    },
  }
}

/** Appends `text` to `path` and syncs, `rounds` times. Returns rounds per second, the limit of the disk. */
export function bareAppend(path: string, text: string, rounds: number): number {
  const bytes = Buffer.from(text)
  const file = openSync(path, 'a')
  const startedMs = performance.now()
  for (let i = 0; i < rounds; i++) {
    writeSync(file, bytes)
    fsyncSync(file)
  }
  const seconds = (performance.now() - startedMs) / 1_000
  closeSync(file)
  return rounds / seconds
}

const textsPerRow = 256

/** A minimal database with our settings: compressed texts in one table, without ids, filters or counts. */
export function bareSqlite(path: string) {
  const db = openWriterConnection(path, () => {})
  db.run('CREATE TABLE body (place INTEGER PRIMARY KEY, texts BLOB NOT NULL)')
  const insert = db.query('INSERT INTO body (texts) VALUES (?)')
  return {
    /** Durable when it returns. */
    append(texts: string[]): void {
      db.run('BEGIN IMMEDIATE')
      for (let from = 0; from < texts.length; from += textsPerRow)
        insert.run(deflateFrame(texts.slice(from, from + textsPerRow).join('\0')))
      db.run('COMMIT')
    },
    close: () => db.close(),
  }
}

if (import.meta.main) {
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    development: false,
    async fetch(request) {
      const { events } = (await request.json()) as { events: unknown[] }
      return new Response(`{"ok":true,"accepted":${events.length},"deduped":0}`, { status: 202 })
    },
  })
  process.stdout.write(`${server.url.href}\n`)
}
