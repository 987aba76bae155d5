/**
 * PostgreSQL databases of earlier schemas, stored in `fixtures/` as the SQL that makes them, with the facts that every
 * upgrade must preserve. Save one before the schema changes: `bun tests/store/postgres-fixture.ts`.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { postgresFolder } from '../../scripts/postgres.ts'
import { openStore } from '../../db/open.ts'
import { database } from '../support/postgres.ts'
import { type Content, contentOf, fill, fixturesFolder } from './fixture.ts'
import { noon } from './make.ts'

export interface ServerFixture {
  name: string
  schema: number
  content: Content
  /** Statements for an empty database of the same or a newer version of the server. */
  sql(): string
}

export function serverFixtures(): ServerFixture[] {
  const names = readdirSync(fixturesFolder).filter((name) => /^postgres-.*\.facts$/.test(name))
  return names.sort().map((name) => {
    const { schema, content } = JSON.parse(readFileSync(join(fixturesFolder, name), 'utf8')) as {
      schema: number
      content: Content
    }
    const packed = join(fixturesFolder, name.replace('.facts', '.sql.zst'))
    const sql = () => Bun.zstdDecompressSync(readFileSync(packed)).toString()
    return { name: name.replace('.facts', ''), schema, content, sql }
  })
}

/** More than a sealed segment takes too long to load. Each batch of 100 is a group of its own. */
const batches = 15

async function save(): Promise<number> {
  const { url } = await database()
  const store = await openStore({ folder: '', now: noon, shared: { url, node: 'fixture' } })
  for (const orgId of ['org_first', 'org_second']) await fill(store, orgId, batches)
  await Bun.sleep(2_000) // upkeep folds counts and merges blocks
  const content = await contentOf(store)
  const { schema } = await store.health()
  await store.close()
  const options = [
    '--inserts',
    '--rows-per-insert=200',
    '--schema=sightglass',
    '--no-owner',
    '--no-privileges',
  ]
  const dump = Bun.spawnSync([join(postgresFolder()!, 'pg_dump'), ...options, url])
  if (!dump.success) throw new Error(dump.stderr.toString())
  // Lines for psql, not for a server.
  const sql = dump.stdout.toString().replace(/^\\.*\n/gm, '')
  const stem = join(fixturesFolder, `postgres-${String(schema).padStart(4, '0')}`)
  writeFileSync(`${stem}.sql.zst`, Bun.zstdCompressSync(sql, { level: 19 }))
  writeFileSync(`${stem}.facts`, `${JSON.stringify({ schema, content }, null, 1)}\n`)
  return schema
}

if (import.meta.main) {
  process.stdout.write(`saved a PostgreSQL database of schema ${await save()}\n`)
  process.exit(0)
}
