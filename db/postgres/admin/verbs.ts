/** The verbs that a reader thread runs on a database without an open store. */
import { readFacts, readUse } from '../../sql/facts.ts'
import { schemaState } from '../../sql/schema-state.ts'
import { nodeReadVerbs } from '../../sql/nodes/nodes.ts'
import { readState } from '../../sql/copy/state.ts'
import { openConnection } from '../connection/connection.ts'
import { serverOptions } from '../connection/options.ts'
import { findingsOf } from './findings.ts'
import type { ReadContext } from '../../sql/contexts.ts'
import { migrations, schemaVersion, writerSchemaOf } from '../migrations/migrations.ts'
import { StoreError } from '../../contract/errors.ts'
import type { CopyState } from '../../contract/copy.ts'
import type { Checkup, DatabaseFacts, SchemaState } from '../../contract/operations.ts'
import type { ConnectionOptions } from '../connection/options.ts'
import type { Database } from '../../sql/database.ts'

export interface ServerQuery extends ConnectionOptions {
  schema: string
  now: number
}

export const serverVerbs = {
  'server.checkUp': (query: ServerQuery) => connected(query, (db) => checkUp(db, query)),
  'server.copyState': (query: ServerQuery): CopyState | null => connected(query, readState),
  'server.facts': (query: ServerQuery) => connected(query, (db) => factsOf(db, query)),
  'server.requireUnused': (query: ServerQuery) => connected(query, (db) => requireUnused(db, query)),
  'server.schema': (query: ServerQuery) => connected(query, (db) => schemaOf(db, query)),
} satisfies { [verb: string]: (query: never) => unknown }

export type ServerVerbs = typeof serverVerbs

/** A pooler gives a connection the process of the one before. */
function isPooled(query: ServerQuery): boolean {
  const process = 'SELECT pg_backend_pid() AS pid, pg_postmaster_start_time()::text AS at'
  const [first, second] = [1, 2].map(() => connected(query, (db) => JSON.stringify(db.query(process).get())))
  return first === second
}

function connected<T>(query: ServerQuery, work: (db: Database) => T): T {
  const db = openConnection(query)
  try {
    return work(db)
  } finally {
    db.close()
  }
}

function schemaOf(db: Database, { schema }: ServerQuery): SchemaState {
  const state = schemaState(db, schemaVersion(db, schema), migrations)
  const isNewer = state.version > state.newest && writerSchemaOf(db, schema) > state.newest
  return { ...state, isNewer }
}

function factsOf(db: Database, { schema }: ServerQuery): DatabaseFacts {
  return readFacts(db, schemaVersion(db, schema))
}

function checkUp(db: Database, query: ServerQuery): Checkup {
  const facts = factsOf(db, query)
  const row = db
    .query<{ bytes: number; version: string }, []>(
      `SELECT pg_database_size(current_database()) AS bytes, current_setting('server_version') AS version`,
    )
    .get()
  return {
    facts,
    engine: `PostgreSQL ${row?.version.split(' ')[0] ?? ''}`,
    bytes: row?.bytes ?? 0,
    logBytes: null,
    problems: null, // the server checks its own pages
    findings: findingsOf(db, { ...query, prepare: serverOptions(query).prepare, isPooled: isPooled(query) }),
    // An older schema has no reports.
    nodes:
      facts.schema === migrations.length ? nodeReadVerbs['nodes.list']({ db } as ReadContext, query) : [],
    storeMs: db.dialect.storeMs(db, query.now),
    ...readUse(db, query.now),
  }
}

/** Nodes register every 5 s. */
const seenMs = 15_000

export function requireUnused(db: Database, { schema, now }: Pick<ServerQuery, 'schema' | 'now'>): null {
  if (schemaVersion(db, schema) === 0) return null
  const since = db.dialect.storeMs(db, now) - seenMs
  const row = db
    .query<{ name: string }, [number]>('SELECT name FROM node WHERE seen_at_ms > ? ORDER BY name LIMIT 1')
    .get(since)
  if (row !== null) throw new StoreError('locked', `the node ${row.name} uses the database`)
  return null
}
