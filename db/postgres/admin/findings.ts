/** What `doctor` finds about a PostgreSQL server: settings, connections and the state of its tables. */
import { failure, ok, warning, type Settings } from './finding.ts'
import { activityFindings } from './activity-findings.ts'
import { replicationFindings } from './replication-findings.ts'
import type { Finding } from '../../contract/operations.ts'
import type { Database } from '../../sql/database.ts'

interface FindingsQuery {
  schema: string
  now: number
  /** Of the URL: whether statements are prepared for the session. */
  prepare: boolean
  /** Whether two connections one after the other got the same process of the server. */
  isPooled: boolean
}

const settingNames = [
  'fsync',
  'full_page_writes',
  'synchronous_commit',
  'synchronous_standby_names',
  'server_version_num',
  'autovacuum',
  'track_counts',
  'autovacuum_freeze_max_age',
  'default_transaction_read_only',
  'session_replication_role',
  'transaction_timeout',
  'max_connections',
  'superuser_reserved_connections',
  'reserved_connections',
]

/** Each reads a few rows of the server's own views. None is as long as a scan of a table. */
export function findingsOf(db: Database, query: FindingsQuery): Finding[] {
  const list = settingNames.map((name) => `'${name}'`).join()
  const rows = db
    .query<{ name: string; setting: string }, []>(
      `SELECT name, setting FROM pg_settings WHERE name IN (${list})`,
    )
    .all()
  const settings: Settings = new Map(rows.map(({ name, setting }) => [name, setting]))
  return [
    versionFinding(settings),
    durabilityFinding(settings),
    behaviourFinding(settings),
    encodingFinding(db),
    clockFinding(db, query.now),
    poolerFinding(query),
    ...activityFindings(db, settings, query.schema),
    ...replicationFindings(db, settings),
  ]
}

const newestTested = 18

function versionFinding(settings: Settings): Finding {
  const version = Math.floor(Number(settings.get('server_version_num')) / 10_000)
  if (version <= newestTested) return ok('version', `PostgreSQL ${version}.`)
  const detail = `PostgreSQL ${version} is newer than ${newestTested}, the newest that was tested with this release.`
  return warning('version', detail, 'use PostgreSQL 15 to 18, or a newer release of Sightglass')
}

/** What an acknowledgement is worth after a crash. */
function durabilityFinding(settings: Settings): Finding {
  const off = ['fsync', 'full_page_writes'].filter((name) => settings.get(name) !== 'on')
  if (off.length > 0)
    return failure(
      'durability',
      `${off.join(' and ')} ${off.length === 1 ? 'is' : 'are'} off: a crash of the machine can damage all data.`,
      off.map((name) => `ALTER SYSTEM SET ${name} = on;`).join(' ') + ' SELECT pg_reload_conf();',
    )
  const commit = settings.get('synchronous_commit')
  if (commit === 'off')
    return failure(
      'durability',
      'synchronous_commit is off: acknowledged events can be lost when the server crashes.',
      'set synchronous_commit = on for the server, the database and the role',
    )
  const hasStandbys = settings.get('synchronous_standby_names') !== ''
  if (hasStandbys && commit === 'local')
    return warning(
      'durability',
      'synchronous_commit is local: acknowledged events can be lost at a fail-over, although standbys are synchronous.',
      'set synchronous_commit = on for the server, the database and the role',
    )
  return ok('durability', `fsync and full_page_writes are on, synchronous_commit is ${commit}.`)
}

/** What no session can set for itself. The rest is in `connection/settings.ts`. */
function behaviourFinding(settings: Settings): Finding {
  if (settings.get('session_replication_role') !== 'origin')
    return failure(
      'settings',
      `session_replication_role is ${settings.get('session_replication_role')}: the triggers that protect the audit trail are off.`,
      'set session_replication_role = origin for the database and the role',
    )
  const transactionMs = Number(settings.get('transaction_timeout') ?? 0)
  if (transactionMs > 0 && transactionMs < transactionMsMin)
    return warning(
      'settings',
      `transaction_timeout is ${transactionMs} ms: long reads, migrations and sightglass verify may be ended.`,
      'set transaction_timeout = 0 for the role',
    )
  return ok('settings', 'Triggers and time limits are as expected.')
}

const transactionMsMin = 30 * 60_000

function encodingFinding(db: Database): Finding {
  const { encoding } = db
    .query<{ encoding: string }, []>(
      'SELECT pg_encoding_to_char(encoding)::text AS encoding FROM pg_database WHERE datname = current_database()',
    )
    .get()!
  if (encoding === 'UTF8') return ok('encoding', 'The encoding is UTF8.')
  return failure(
    'encoding',
    `The encoding is ${encoding}: characters outside it are rejected or changed.`,
    "create another database with ENCODING 'UTF8' TEMPLATE template0 and move the data with pg_dump",
  )
}

const skewMsMax = 5_000

/** Of the machine that runs `doctor`. Nodes report their own with each heartbeat. */
function clockFinding(db: Database, now: number): Finding {
  const aheadMs = now - db.dialect.storeMs(db, now)
  const seconds = (Math.abs(aheadMs) / 1_000).toFixed(1)
  const detail = `This machine's clock is ${seconds} s ${aheadMs < 0 ? 'behind' : 'ahead of'} the database's.`
  if (Math.abs(aheadMs) <= skewMsMax) return ok('clock', detail)
  return warning('clock', detail, 'synchronize the clocks of both machines with NTP')
}

function poolerFinding({ prepare, isPooled }: FindingsQuery): Finding {
  if (!isPooled)
    return prepare
      ? ok('pooler', 'No pooler was found.')
      : ok(
          'pooler',
          'No pooler was found. Without one, remove prepare=false from the URL: each statement then costs less.',
        )
  if (prepare)
    return failure(
      'pooler',
      'A pooler shares connections of the server: time limits and prepared statements of a session are lost.',
      'add ?prepare=false to the URL of --database, or connect to the server itself',
    )
  return ok('pooler', 'A pooler shares connections of the server, and the URL says prepare=false.')
}
