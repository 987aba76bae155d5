/** Rows of access logs: reading and writing them, folding old ones into sums, and checking that they add up. */
import {
  requestKinds,
  type AccessLogStore,
  type AccessSource,
  type KindCounts,
  type RequestCounts,
  type RequestKind,
} from '../../contract/access-logs.ts'
import {
  accessHourMs,
  hourChecksum,
  sourceChecksum,
  sumsOf,
  type AccessChanges,
  type HourChange,
  type SourceKey,
  type SourceRow,
} from '../../rules/access-ledger.ts'
import type { Database, SqlValue } from '../database.ts'
import type { EventFault } from '../../contract/event-counts.ts'

/** The columns of `access_source` as a `SourceRow` names them. */
export const sourceColumns = `org_id AS orgId, site_id AS siteId, source, path, format, position, tail, lines, stored,
  deduped, people, assets, bots, notes, bad, bytes, newest_ms AS newestMs, updated_ms AS updatedMs,
  is_drain AS isDrain, expires_ms AS expiresMs`

/** As a statement returns it. */
export type StoredSource = Omit<SourceRow, 'isDrain'> & { isDrain: number }

export function sourceOf(row: StoredSource): SourceRow {
  return { ...row, isDrain: row.isDrain === 1 }
}

export function findSource(db: Database, { orgId, siteId, source }: SourceKey): SourceRow | null {
  const row = db
    .query<StoredSource, [string, string, string]>(
      `SELECT ${sourceColumns} FROM access_source WHERE org_id = ? AND site_id = ? AND source = ?`,
    )
    .get(orgId, siteId, source)
  return row === null ? null : sourceOf(row)
}

/** Inside the transaction of the events. Nobody else may write to these logs meanwhile. */
export function writeAccess(db: Database, { sources, hours }: AccessChanges): void {
  for (const { row } of sources) writeSource(db, row)
  for (const { orgId, hour, siteId, kind, requests, bytes } of hours)
    addHour(db, [orgId, hour, siteId, kind, requests, bytes, hourChecksum({ hour, requests, bytes })])
}

function writeSource(db: Database, row: SourceRow): void {
  const { orgId, siteId, source, path, format, position, tail, lines, stored, deduped, people } = row
  const { assets, bots, notes, bad, bytes, newestMs, updatedMs, isDrain, expiresMs } = row
  db.query(
    `INSERT INTO access_source (org_id, site_id, source, path, format, position, tail, lines, stored, deduped,
       people, assets, bots, notes, bad, bytes, newest_ms, updated_ms, is_drain, expires_ms, checksum)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (org_id, site_id, source) DO UPDATE SET
       path = excluded.path, format = excluded.format, position = excluded.position, tail = excluded.tail,
       lines = excluded.lines, stored = excluded.stored, deduped = excluded.deduped, people = excluded.people,
       assets = excluded.assets, bots = excluded.bots, notes = excluded.notes, bad = excluded.bad,
       bytes = excluded.bytes, newest_ms = excluded.newest_ms, updated_ms = excluded.updated_ms,
       is_drain = excluded.is_drain, expires_ms = excluded.expires_ms, checksum = excluded.checksum`,
  ).run(
    orgId,
    siteId,
    source,
    path,
    format,
    position,
    tail,
    lines,
    stored,
    deduped,
    people,
    assets,
    bots,
    notes,
    bad,
    bytes,
    newestMs,
    updatedMs,
    isDrain ? 1 : 0,
    expiresMs,
    sourceChecksum(row),
  )
}

function addHour(db: Database, values: SqlValue[]): void {
  db.query(
    `INSERT INTO access_hour (org_id, hour, site_id, kind, requests, bytes, checksum) VALUES (?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (org_id, hour, site_id, kind) DO UPDATE SET
       requests = access_hour.requests + excluded.requests, bytes = access_hour.bytes + excluded.bytes,
       checksum = access_hour.checksum + 31 * excluded.requests + 7 * excluded.bytes`,
  ).run(...values)
}

export function removeAccess(db: Database, orgId: string, siteId: string): void {
  for (const table of ['access_source', 'access_hour'])
    db.query(`DELETE FROM ${table} WHERE org_id = ? AND site_id = ?`).run(orgId, siteId)
}

const sourcesPerStep = 500
const hoursPerStep = 2_000
/** Of the hour and the rows that hold sums. */
const sumsHour = -1
const never = Number.MAX_SAFE_INTEGER

