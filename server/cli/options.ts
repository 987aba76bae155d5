/** The options of serve, and those of every command. A flag beats the environment, the environment beats the file. */
import {
  addressRangeList,
  basePath,
  choice,
  cronOrOff,
  cronPattern,
  databaseUrl,
  daysOrOff,
  folderPath,
  hostNameList,
  issuerAddress,
  listenAddress,
  metricsToken,
  origin,
  proxyAddress,
  rateLimit,
  retrySteps,
  secondsOrOff,
  sizeBytes,
  sizeOrOff,
  text,
  toggle,
  wholeNumber,
  type Options,
  visibleName,
} from './option.ts'
import { accessLogOptions } from './access-options.ts'
import { reportOptions } from './report-options.ts'
import { readTextFile, unreadableReason } from '../../db/rules/regular-files.ts'
import { hostname } from 'node:os'
import { UsageError } from '../errors.ts'
import type { SharedDatabase } from '../../db/contract/admin.ts'
import { robotsSources } from '../robots/watched-files.ts'
import { readKeyRing, type KeyRing } from '../system/key-ring.ts'
import { countsRetentionDays } from '../../db/rules/retention-days.ts'

function keyRing(text: string, from = ''): KeyRing {
  try {
    return readKeyRing(text)
  } catch (error) {
    throw new UsageError(`${from}${error instanceof Error ? error.message : String(error)}`)
  }
}

export const commonOptions = {
  'data-dir': {
    read: folderPath,
    value: 'FOLDER',
    default: './sightglass-data',
    help: 'folder that holds the database and the keys',
  },
  database: {
    read: databaseUrl,
    value: 'URL',
    default: null,
    help: 'PostgreSQL database that several nodes share, instead of one in the data folder; needs a key ring',
    alias: { variable: 'DATABASE_URL', prefix: 'postgres' },
    secret: true,
  },
  'key-file': {
    read: folderPath,
    value: 'FILE',
    default: null,
    help: 'key ring that several nodes share, by default the key files of the data folder: one key of 64 hex digits per line, the newest first',
  },
  'key-ring': {
    read: (text: string) => keyRing(text),
    value: 'KEYS',
    default: null,
    help: 'the contents of such a file',
    environmentOnly: true,
    secret: true,
  },
  config: {
    read: folderPath,
    value: 'FILE',
    default: null,
    help: 'TOML file with options as keys',
    notInFile: true,
  },
  json: toggle('print one JSON value'),
  help: { ...toggle('show this help'), flagOnly: true },
} satisfies Options

interface KeyValues {
  'key-file': string | null
  'key-ring': KeyRing | null
}

/** Null: the keys are files of the data folder. */
export function keyRingOf(values: KeyValues): KeyRing | null {
  const { 'key-file': path, 'key-ring': ring } = values
  if (path === null) return ring
  if (ring !== null) throw new UsageError('--key-file and SIGHTGLASS_KEY_RING must not be set together')
  let text: string
  try {
    text = readTextFile(path)
  } catch (error) {
    throw new UsageError(`--key-file ${path}: cannot be read (${unreadableReason(error)})`)
  }
  return keyRing(text, `--key-file ${path}: `)
}

interface DatabaseValues {
  database: string | null
  'node-name'?: string | null
}

/** Null: the database is in the data folder. Commands have no name, because they are not nodes. */
export function sharedDatabaseOf({
  database,
  'node-name': name = 'command',
}: DatabaseValues): SharedDatabase | null {
  return database === null ? null : { url: database, node: name ?? hostname() }
}

/** What operations on the whole database open. */
export function locationOf(values: DatabaseValues & { 'data-dir': string }): string {
  return values.database ?? values['data-dir']
}

