/** The whole-database operations of a PostgreSQL database. Each runs on a thread that ends with its result. */
import { askReader } from './store.ts'
import { migrations, schema } from './migrations/migrations.ts'
import type { AuditCheckpoint, AuditVerdict } from '../contract/audit.ts'
import type { DatabaseAdmin } from '../contract/admin.ts'
import type { EventVerdict } from '../contract/event-counts.ts'
import type { ServerQuery, ServerVerbs } from './admin/verbs.ts'

/** Of one statement: a verification reads every block. */
const statementTimeoutMs = 10 * 60_000

/** `migrate` is missing because it opens a store, which `db/open.ts` does. */
export function openServerAdmin(url: string): Omit<DatabaseAdmin, 'migrate'> {
  const options = { url, node: 'admin', schema, statementTimeoutMs }
  const ask = <K extends keyof ServerVerbs>(verb: K, now = 0) =>
    askReader(null, verb, { ...options, now } satisfies ServerQuery) as Promise<ReturnType<ServerVerbs[K]>>
  const read = <T>(verb: string, query?: unknown) =>
    askReader(
      { ...options, user: 'admin', deadlineMs: Number.MAX_SAFE_INTEGER, givesWay: false },
      verb,
      query,
    ) as Promise<T>
  return {
    newestSchema: migrations.length,
    hasData: async () => (await ask('server.schema')).version > 0,
    schema: () => ask('server.schema'),
    async requireUnused() {
      await ask('server.requireUnused')
    },
    facts: () => ask('server.facts'),
    checkUp: (now) => ask('server.checkUp', now),
    checkpoints: () => read<AuditCheckpoint[]>('audit.checkpoints'),
    verifyAudit: (anchors = []) => read<AuditVerdict>('audit.verify', anchors),
    verifyEvents: () => read<EventVerdict>('events.verify'),
    missingEvidence: async () => [],
    lastWriteMs: async () => null,
    copyState: () => ask('server.copyState'),
    backups: {
      by: 'tools',
      backUp: 'back up with pg_dump or pgBackRest, and keep a copy of the key ring',
      restore: 'restore with pg_restore or pgBackRest',
    },
  }
}
