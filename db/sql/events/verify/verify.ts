/** Verifies the event tables against each other: blocks, terms, ids, segment indexes, rollups. */
import { termTexts } from '../blocks/fields.ts'
import { verifyBlocks, type Check, type Report, type VerifiedIds, type VerifiedOrg } from './blocks.ts'
import { verifySegments } from './indexes.ts'
import { columnCount } from '../blocks/block.ts'
import { firstPlace, zonesFrom, type Zone } from '../blocks/block-table.ts'
import { rollupChecksums } from '../rollups/checksums.ts'
import { dayOf } from '../rollups/counts.ts'
import { countFolded, dayName, recountingWrong, rowName } from '../rollups/recount.ts'
import { wrongDays } from '../rollups/stored-days.ts'
import { verifyAccess } from '../../access/access-logs.ts'
import { inSnapshot, type Database } from '../../database.ts'
import type { EventFault, EventVerdict } from '../../../contract/store.ts'

/** Faults listed per organization. The first ones locate the damage, and thousands would hide it. */
const faultsMax = 100
const fileFaultsMax = 20

/** Reads several snapshots in turn, so that a running writer is not blocked and its changes are no faults. */
export function verifyEvents(db: Database, ids: VerifiedIds): EventVerdict {
  const check = verifyInSlices(db, ids)
  for (;;) {
    const slice = check.next()
    if (slice.done) return slice.value
  }
}

/** Only tests use other sizes than the measured ones. */
export interface SliceSizes {
  verifiedBlocks?: number
  countedBlocks?: number
}

/** The same. No transaction is open at a yield. */
export function* verifyInSlices(db: Database, ids: VerifiedIds, sizes: SliceSizes = {}): Check<EventVerdict> {
  const verdict: EventVerdict = { orgs: [], faults: [] }
  const orgs = db.query<{ num: number; orgId: string }, []>(
    'SELECT num, org_id AS orgId FROM event_org ORDER BY org_id',
  )
  for (const { num, orgId } of orgs.all()) {
    const faults: EventFault[] = []
    const report: Report = (place, problem) => {
      if (faults.length < faultsMax) faults.push({ orgId, place, problem })
    }
    const counted = (events: number) => void verdict.orgs.push({ orgId, events })
    try {
      yield* inSnapshots(db, verifyOrg(db, num, { ids, report, counted, sizes }))
    } catch (error) {
      // Damage that makes the database fail: its message is all that is known.
      report('the event tables', `cannot be read: ${error instanceof Error ? error.message : String(error)}`)
    }
    verdict.faults.push(...faults)
  }
  verdict.faults.push(...accessFaults(db), ...structureFaults(db))
  return verdict
}

/** Runs each slice of a check in a read transaction. */
function* inSnapshots<T>(db: Database, check: Check<T>): Check<T> {
  for (;;) {
    db.query(db.dialect.beginRead).run()
    let slice: IteratorResult<void, T>
    try {
      slice = check.next()
    } finally {
      if (db.inTransaction) db.query('COMMIT').run()
    }
    if (slice.done) return slice.value
    yield
  }
}

interface OrgCheck {
  ids: VerifiedIds
  report: Report
  counted(events: number): void
  sizes: SliceSizes
}

function* verifyOrg(db: Database, num: number, { ids, report, counted, sizes }: OrgCheck): Check {
  const org = readOrg(db, num)
  const damaged = yield* verifyBlocks(db, org, report, sizes.verifiedBlocks)
  counted(yield* verifyRollups(db, num, damaged, report, sizes.countedBlocks))
  if (damaged.size > 0) return
  yield* ids.verify(num, report)
  yield* verifySegments(db, org, report)
}

/** Of the access logs, whose rows are few: in one snapshot. */
function accessFaults(db: Database): EventFault[] {
  try {
    return inSnapshot(db, () => verifyAccess(db))
  } catch (error) {
    const problem = `cannot be read: ${error instanceof Error ? error.message : String(error)}`
    return [{ orgId: null, place: 'the access logs', problem }]
  }
}

function structureFaults(db: Database): EventFault[] {
  try {
    return db.dialect
      .structureFaults(db, fileFaultsMax)
      .map((problem) => ({ orgId: null, place: 'the database file', problem }))
  } catch (error) {
    const problem = `cannot be checked: ${error instanceof Error ? error.message : String(error)}`
    return [{ orgId: null, place: 'the database file', problem }]
  }
}

function readOrg(db: Database, num: number): VerifiedOrg {
  const row = db
    .query<{ segments: number }, [number]>('SELECT segments FROM event_org WHERE num = ?')
    .get(num)
  const terms = Array.from({ length: columnCount }, (_, index) => termTexts(db, num, index))
  return { num, segments: row?.segments ?? 0, terms }
}

/** Compares the rollups with a recount of their rows. */
const zonesAtOnce = 64

/** Returns the number of events when they were compared, without those in damaged blocks. */
function* verifyRollups(
  db: Database,
  org: number,
  damaged: ReadonlySet<number>,
  report: Report,
  blocksMax?: number,
): Check<number> {
  const zonesAfter = (_db: Database, _org: number, seq: number) => wholeBlocks(db, org, seq, damaged)
  const wholeRange = { fromMs: -Infinity, untilMs: Infinity, zonesAfter }
  const counting = countFolded(wholeRange, rollupChecksums, blocksMax)
  const sums = yield* lastSlice(() => counting.step(db, org))
  const wrong = sums.wrongRows(db, org)
  const events = counting.rest(db, org).events()
  let faultCount = 0
  for (const ofDay of Map.groupBy(wrong, ({ hour }) => dayOf(hour)).values()) {
    if (faultCount >= faultsMax) break
    yield
    const recount = recountingWrong(ofDay, zonesAfter, blocksMax)
    for (const { row, difference } of yield* lastSlice(() => recount.step(db, org))) {
      report(rowName(row), difference > 0 ? `says ${difference} too few` : `says ${-difference} too many`)
      faultCount++
    }
  }
  verifyTotals(db, org, report)
  for (const { member, day } of yield* wrongDays(db, org))
    report(dayName(member, day), 'differ from its hours')
  return events
}

/** The result of the last slice, which is the first that is not null. */
function* lastSlice<T>(slice: () => T | null): Check<T> {
  for (;;) {
    const result = slice()
    if (result !== null) return result
    yield
  }
}

/** In storage order, ignoring the indexes. */
function* wholeBlocks(
  db: Database,
  org: number,
  afterSeq: number,
  damaged: ReadonlySet<number>,
): Generator<Zone> {
  for (let place = firstPlace(db, org, afterSeq + 1); ;) {
    const zones = zonesFrom(db, org, place, zonesAtOnce)
    yield* zones.filter((zone) => !damaged.has(zone.place))
    if (zones.length < zonesAtOnce) return
    place = zones.at(-1)!.place + 1
  }
}

/** Totals by type count expired events too, like the rollups. */
function verifyTotals(db: Database, org: number, report: Report): void {
  const wrong = db
    .query<{ type: number }, [number]>(
      `SELECT type FROM (
         SELECT type, sum(live + expired) AS n FROM rollup_metric WHERE org = ?1 GROUP BY type
         UNION ALL SELECT type, -events FROM event_type_total WHERE org = ?1
       ) AS totals GROUP BY type HAVING sum(n) <> 0`,
    )
    .all(org)
  if (wrong.length > 0) report('the totals by type', `differ from the rollups for ${wrong.length} types`)
}