/** Inside a transaction, while nobody appends to the organization. */
export function expireAccess(
  db: Database,
  { orgId, beforeMs, now }: { orgId: string; beforeMs: number; now: number },
): { rows: number; done: boolean } {
  const sources = db
    .query<StoredSource, [string, number, number]>(
      `SELECT ${sourceColumns} FROM access_source WHERE org_id = ? AND expires_ms < ? ORDER BY expires_ms LIMIT ?`,
    )
    .all(orgId, now, sourcesPerStep)
  for (const row of sources) foldSource(db, sourceOf(row))
  const hours = db
    .query<{ hour: number; siteId: string; kind: RequestKind; requests: number; bytes: number }, SqlValue[]>(
      `SELECT hour, site_id AS siteId, kind, requests, bytes FROM access_hour
       WHERE org_id = ? AND hour >= 0 AND hour < ? ORDER BY hour, site_id, kind LIMIT ?`,
    )
    .all(orgId, Math.floor(beforeMs / accessHourMs), hoursPerStep)
  for (const { hour, siteId, kind, requests, bytes } of hours) {
    const checksum = hourChecksum({ hour: sumsHour, requests, bytes })
    addHour(db, [orgId, sumsHour, siteId, kind, requests, bytes, checksum])
    db.query('DELETE FROM access_hour WHERE org_id = ? AND hour = ? AND site_id = ? AND kind = ?').run(
      orgId,
      hour,
      siteId,
      kind,
    )
  }
  const isDone = sources.length < sourcesPerStep && hours.length < hoursPerStep
  return { rows: sources.length + hours.length, done: isDone }
}

const summed = ['lines', 'stored', 'deduped', 'people', 'assets', 'bots', 'notes', 'bad', 'bytes'] as const

function foldSource(db: Database, row: SourceRow): void {
  const { orgId, siteId, isDrain } = row
  const source = isDrain ? sumsOf.drains : sumsOf.logs
  const existingSums = findSource(db, { orgId, siteId, source })
  const sums: SourceRow = { ...row, source, path: '', position: 0, tail: '', expiresMs: never }
  if (existingSums !== null) {
    for (const name of summed) sums[name] += existingSums[name]
    sums.updatedMs = Math.max(sums.updatedMs, existingSums.updatedMs)
    sums.newestMs = Math.max(sums.newestMs ?? 0, existingSums.newestMs ?? 0) || null
  }
  writeSource(db, sums)
  db.query('DELETE FROM access_source WHERE org_id = ? AND site_id = ? AND source = ?').run(
    orgId,
    siteId,
    row.source,
  )
}

const sourcesListed = 1_000

function listSources({ db }: { db: Database }, orgId: string): AccessSource[] {
  const logs = db
    .query<StoredSource, [string, number]>(
      `SELECT ${sourceColumns} FROM access_source WHERE org_id = ? AND is_drain = 0
       ORDER BY updated_ms DESC, site_id, source LIMIT ?`,
    )
    .all(orgId, sourcesListed)
  const drains = db
    .query<StoredSource, [string, string, number]>(
      `SELECT org_id AS orgId, site_id AS siteId, CAST(? AS TEXT) AS source, '' AS path, max(format) AS format,
         0 AS position, '' AS tail, ${summed.map((name) => `sum(${name}) AS ${name}`).join(', ')},
         max(newest_ms) AS newestMs, max(updated_ms) AS updatedMs, 1 AS isDrain, 0 AS expiresMs
       FROM access_source WHERE org_id = ? AND is_drain = 1 GROUP BY org_id, site_id ORDER BY site_id LIMIT ?`,
    )
    .all(sumsOf.drains, orgId, sourcesListed)
  return [...logs, ...drains]
    .map((row) => {
      const { orgId: _org, expiresMs: _expires, ...source } = sourceOf(row)
      return source
    })
    .sort((a, b) => b.updatedMs - a.updatedMs)
    .slice(0, sourcesListed)
}

function readPosition({ db }: { db: Database }, key: SourceKey): { position: number; tail: string } | null {
  const row = findSource(db, key)
  return row === null ? null : { position: row.position, tail: row.tail }
}

function noCounts(): KindCounts {
  const zeroEntries = requestKinds.map((kind) => [kind, { requests: 0, bytes: 0 }] as const)
  return Object.fromEntries(zeroEntries) as KindCounts
}