const listenerOptions = {
  listen: {
    read: listenAddress,
    value: 'HOST:PORT|unix:PATH',
    default: '127.0.0.1:7400',
    help: 'address of the dashboard and the API; port 0 picks a free one, unix: listens on a socket',
  },
  'ingest-listen': {
    read: listenAddress,
    value: 'HOST:PORT',
    default: null,
    help: 'second address, which serves only ingest, limits and health',
  },
  'metrics-listen': {
    read: listenAddress,
    value: 'HOST:PORT',
    default: null,
    help: 'address that serves only /metrics, without authentication',
  },
  'metrics-token': {
    read: metricsToken,
    value: 'TOKEN',
    default: null,
    help: 'bearer token that opens /metrics on the main address; 1 to 200 ASCII characters without spaces',
    secret: true,
  },
  'upgrade-wait': {
    read: secondsOrOff,
    value: 'SECONDS|off',
    default: 'off',
    help: 'how long a node waits for nodes of an older release, which must end before it upgrades the database; off: no limit',
  },
  'drain-wait': {
    read: wholeNumber(0, 300),
    value: 'SECONDS',
    default: '0',
    help: 'after SIGTERM: how long requests are still served while /readyz answers 503, so that a load balancer notices',
  },
  'public-url': {
    read: origin,
    value: 'URL',
    default: null,
    help: 'address that people open when a reverse proxy is in front',
  },
  'base-path': {
    read: basePath,
    value: 'PATH',
    default: '',
    help: 'path below a shared host, such as /sightglass; the proxy must not strip it',
  },
  'allowed-host': {
    read: hostNameList,
    value: 'NAME[,NAME]',
    default: '',
    help: 'further host names that the dashboard accepts',
  },
  'trusted-proxy': {
    read: addressRangeList,
    value: 'CIDR[,CIDR]',
    default: '',
    help: 'proxies whose X-Forwarded-For and X-Forwarded-Proto headers are trusted',
  },
  'tls-cert': {
    read: folderPath,
    value: 'FILE',
    default: null,
    help: 'certificate chain (PEM); turns on HTTPS. A renewed file is loaded within seconds',
  },
  'tls-key': { read: folderPath, value: 'FILE', default: null, help: 'private key (PEM) of the certificate' },
  'rate-limit-gateway': {
    read: rateLimit,
    value: 'N/s|m|h|off',
    default: '1200/m',
    help: 'API requests per key or address; the same count is the burst',
  },
  'rate-limit-ingest': {
    read: rateLimit,
    value: 'N/s|m|h|off',
    default: 'off',
    help: 'ingest requests per key or address; the write queue limits ingest anyway',
  },
} satisfies Options

const storageOptions = {
  'disk-floor': {
    read: sizeBytes,
    value: 'SIZE',
    default: '256MiB',
    help: 'free disk space below which ingest is refused with 507',
  },
  'memory-limit': {
    read: sizeBytes,
    value: 'SIZE',
    default: null,
    help: 'memory limit, by default that of the machine or container. Near it the server refuses reads, then all requests, and finally restarts',
  },
  'retention-days': {
    read: daysOrOff,
    value: 'DAYS|off',
    default: '90',
    help: `events expire this many days after arrival; hourly counts stay ${countsRetentionDays} days`,
  },
  'retention-bytes': {
    read: sizeOrOff,
    value: 'SIZE|off',
    default: 'off',
    help: 'size limit for the events of one organization; above it the oldest expire',
  },
  'retention-audit-days': {
    read: daysOrOff,
    value: 'DAYS|off',
    default: 'off',
    help: 'audit entries expire after this many days; each trim leaves a signed checkpoint',
  },
  'impostor-network-days': {
    read: wholeNumber(1, 3_650),
    value: 'DAYS',
    default: '90',
    help: 'the networks of requests whose claim was contradicted are deleted this many days after arrival; the events stay',
  },
  'open-files': toggle(
    'write the events of each past day as Parquet files into the folder "open" of the data folder',
  ),
  'backup-dir': {
    read: folderPath,
    value: 'FOLDER',
    default: null,
    help: 'folder for backups, by default backups in the data folder',
  },
  'backup-cron': {
    read: cronOrOff,
    value: 'CRON|off',
    default: '17 3 * * *',
    help: 'schedule of automatic backups, in UTC',
  },
  'backup-keep': {
    read: wholeNumber(1, 1_000),
    value: 'COUNT',
    default: '3',
    help: 'number of automatic backups to keep',
  },
  'backup-passphrase': {
    ...text('PASSPHRASE', 'encrypts backups, and decrypts encrypted ones'),
    environmentOnly: true,
    secret: true,
  },
} satisfies Options

