/** Compares the rollups with a recount of the rows they stand for. */
import type { Database } from 'bun:sqlite'
import { members } from './members.ts'
import { hourMs, memberAndCode, type RollupCounts } from './rollup-counts.ts'
import type { Report, VerifiedOrg } from './verified-org.ts'

interface StoredCount {
  key: string
  live: number
}

export function verifyRollups(db: Database, org: VerifiedOrg, counted: RollupCounts, report: Report): void {
  const metrics = new Map<string, number>()
  const values = new Map<string, number>()
  const totals = new Map<string, number>()
  for (const { hour, site, type, outcome, events, values: groupValues } of counted.groups()) {
    metrics.set(`${hour} ${site} ${type} ${outcome}`, events)
    totals.set(`${type}`, (totals.get(`${type}`) ?? 0) + events)
    for (const [key, count] of groupValues) {
      const [member, code] = memberAndCode(key)
      values.set(`${hour} ${site} ${type} ${outcome} ${member} ${code}`, count)
    }
  }
  const key = "hour || ' ' || site || ' ' || type || ' ' || outcome"
  compare(db, org, `SELECT ${key} AS key, live FROM rollup_metric WHERE org = ?`, metrics, (at, problem) =>
    report(`the rollup of ${hourName(at)}`, problem),
  )
  const valueKey = `${key} || ' ' || member || ' ' || code`
  compare(db, org, `SELECT ${valueKey} AS key, live FROM rollup_value WHERE org = ?`, values, (at, problem) =>
    report(`the rollup by ${members[Number(at.split(' ')[4])]?.name} of ${hourName(at)}`, problem),
  )
  const expired = db.query<{ type: number; n: number }, [number]>(
    'SELECT type, sum(expired) AS n FROM rollup_metric WHERE org = ? AND expired > 0 GROUP BY type',
  )
  for (const { type, n } of expired.all(org.num)) totals.set(`${type}`, (totals.get(`${type}`) ?? 0) + n)
  const totalsSql = "SELECT type || '' AS key, events AS live FROM event_type_total WHERE org = ?"
  compare(db, org, totalsSql, totals, (_, problem) => report('the totals by type', problem))
}

/** Both ways: what is stored must be counted, and what was counted must be stored. Empties `counted`. */
function compare(
  db: Database,
  org: VerifiedOrg,
  sql: string,
  counted: Map<string, number>,
  report: (key: string, problem: string) => void,
): void {
  for (const { key, live } of db.query<StoredCount, [number]>(sql).iterate(org.num)) {
    const count = counted.get(key) ?? 0
    counted.delete(key)
    if (live !== count) report(key, `says ${live} events, there are ${count}`)
  }
  for (const [key, count] of counted) report(key, `is missing, there are ${count} events`)
}

function hourName(key: string): string {
  return new Date(Number(key.split(' ')[0]) * hourMs).toISOString()
}
