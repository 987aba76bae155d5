/** Every migration of the SQLite engine in order, and how a database is brought to this release's schema. */
import identity from './0001_identity.sql' with { type: 'text' }
import events from './0002_events.sql' with { type: 'text' }
import webhooks from './0003_webhooks.sql' with { type: 'text' }
import registry from './0004_registry.sql' with { type: 'text' }
import identityMore from './0005_identity_more.sql' with { type: 'text' }
import retention from './0006_retention.sql' with { type: 'text' }
import auditTrim from './0007_audit_trim.sql' with { type: 'text' }
import postingFilter from './0008_posting_filter.sql' with { type: 'text' }
import webhookReplay from './0009_webhook_replay.sql' with { type: 'text' }
import classVendor from './0010_class_vendor.sql' with { type: 'text' }
import bodyFrames from './0011_body_frames.sql' with { type: 'text' }
import hourRewrites from './0012_hour_rewrites.sql' with { type: 'text' }
import firstUse from './0013_first_use.sql' with { type: 'text' }
import nodes from './0014_nodes.sql' with { type: 'text' }
import nodeReport from './0015_node_report.sql' with { type: 'text' }
import sharedRecords from './0016_shared_records.sql' with { type: 'text' }
import upgrade from './0017_upgrade.sql' with { type: 'text' }
import accessLogs from './0018_access_logs.sql' with { type: 'text' }
import evidencePack from './0019_evidence_pack.sql' with { type: 'text' }
import robots from './0020_robots.sql' with { type: 'text' }
import ingestScope from './0021_ingest_scope.sql' with { type: 'text' }
import shareLinks from './0022_share_links.sql' with { type: 'text' }
import alertRules from './0023_alert_rules.sql' with { type: 'text' }
import eventPath from './0024_event_path.sql' with { type: 'text' }
import overviewVisit from './0025_overview_visit.sql' with { type: 'text' }
import idGroup from './0026_id_group.sql' with { type: 'text' }
import textColumns from './0027_text_columns.sql' with { type: 'text' }
import blockGroups from './0028_block_groups.sql' with { type: 'text' }
import rollupDay from './0029_rollup_day.sql' with { type: 'text' }
import daysAndSpans from './0030_days_and_spans.sql' with { type: 'text' }
import provenance from './0031_provenance.sql' with { type: 'text' }
import { fillClassVendor, fillFields } from './fills.ts'
import { olderSchema, pendingMigrations, type Migration } from '../../rules/migrations.ts'
import { StoreError } from '../../contract/errors.ts'
import { withVersions } from '../../rules/migrations.ts'
import { inTransaction } from '../../sql/database.ts'
import { applicationId, schemaVersion } from '../file/schema-version.ts'
import type { SqliteDatabase } from '../file/connection.ts'

export const migrations: readonly SqliteMigration[] = withVersions<Omit<SqliteMigration, 'version'>>([
  { name: '0001_identity', sql: identity },
  { name: '0002_events', sql: events },
  { name: '0003_webhooks', sql: webhooks },
  { name: '0004_registry', sql: registry },
  { name: '0005_identity_more', sql: identityMore },
  { name: '0006_retention', sql: retention },
  { name: '0007_audit_trim', sql: auditTrim },
  { name: '0008_posting_filter', sql: postingFilter },
  { name: '0009_webhook_replay', sql: webhookReplay },
  { name: '0010_class_vendor', sql: classVendor, fill: fillClassVendor },
  { name: '0011_body_frames', sql: bodyFrames },
  { name: '0012_hour_rewrites', sql: hourRewrites },
  { name: '0013_first_use', sql: firstUse, fill: fillFields },
  { name: '0014_nodes', sql: nodes },
  { name: '0015_node_report', sql: nodeReport },
  { name: '0016_shared_records', sql: sharedRecords },
  { name: '0017_upgrade', sql: upgrade },
  { name: '0018_access_logs', sql: accessLogs },
  { name: '0019_evidence_pack', sql: evidencePack },
  { name: '0020_robots', sql: robots },
  { name: '0021_ingest_scope', sql: ingestScope },
  { name: '0022_share_links', sql: shareLinks },
  { name: '0023_alert_rules', sql: alertRules },
  { name: '0024_event_path', sql: eventPath },
  { name: '0025_overview_visit', sql: overviewVisit },
  { name: '0026_id_group', sql: idGroup },
  { name: '0027_text_columns', sql: textColumns },
  { name: '0028_block_groups', sql: blockGroups },
  { name: '0029_rollup_day', sql: rollupDay },
  { name: '0030_days_and_spans', sql: daysAndSpans },
  { name: '0031_provenance', sql: provenance },
])

/** `fill` adds what SQL alone cannot, in the same transaction. */
interface SqliteMigration extends Migration {
  fill?(db: SqliteDatabase): void
}

const migrationTable = `CREATE TABLE IF NOT EXISTS schema_migration (
  version INTEGER PRIMARY KEY NOT NULL,
  name TEXT NOT NULL,
  applied_at_ms INTEGER NOT NULL
) STRICT`

/** Throws when the database is another program's, a newer release's, or older and must not be upgraded. Only reads. */
export function requireKnownSchema(
  db: SqliteDatabase,
  knownMigrations: readonly Migration[],
  mayBeOlder = true,
): void {
  const version = schemaVersion(db)
  const pending = pendingMigrations(version, knownMigrations)
  if (!mayBeOlder && version > 0 && pending.length > 0) throw olderSchema(version, knownMigrations.length)
}

/** Throws also when the database is older or empty, for a command that only reads. */
export function requireNewestSchema(db: SqliteDatabase, knownMigrations: readonly Migration[]): void {
  const version = schemaVersion(db)
  if (pendingMigrations(version, knownMigrations).length > 0)
    throw olderSchema(version, knownMigrations.length)
}

/** Applies pending migrations and returns their versions. Running it again does nothing. */
export function migrate(
  db: SqliteDatabase,
  knownMigrations: readonly SqliteMigration[],
  now: number,
): number[] {
  const pending = pendingMigrations(schemaVersion(db), knownMigrations)
  if (pending.length === 0) return []
  return inTransaction(db, () => {
    db.run(`PRAGMA application_id = ${applicationId}`)
    db.run(migrationTable)
    const note = db.prepare('INSERT INTO schema_migration (version, name, applied_at_ms) VALUES (?, ?, ?)')
    try {
      for (const { version, name, sql, fill } of pending) {
        db.run(sql)
        fill?.(db)
        note.run(version, name, now)
      }
    } finally {
      note.finalize()
    }
    return pending.map((migration) => migration.version)
  })
}