function readCounts(
  { db }: { db: Database },
  { orgId, sinceMs, untilMs, siteIds = [] }: Parameters<AccessLogStore['counts']>[0],
): RequestCounts {
  const from = Math.max(0, Math.floor(sinceMs / accessHourMs))
  const until = untilMs === null ? never : Math.floor(untilMs / accessHourMs)
  const sites = siteIds.length === 0 ? '' : `AND site_id IN ${db.dialect.textsOf('?')}`
  const parameters = siteIds.length === 0 ? [] : [JSON.stringify(siteIds)]
  const sumsBy = <Name>(column: string): Map<Name, KindCounts> => {
    const sums = new Map<Name, KindCounts>()
    const rows = db.query<{ name: Name; kind: RequestKind; requests: number; bytes: number }, SqlValue[]>(
      `SELECT ${column} AS name, kind, sum(requests) AS requests, sum(bytes) AS bytes FROM access_hour
       WHERE org_id = ? AND hour >= ? AND hour < ? ${sites} GROUP BY ${column}, kind ORDER BY ${column}`,
    )
    for (const { name, kind, requests, bytes } of rows.all(orgId, from, until, ...parameters)) {
      const counts = sums.get(name) ?? noCounts()
      counts[kind] = { requests, bytes }
      sums.set(name, counts)
    }
    return sums
  }
  return {
    byHour: Array.from(sumsBy<number>('hour'), ([hour, counts]) => ({
      hourMs: hour * accessHourMs,
      ...counts,
    })),
    bySite: Array.from(sumsBy<string>('site_id'), ([siteId, counts]) => ({ siteId, ...counts })),
  }
}

export const accessReadVerbs = {
  'accessLogs.sources': listSources,
  'accessLogs.position': readPosition,
  'accessLogs.counts': readCounts,
}

/** Which sum of the logs each kind of the hours must equal. */
const columnOfKind: { [kind in RequestKind]: 'stored' | 'people' | 'assets' | 'bots' } = {
  agent: 'stored',
  person: 'people',
  asset: 'assets',
  bot: 'bots',
}

const faultsMax = 100

/** In a snapshot: every row is as it was written, each log adds up, and so do the hours of each site with its logs. */
export function verifyAccess(db: Database): EventFault[] {
  const faults: EventFault[] = []
  const report = (orgId: string, place: string, problem: string): void => {
    if (faults.length < faultsMax) faults.push({ orgId, place, problem })
  }
  const bySite = new Map<string, { [name in RequestKind | 'bytes']: number }>()
  const sumsOfSite = (orgId: string, siteId: string) => {
    const key = JSON.stringify([orgId, siteId])
    const sums = bySite.get(key) ?? { agent: 0, person: 0, asset: 0, bot: 0, bytes: 0 }
    bySite.set(key, sums)
    return sums
  }
  const rows = db.query<StoredSource & { checksum: number }, []>(
    `SELECT ${sourceColumns}, checksum FROM access_source ORDER BY org_id, site_id, source`,
  )
  for (const { checksum, ...stored } of rows.iterate()) {
    const row = sourceOf(stored)
    const { orgId, siteId, source, path, lines } = row
    const place = `access log ${path || source} of site ${siteId}`
    if (sourceChecksum(row) !== checksum) report(orgId, place, 'its row is not the one that was written')
    const counted = summed.reduce(
      (sum, name) => sum + (name === 'lines' || name === 'bytes' ? 0 : row[name]),
      0,
    )
    if (counted !== lines) report(orgId, place, `has ${lines} lines, but counts ${counted}`)
    const sums = sumsOfSite(orgId, siteId)
    for (const kind of requestKinds) sums[kind] -= row[columnOfKind[kind]]
    sums.bytes -= row.bytes
  }
  const hours = db.query<HourRow, []>(
    `SELECT org_id AS orgId, hour, site_id AS siteId, kind, requests, bytes, checksum FROM access_hour
     ORDER BY org_id, hour, site_id, kind`,
  )
  for (const row of hours.iterate()) {
    const { orgId, hour, siteId, kind, requests, bytes } = row
    if (hourChecksum(row) !== row.checksum) report(orgId, nameOf(row), 'is not what was written')
    if (requests < 0 || bytes < 0 || hour < sumsHour) report(orgId, nameOf(row), 'is negative')
    const sums = sumsOfSite(orgId, siteId)
    sums[kind] += requests
    sums.bytes += bytes
  }
  for (const [key, sums] of bySite) {
    const [orgId, siteId] = JSON.parse(key) as [string, string]
    for (const [name, difference] of Object.entries(sums)) {
      if (difference === 0) continue
      const differenceText = difference > 0 ? `${difference} more` : `${-difference} fewer`
      const noun = name === 'bytes' ? 'bytes' : `requests of kind ${name}`
      report(orgId, `access logs of site ${siteId}`, `the hours have ${differenceText} ${noun} than the logs`)
    }
  }
  return faults
}

type HourRow = HourChange & { checksum: number }

function nameOf({ hour, siteId, kind }: HourRow): string {
  const start = hour === sumsHour ? 'expired hours' : `hour ${new Date(hour * accessHourMs).toISOString()}`
  return `requests of kind ${kind} of site ${siteId}, ${start}`
}