const webhookOptions = {
  'dispatch-cron': {
    read: cronPattern,
    value: 'CRON',
    default: '* * * * *',
    help: 'schedule on which due webhook deliveries are sent; a sixth field in front sets seconds',
  },
  'webhook-backoff': {
    read: retrySteps,
    value: 'A,B,C',
    default: '60s,300s,1800s',
    help: 'waits before the three retries of a delivery, at most 24h each',
  },
  'webhook-allow': {
    read: addressRangeList,
    value: 'CIDR[,CIDR]',
    default: '',
    help: 'private networks that webhook deliveries may reach',
  },
  'webhook-ca': {
    read: folderPath,
    value: 'FILE',
    default: null,
    help: 'certificate authorities (PEM) of webhook receivers, in addition to the public ones',
  },
  'webhook-proxy': {
    read: proxyAddress,
    value: 'URL',
    default: null,
    help: 'HTTP proxy for webhook deliveries; HTTPS_PROXY and similar variables are ignored',
    secret: true,
  },
  'sink-dir': {
    read: folderPath,
    value: 'FOLDER',
    default: null,
    help: 'folder below which webhook endpoints may append to files',
  },
  robots: {
    read: robotsSources,
    value: 'SITE_ID=FILE',
    default: '',
    help: 'robots.txt of a site, by which requests in its access logs are judged; a change of the file is a new version; in the file as [[robots]] with site, path and org',
    adds: true,
  },
} satisfies Options

const identityOptions = {
  'oidc-issuer': {
    read: issuerAddress,
    value: 'URL',
    default: null,
    help: 'OpenID Connect provider for sign-in, in addition to passwords',
  },
  'oidc-client-id': text('ID', 'client id at the provider; its redirect URI is PUBLIC-URL/api/oidc/callback'),
  'oidc-client-secret': {
    ...text('SECRET', 'client secret at the provider; without it, a public client with PKCE'),
    environmentOnly: true,
    secret: true,
  },
  'oidc-name': {
    read: visibleName,
    value: 'NAME',
    default: 'single sign-on',
    help: 'name of the provider on the sign-in page',
  },
  'admin-email': {
    ...text('EMAIL', 'email of the first owner, created at start if no owner exists'),
    environmentOnly: true,
  },
  'admin-password': {
    ...text('PASSWORD', 'password of the first owner'),
    environmentOnly: true,
    secret: true,
  },
} satisfies Options

/** Everything that `serve` accepts. */

export const serveOptions = {
  ...listenerOptions,
  ...accessLogOptions,
  ...storageOptions,
  ...webhookOptions,
  ...reportOptions,
  ...identityOptions,
  'setup-file': {
    read: folderPath,
    value: 'FILE',
    default: null,
    help: 'TOML file of organizations, sites, keys, endpoints and alert rules, applied at every start',
  },
  'node-name': {
    read: visibleName,
    value: 'NAME',
    default: null,
    help: 'name of this node among those that share the database, by default the host name',
  },
  'node-role': {
    ...choice(
      ['all', 'ingest', 'web', 'jobs'],
      'work of this node of a shared database: ingest serves only ingest, web serves everything but runs no jobs, jobs runs jobs and webhooks and serves only health and metrics',
    ),
    default: 'all',
  },
  'otlp-keep': {
    ...choice(['agents', 'all'], 'OpenTelemetry: store what agents do, or also model calls and other spans'),
    default: 'agents',
  },
  'otlp-content': toggle('OpenTelemetry: also store arguments, results and messages'),
  'log-level': { ...choice(['debug', 'info', 'warn', 'error'], 'lowest level to log'), default: 'info' },
} satisfies Options

const { listen, 'public-url': publicUrl, 'base-path': base } = serveOptions

/** Of commands that print links to the dashboard. */
export const linkOptions = { listen, 'public-url': publicUrl, 'base-path': base }

/** Of commands that check webhook addresses when no server runs. */
export const targetOptions = {
  'webhook-allow': serveOptions['webhook-allow'],
  'sink-dir': serveOptions['sink-dir'],
}

/** Of commands that read or write backups. */
export const backupOptions = {
  'backup-dir': serveOptions['backup-dir'],
  'backup-passphrase': serveOptions['backup-passphrase'],
}

export const orgOption = {
  org: { ...text('SLUG|ID', 'organization, by slug or id'), default: 'default' },
}
