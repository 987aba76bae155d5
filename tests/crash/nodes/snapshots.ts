/** Reads counts, blocks and ids of an organization in one snapshot each while nodes write, and prints what differed. */
import { openConnection } from '../../../db/postgres/connection/connection.ts'
import { ofOrg } from '../../../db/postgres/events/id-hash.ts'
import { StoreError } from '../../../db/contract/errors.ts'
import { readMetrics, readOverview } from '../../../db/sql/events/read/metrics.ts'
import { inSnapshot, type Database } from '../../../db/sql/database.ts'
import type { Sliced } from '../../../db/sql/slices.ts'

interface Snapshot {
  /** Counts of the product: rollups and what is not folded yet, and by type. */
  counted: number
  byType: number
  /** Of the tables. */
  inBlocks: number
  ids: number
  last: number
}

function completed<T>(sliced: Sliced<T>): T {
  for (;;) {
    const slice = sliced.next()
    if (slice.done) return slice.value
  }
}

const tables = `SELECT
  (SELECT coalesce(sum(events), 0) FROM event_block WHERE place >> 36 = ?1) AS "inBlocks",
  (SELECT count(*) FROM event_id WHERE ${ofOrg('?1')}) AS ids,
  (SELECT last_seq FROM event_org WHERE num = ?1) AS last`

const fullRange = { sinceMs: 0, untilMs: null, rowsMax: 1 }

function snapshot(db: Database, num: number, orgId: string): Snapshot {
  return inSnapshot(db, () => {
    const totals = db.query<Omit<Snapshot, 'counted' | 'byType'>, [number]>(tables).get(num)!
    const { total } = completed(readMetrics(db, num, { orgId, ...fullRange }))
    const overview = completed(readOverview(db, num))
    const byType = Object.values(overview.byType).reduce((sum, count) => sum + count, 0)
    return { ...totals, counted: total, byType }
  })
}

const connectMs = 30_000

/** Waits for a server that a fault has just killed. */
function connect(url: string): Database {
  for (const endMs = performance.now() + connectMs; ;) {
    try {
      return openConnection({ url, node: 'snapshots', schema: 'sightglass', statementTimeoutMs: 30_000 })
    } catch (error) {
      const isAway = error instanceof StoreError && error.kind === 'unavailable'
      if (!isAway || performance.now() > endMs) throw error
      Bun.sleepSync(50)
    }
  }
}

/** Again after a lost connection: what a fault interrupts is no snapshot. */
function readAll(url: string, count: number): { differ: Snapshot[]; first: number; last: number } {
  const db = connect(url)
  const differ: Snapshot[] = []
  let first = -1
  let last = 0
  for (let read = 0; read < count;) {
    try {
      const org = db.query<{ num: number; orgId: string }, []>(
        'SELECT num, org_id AS "orgId" FROM event_org ORDER BY last_seq DESC LIMIT 1',
      )
      const { num, orgId } = org.get() ?? { num: 0, orgId: '' }
      if (num === 0) continue
      const result = snapshot(db, num, orgId)
      if (first < 0) first = result.ids
      last = result.ids
      if (new Set(Object.values(result)).size > 1) differ.push(result)
      read++
    } catch (error) {
      if (!(error instanceof StoreError) || error.kind !== 'unavailable') throw error
      Bun.sleepSync(50)
    }
  }
  db.close()
  return { differ, first, last }
}

const [, , url = '', count = '0'] = Bun.argv
const { differ, first, last } = readAll(url, Number(count))
console.log(
  `${count} snapshots from ${first} to ${last} events: counts, types, blocks, ids and the last number ` +
    `differ in ${differ.length} ${JSON.stringify(differ.slice(0, 3))}`,
)
process.exit(differ.length === 0 ? 0 : 1)
