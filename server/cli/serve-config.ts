/** Makes the configuration of the server from the options of serve, and rejects options that contradict each other. */
import { UsageError } from '../errors.ts'
import { keyRingOf, sharedDatabaseOf } from './options.ts'
import { reportsConfig } from './report-options.ts'
import { listenText } from '../http/address.ts'
import { backupDirOf } from '../operations/backup/backup-folder.ts'
import type { ServeConfig } from '../runtime/make-services.ts'
import type { Values } from './command.ts'
import type { serveOptions } from './options.ts'

type ServeValues = Values<typeof serveOptions>

export function serveConfig(
  values: ServeValues,
  warnings: string[] = [],
  commandReference: () => string = () => '',
): ServeConfig {
  requireDistinctListeners(values)
  return {
    listen: values.listen,
    ingestListen: values['ingest-listen'],
    metricsListen: values['metrics-listen'],
    dataDir: values['data-dir'],
    keyFile: values['key-file'],
    keyRing: keyRingOf(values),
    shared: requireRing(values),
    role: requireRole(values),
    upgradeWaitMs: values['upgrade-wait'] === null ? null : values['upgrade-wait'] * 1_000,
    drainMs: values['drain-wait'] * 1_000,
    publicUrl: values['public-url'],
    basePath: values['base-path'],
    allowedHosts: values['allowed-host'],
    metricsToken: values['metrics-token'],
    trustedProxies: values['trusted-proxy'],
    diskFloorBytes: values['disk-floor'],
    memoryLimitBytes: values['memory-limit'],
    rateLimits: { gateway: values['rate-limit-gateway'], ingest: values['rate-limit-ingest'] },
    tls: tlsFiles(values),
    retention: {
      days: values['retention-days'],
      bytes: values['retention-bytes'],
      auditDays: values['retention-audit-days'],
      networkDays: values['impostor-network-days'],
    },
    backup: {
      dir: backupDirOf(values['data-dir'], values['backup-dir']),
      // A shared database is backed up by its operators.
      cron: values.database === null ? values['backup-cron'] : null,
      keep: values['backup-keep'],
      passphrase: values['backup-passphrase'],
    },
    webhooks: {
      cron: values['dispatch-cron'],
      backoffMs: values['webhook-backoff'],
      allow: values['webhook-allow'],
      sinkDir: values['sink-dir'],
      caFile: values['webhook-ca'],
      proxy: values['webhook-proxy'],
    },
    openFiles: values['open-files'],
    reports: reportsConfig(values),
    robots: values.robots,
    oidc: oidcConfig(values),
    otlp: { keep: values['otlp-keep'], content: values['otlp-content'] },
    evidenceMaxAgeDays: values['evidence-max-age'],
    evidenceDns: values['evidence-dns'],
    watches: values.watch,
    syslog: values['listen-syslog'],
    logLevel: values['log-level'],
    setupFile: values['setup-file'],
    admin: firstOwner(values),
    warnings,
    commandReference,
  }
}

/** Nodes with keys of their own could not decrypt each other's secrets or verify each other's trims. */
function requireRing(values: ServeValues): ServeConfig['shared'] {
  const shared = sharedDatabaseOf(values)
  if (shared !== null && keyRingOf(values) === null)
    throw new UsageError(
      '--database needs the key ring that all nodes share: set --key-file or SIGHTGLASS_KEY_RING',
    )
  return shared
}

function requireRole({ 'node-role': role, database }: ServeValues): ServeConfig['role'] {
  if (role !== 'all' && database === null) throw new UsageError(`--node-role ${role} needs --database`)
  return role
}

function requireDistinctListeners({ listen, 'ingest-listen': ingest }: ServeValues): void {
  if (ingest === null || (ingest.port === 0 && ingest.unix === undefined)) return
  if (listenText(ingest) === listenText(listen))
    throw new UsageError('--listen and --ingest-listen are the same address')
}

function oidcConfig(values: ServeValues): ServeConfig['oidc'] {
  const pair = bothOrNone(values, 'oidc-issuer', 'oidc-client-id')
  if (pair === null) return null
  const [issuer, clientId] = pair
  return { issuer, clientId, clientSecret: values['oidc-client-secret'], name: values['oidc-name'] }
}

function tlsFiles(values: ServeValues): ServeConfig['tls'] {
  const pair = bothOrNone(values, 'tls-cert', 'tls-key')
  return pair && { certFile: pair[0], keyFile: pair[1] }
}

function firstOwner({ 'admin-email': email, 'admin-password': password }: ServeValues): ServeConfig['admin'] {
  if (email !== null && password !== null) return { email, password }
  if (email === null && password === null) return null
  throw new UsageError('SIGHTGLASS_ADMIN_EMAIL and SIGHTGLASS_ADMIN_PASSWORD must be set together')
}

type Pair = 'oidc-issuer' | 'oidc-client-id' | 'tls-cert' | 'tls-key'

function bothOrNone(values: ServeValues, first: Pair, second: Pair): [string, string] | null {
  const one = values[first]
  const other = values[second]
  if (one !== null && other !== null) return [one, other]
  if (one === null && other === null) return null
  throw new UsageError(`--${first} and --${second} must be set together`)
}
