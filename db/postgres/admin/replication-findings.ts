/** Findings about standbys of a PostgreSQL server: what a fail-over would lose, and whether commits wait for nobody. */
import { failure, ok, warning, type Settings } from './finding.ts'
import type { Finding } from '../../contract/operations.ts'
import type { Database } from '../../sql/database.ts'
import { mebibyte } from '../../contract/units.ts'

const lagBytesMax = 256 * mebibyte
const slotBytesMax = 4_096 * mebibyte

export function replicationFindings(db: Database, settings: Settings): Finding[] {
  const { isStandby } = db
    .query<{ isStandby: number }, []>('SELECT pg_is_in_recovery() AS "isStandby"')
    .get()!
  if (isStandby === 1 || settings.get('default_transaction_read_only') === 'on')
    return [
      failure(
        'primary',
        isStandby === 1
          ? 'The server is a standby: it refuses every write.'
          : 'default_transaction_read_only is on: the server refuses every write.',
        isStandby === 1
          ? 'name the primary in --database, or all servers with target_session_attrs=read-write'
          : 'set default_transaction_read_only = off for the database and the role',
      ),
    ]
  return [ok('primary', 'The server is a primary.'), standbyFinding(db, settings), slotFinding(db)]
}

interface Standby {
  name: string
  state: string | null // null without the right to see it
  mode: string | null
  lag: number | null
}

function standbyFinding(db: Database, settings: Settings): Finding {
  const standbys = db
    .query<Standby, []>(
      `SELECT application_name AS name, state, sync_state AS mode,
         pg_wal_lsn_diff(pg_current_wal_lsn(), coalesce(replay_lsn, flush_lsn)) AS lag
       FROM pg_stat_replication ORDER BY application_name`,
    )
    .all()
  const sync = settings.get('synchronous_standby_names') ?? ''
  const isSynchronous = (mode: string | null) => mode === 'sync' || mode === 'quorum'
  if (standbys.some(({ state }) => state === null))
    return ok(
      'standbys',
      `${standbys.length} standbys; this role may not see how they are.`,
      'GRANT pg_monitor TO the role',
    )
  if (sync !== '' && !standbys.some(({ mode }) => isSynchronous(mode)))
    return failure(
      'standbys',
      `synchronous_standby_names is "${sync}", but no synchronous standby is connected: every commit waits for one.`,
      "start the standby, or ALTER SYSTEM SET synchronous_standby_names = ''; SELECT pg_reload_conf();",
    )
  if (standbys.length === 0)
    return ok(
      'standbys',
      'No standby: when this server is lost, so is what was stored since the last backup.',
      'see "Several nodes" in the guide for a fail-over that loses nothing',
    )
  const late = standbys.find(({ lag }) => lag === null || lag > lagBytesMax)
  if (late !== undefined)
    return warning(
      'standbys',
      `The standby "${late.name}" is ${late.lag === null ? 'not following' : `${Math.round(late.lag / mebibyte)} MiB behind`}.`,
      'check its disk, its network and its log',
    )
  const names = standbys.map(({ name, mode }) => `"${name}" (${mode})`).join(', ')
  if (sync === '')
    return warning(
      'standbys',
      `Standbys: ${names}. None is synchronous: a fail-over can lose acknowledged events.`,
      'set synchronous_standby_names, or synchronous_mode: true in Patroni',
    )
  return ok('standbys', `Standbys: ${names}, all within ${lagBytesMax / mebibyte} MiB.`)
}

/** A slot without a reader retains WAL until the disk is full. */
function slotFinding(db: Database): Finding {
  const slot = db
    .query<{ name: string; bytes: number }, []>(
      `SELECT slot_name::text AS name, coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn), 0) AS bytes
       FROM pg_replication_slots WHERE NOT active ORDER BY bytes DESC LIMIT 1`,
    )
    .get()
  if (slot === null) return ok('slots', 'No unused replication slot.')
  const mebibytes = Math.round(slot.bytes / mebibyte)
  const detail = `The replication slot "${slot.name}" is unused and keeps ${mebibytes} MiB of the log on disk.`
  const hint = `start its standby, or SELECT pg_drop_replication_slot('${slot.name}');`
  return slot.bytes > slotBytesMax ? failure('slots', detail, hint) : warning('slots', detail, hint)
}
