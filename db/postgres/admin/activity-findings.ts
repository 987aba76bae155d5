/** Findings about work on a PostgreSQL server: connections, long transactions, dead rows and transaction ids. */
import { failure, ok, warning, type Settings } from './finding.ts'
import type { Finding } from '../../contract/operations.ts'
import type { Database } from '../../sql/database.ts'

export function activityFindings(db: Database, settings: Settings, schema: string): Finding[] {
  return [
    connectionsFinding(db, settings),
    transactionsFinding(db),
    vacuumFinding(db, settings, schema),
    ageFinding(db, settings),
  ]
}

/** Writer, upkeep, three for appends, and two readers of up to six. */
const connectionsPerNode = 17

const seenMs = 20_000

function connectionsFinding(db: Database, settings: Settings): Finding {
  const setting = (name: string) => Number(settings.get(name) ?? 0)
  const free =
    setting('max_connections') - setting('superuser_reserved_connections') - setting('reserved_connections')
  const {
    used: usedCount,
    own: ownCount,
    nodes,
  } = db
    .query<{ used: number; own: number; nodes: number }, [number]>(
      `SELECT count(*) AS used, count(*) FILTER (WHERE application_name LIKE 'sightglass/%') AS own,
         (SELECT count(*) FROM node WHERE seen_at_ms > ?) AS nodes
       FROM pg_stat_activity WHERE backend_type = 'client backend'`,
    )
    .get(db.dialect.storeMs(db, 0) - seenMs)!
  const neededCount = Math.max(1, nodes) * connectionsPerNode
  const detail =
    `${usedCount} of ${free} connections are in use. ${nodes === 1 ? '1 node needs' : `${Math.max(1, nodes)} nodes need`} ` +
    `up to ${neededCount}, ${connectionsPerNode} each.`
  const enough = neededCount + usedCount - ownCount + 10
  const hint = `set max_connections to at least ${enough} and restart the server, or put pgbouncer in between`
  if (usedCount >= free * 0.9) return failure('connections', detail, hint)
  return neededCount + usedCount - ownCount > free
    ? warning('connections', detail, hint)
    : ok('connections', detail)
}

const longMinutesDefault = 10

const stays = 'Until it ends, vacuum removes no dead rows from any table.'

/** They hold back the removal of dead rows in every table. */
export function transactionsFinding(db: Database, longMinutes = longMinutesDefault): Finding {
  const old = db
    .query<{ pid: number; name: string; minutes: number }, [number]>(
      `SELECT pid, application_name AS name, floor(extract(epoch FROM clock_timestamp() - xact_start) / 60) AS minutes
       FROM pg_stat_activity WHERE xact_start < clock_timestamp() - ? * interval '1 minute'
         AND backend_type = 'client backend' AND pid <> pg_backend_pid()
       ORDER BY xact_start LIMIT 1`,
    )
    .get(longMinutes)
  if (old !== null)
    return warning(
      'transactions',
      `"${old.name}" (process ${old.pid}) has had a transaction open for ${old.minutes} minutes. ${stays}`,
      `end it: SELECT pg_terminate_backend(${old.pid});`,
    )
  const prepared = db
    .query<{ gid: string }, [number]>(
      `SELECT gid FROM pg_prepared_xacts WHERE prepared < clock_timestamp() - ? * interval '1 minute' LIMIT 1`,
    )
    .get(longMinutes)
  if (prepared === null) return ok('transactions', `No transaction is older than ${longMinutes} minutes.`)
  const detail = `The prepared transaction ${prepared.gid} was never committed or rolled back. ${stays}`
  return warning('transactions', detail, `ROLLBACK PREPARED '${prepared.gid.replaceAll("'", "''")}';`)
}

const deadMin = 10_000

function vacuumFinding(db: Database, settings: Settings, schema: string): Finding {
  const off = ['autovacuum', 'track_counts'].filter((name) => settings.get(name) !== 'on')
  if (off.length > 0)
    return failure(
      'vacuum',
      `${off.join(' and ')} ${off.length === 1 ? 'is' : 'are'} off: tables grow without bound, and eventually writes stop.`,
      off.map((name) => `ALTER SYSTEM SET ${name} = on;`).join(' ') + ' SELECT pg_reload_conf();',
    )
  const [worst, ...otherTables] = db
    .query<{ name: string; dead: number; live: number; last: string | null }, [string, number]>(
      `SELECT relname AS name, n_dead_tup AS dead, n_live_tup AS live,
         to_char(greatest(last_autovacuum, last_vacuum) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI') AS last
       FROM pg_stat_user_tables WHERE schemaname = ? AND n_dead_tup >= ? AND n_dead_tup * 10 > n_live_tup * 3
       ORDER BY n_dead_tup DESC`,
    )
    .all(schema, deadMin)
  if (worst === undefined) return ok('vacuum', 'Autovacuum is on, and no table has many dead rows.')
  const { name, dead, live, last } = worst
  const otherText =
    otherTables.length === 0
      ? ''
      : `, and ${otherTables.length === 1 ? '1 more table is' : `${otherTables.length} more tables are`} similar`
  const vacuumText = last === null ? 'never vacuumed' : `last vacuumed ${last} UTC`
  const rows = `${dead.toLocaleString('en-US')} dead rows and ${live.toLocaleString('en-US')} live ones`
  return warning(
    'vacuum',
    `The table ${name} has ${rows} (${vacuumText})${otherText}.`,
    `VACUUM (VERBOSE) ${schema}.${name}; then lower autovacuum_vacuum_scale_factor if it returns`,
  )
}

/** PostgreSQL stops writing at about 2 billion. */
const ageMax = 1_500_000_000

/** Autovacuum freezes rows at `autovacuum_freeze_max_age`. An age beyond it means that it cannot. */
function ageFinding(db: Database, settings: Settings): Finding {
  const { age } = db
    .query<{ age: number }, []>(
      'SELECT age(datfrozenxid) AS age FROM pg_database WHERE datname = current_database()',
    )
    .get()!
  const limit = Number(settings.get('autovacuum_freeze_max_age'))
  const detail = `The oldest transaction id is ${age.toLocaleString('en-US')} old; writes are refused at 2,100,000,000.`
  const hint =
    'find what holds back autovacuum (old transactions, replication slots), then run vacuumdb --freeze'
  if (age > ageMax) return failure('age', detail, hint)
  return age > limit * 1.1 ? warning('age', detail, hint) : ok('age', detail)
}
