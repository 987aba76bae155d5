/**
 * Folders as modules: the files of each that other folders may import. The rest is its inside. A new entry is a
 * decision, so it is a line here. Folders that are not listed are libraries: every file of them is an entry.
 */
import type { Import } from './imports.ts'
import { type Finding, isTest } from './source.ts'

/** Entries of every folder: its routes for `server/app.ts`, its page for `web/routes.ts`. */
const everywhere = ['routes.ts', 'page.tsx']

/** What belongs to a folder inside another one counts for the inner folder when that one is listed. */
const modules: Record<string, string[]> = {
  'db/sql/access': ['access-logs.ts'],
  'db/sql/audit': ['append.ts', 'evidence.ts', 'heads.ts', 'list.ts', 'trim.ts', 'verify.ts'],
  'db/sqlite/backup': ['file-verbs.ts'],
  'db/sql/events': ['engine.ts', 'ids-in-runs.ts', 'reader.ts', 'writer.ts'],
  'db/sql/events/blocks': [
    'block-table.ts',
    'block.ts',
    'body-table.ts',
    'clause.ts',
    'fields.ts',
    'networks.ts',
    'number-columns.ts',
    'read-ahead.ts',
    'repack.ts',
    'texts.ts',
  ],
  'db/sql/events/dedupe': ['dedupe.ts', 'deleted-ids.ts', 'fingerprints.ts', 'id-group.ts', 'id-run.ts'],
  'db/sql/events/delete': ['delete.ts', 'expire.ts'],
  'db/sql/events/index': ['filter-codes.ts', 'posting.ts', 'seal.ts', 'walk.ts'],
  'db/sql/events/paths': ['columns.ts', 'json-bytes.ts', 'session-sample.ts', 'shred.ts'],
  'db/sql/events/read': [
    'arrivals.ts',
    'breakdown.ts',
    'by-id.ts',
    'explore/explore.ts',
    'filtered-counts.ts',
    'histogram.ts',
    'metrics.ts',
    'new-values.ts',
    'page.ts',
    'provenance.ts',
    'robots-test.ts',
    'series/series.ts',
    'sessions/page.ts',
    'sessions/trust-reached.ts',
    'sketches.ts',

    'top.ts',
  ],
  'db/sql/events/rollups': [
    'checksums.ts',
    'counts.ts',
    'days.ts',
    'fold.ts',
    'hours.ts',
    'range.ts',
    'recount.ts',
    'sketches.ts',
    'stored-days.ts',
  ],
  'db/sql/events/verify': ['blocks.ts', 'indexes.ts', 'verify.ts'],
  'db/sql/events/write': ['append.ts', 'merge.ts', 'org-state.ts'],
  'db/sqlite/file': [
    'connection.ts',
    'failure.ts',
    'files.ts',
    'lock.ts',
    'log-damage.ts',
    'missing-data.ts',
    'reserve.ts',
    'schema-version.ts',
    'wal.ts',
  ],
  'db/sql/identity': ['schema.ts', 'share-links.ts', 'verbs.ts'],
  'db/sql/ingest-counts': ['ingest-counts.ts'],
  'db/sqlite/migrations': ['migrations.ts'],
  'db/sql/nodes': ['nodes.ts'],
  'db/sql/pushed': ['pushed.ts', 'robots.ts'],
  'db/sql/retention': ['retention.ts'],
  'db/sqlite/threads': ['threads.ts'],
  'db/sql/settings': ['settings.ts'],
  'db/sql/store': ['store.ts', 'threads.ts'],
  'db/sql/threads': ['append-queue.ts', 'port.ts', 'protocol.ts', 'read-queue.ts', 'read-slots.ts'],
  'db/sql/webhooks': ['deliveries.ts', 'verbs.ts'],
  'server/api/explore': ['query.ts'],
  'server/api/live': [],
  'server/api/metrics': ['answer.ts'],
  'server/api/registry': ['memory-routes.ts', 'model.ts', 'record.ts', 'tool-routes.ts'],
  'server/api/requests': [],
  'server/api/sessions': [],
  'server/api/traces': [
    'dashboard-routes.ts',
    'export.ts',
    'filter.ts',
    'histogram.ts',
    'live-position.ts',
    'record.ts',
  ],
  'server/audit': [
    'PROOF.md',
    'checkpoints.ts',
    'entry.ts',
    'evidence.ts',
    'export.ts',
    'signing.ts',
    'verify.ts',
  ],
  'server/cli': ['run.ts'],
  'server/counts': [
    'changes.ts',
    'claims.ts',
    'counts.ts',
    'details.ts',
    'detections.ts',
    'headlines.ts',
    'period-counts.ts',
    'period.ts',
    'shapes.ts',
    'unit-types.ts',
    'unit.ts',
  ],
  'server/dashboard': ['saved-view-routes.ts'],
  'server/demo': ['event.ts', 'post.ts', 'push.ts', 'traffic.ts'],
  'server/docs': ['openapi.ts'],
  'server/guide': ['page.ts'],
  'server/identity': ['permissions.ts'],
  'server/identity/keys': ['keys.ts'],
  'server/identity/organizations': ['organizations.ts', 'site-hosts.ts'],
  'server/identity/people': ['first-owner.ts', 'members.ts'],
  'server/identity/sign-in': [
    'email.ts',
    'password.ts',
    'provider-routes.ts',
    'second-factor.ts',
    'sign-in.ts',
    'sign-ins.ts',
    'throttle.ts',
  ],
  'server/ingest': [
    'accept.ts',
    'admission.ts',
    'check-event.ts',
    'counts.ts',
    'health-routes.ts',
    'model.ts',
    'rejected.ts',
  ],
  'server/operations/backup': [
    'backup-folder.ts',
    'backups.ts',
    'check.ts',
    'create.ts',
    'owner.ts',
    'restore.ts',
  ],
  'server/operations/doctor': ['check.ts', 'diagnose.ts', 'options.ts', 'server-checks.ts'],
  'server/operations/health': ['clock.ts', 'memory.ts', 'nodes.ts', 'readiness.ts', 'upkeep.ts'],
  'server/operations/metrics-endpoint': ['counters.ts'],
  'server/operations/retention': ['erasures.ts', 'expire-all.ts', 'recount.ts'],
  'server/operations/service': ['install.ts'],
  'server/operations/upgrade': ['release-file.ts', 'upgrade.ts'],
  'server/operations/setup': ['apply.ts', 'file.ts', 'form.ts'],
  'server/mcp': ['clients.ts', 'question-sessions.ts', 'server.ts', 'stdio.ts'],
  'server/otlp': ['events.ts'],
  'server/parquet': ['open-files.ts', 'parquet.ts', 'read.ts'],
  'server/robots': ['judge.ts', 'robots.ts', 'watched-files.ts'],
  'server/runtime': ['make-services.ts', 'open-data-folder.ts', 'serve.ts', 'store-access.ts', 'work.ts'],
  'server/sharing': ['links.ts'],
  'server/webhooks': ['start.ts', 'view.ts'],
  'server/webhooks/alerts': ['alerts.ts', 'backtest.ts', 'definition.ts', 'evaluate.ts', 'rules.ts'],
  'server/webhooks/delivery': [
    'deliveries.ts',
    'dispatcher.ts',
    'fan-out.ts',
    'retry-policy.ts',
    'waiting.ts',
    'wake.ts',
  ],
  'server/webhooks/endpoints': ['endpoint-fields.ts', 'endpoint-view.ts', 'endpoints.ts', 'replay-range.ts'],
  'server/webhooks/sinks': ['addresses.ts', 'destination.ts', 'http.ts', 'signing.ts', 'sink.ts'],
  'web/pages/analytics': [],
  'web/pages/auth': [],
  'web/pages/authz': [],
  'web/pages/detect': [],
  'web/pages/knaph': [],
  'web/pages/logs': ['entries.ts', 'filter-bar.tsx', 'filter.ts'],
  'web/pages/sessions': [],
  'web/pages/settings': ['account/second-factor.tsx', 'sections.tsx'],
  'web/pages/sign-in': ['one-time-links.tsx'],
  'web/pages/tools': [],
  'web/pages/webhooks': ['labels.ts'],
}

/** Imports of a folder's inside from another folder, and entries that no other folder uses. */
export function insideImports(edges: Import[], entriesOf = modules): Finding[] {
  const moduleOf = (path: string): string | undefined =>
    Object.keys(entriesOf)
      .filter((folder) => path.startsWith(`${folder}/`))
      .toSorted((a, b) => b.length - a.length)[0]
  const usedEntries = new Set<string>()
  const findings = edges.flatMap(({ from, to, line }) => {
    const folder = to === null || isTest(from) ? undefined : moduleOf(to)
    if (to === null || folder === undefined || from.startsWith(`${folder}/`)) return []
    const name = to.slice(folder.length + 1)
    usedEntries.add(`${folder}/${name}`)
    if ([...everywhere, ...entriesOf[folder]!].includes(name)) return []
    return [{ rule: 'module', path: from, line, message: `imports the inside of ${folder}: ${name}` }]
  })
  const unused = Object.entries(entriesOf)
    .flatMap(([folder, names]) => names.map((name) => `${folder}/${name}`))
    .filter((path) => !usedEntries.has(path))
    .map((path) => ({ rule: 'module', path, line: 1, message: 'is an entry that no other folder imports' }))
  return [...findings, ...unused]
}
