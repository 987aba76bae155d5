/** The reading half of the event engine, on its own connection. Every call reads one snapshot. */
import type { Database } from '../database.ts'
import type { EventPageQuery, RollupRepair, StoredEvent, TrustReached } from '../../contract/store.ts'
import type { SessionStory } from '../../contract/sessions.ts'
import type { EventIds, EventReader } from './engine.ts'
import { readAgents, readBreakdown, readClassVendor } from './read/breakdown.ts'
import { cacheSketches, readDistinct, readDurations } from './read/sketches.ts'
import { countEvents, readTail } from './read/arrivals.ts'
import { cutoffForBytes, eventBytes, firstHour } from './delete/expire.ts'
import { filterClauses, keyCodes } from './index/filter-codes.ts'
import { readSeed } from './dedupe/fingerprints.ts'
import { cacheColumns, storedLastSeq } from './blocks/block-table.ts'
import { cacheDays } from './rollups/days.ts'
import { cacheHours } from './rollups/hours.ts'
import { cacheMatches, cacheRows } from './index/walk.ts'
import { nothingExplored } from '../../contract/explore.ts'
import { readExplore } from './read/explore/explore.ts'
import { readHistogram } from './read/histogram.ts'
import { noSeries, readSeries } from './read/series/series.ts'
import { readNewValues } from './read/new-values.ts'
import { noTop, readTop } from './read/top.ts'
import { noRobotsTest, readRobotsTest } from './read/robots-test.ts'
import { readMetrics, readMetricsText, readOverview } from './read/metrics.ts'
import { readPage } from './read/page.ts'
import { recounting } from './rollups/recount.ts'
import { listSessions, readStory } from './read/sessions/page.ts'
import { readTrustReached } from './read/sessions/trust-reached.ts'
import { atOnce, type Sliced } from '../slices.ts'
import { readFilteredCounts } from './read/filtered-counts.ts'
import { verifyEvents } from './verify/verify.ts'

const noSums = { total: 0, byType: {}, byOutcome: {}, byHour: [], truncated: false }

/** `sharedWith` is another connection of the same thread, whose caches of blocks this one shares. */
export function compactEventReader(db: Database, ids: EventIds, sharedWith = db): EventReader {
  const seed = readSeed(db)
  // Blocks and sealed indexes are the same in every snapshot; counts differ, and sums of days check theirs.
  for (const keep of [cacheColumns, cacheMatches, cacheRows, cacheDays]) keep(db, sharedWith)
  if (sharedWith === db) for (const keep of [cacheHours, cacheSketches]) keep(db)
  const { inSlices, read } = snapshots(db)
  const except = (org: number, { exceptKeys = [] }: { exceptKeys?: string[] }) =>
    keyCodes(db, org, seed.values, exceptKeys)
  return {
    page: (query: EventPageQuery) =>
      inSlices(query.orgId, { events: [], next: null, ceilingSeq: query.ceilingSeq ?? 0 }, (org) => {
        const ceilingSeq = query.ceilingSeq ?? storedLastSeq(db, org)
        const clauses = filterClauses(db, org, seed.values, query.filter)
        return readPage(db, org, clauses, query, ceilingSeq)
      }),
    sessionPage: (query) =>
      inSlices(query.orgId, { sessions: [], next: null, ceilingSeq: query.ceilingSeq ?? 0 }, (org) => {
        const log = { db, org, hashSeed: seed.values }
        return listSessions(log, { ...query, ceilingSeq: query.ceilingSeq ?? storedLastSeq(db, org) })
      }),
    sessionStory: (query) =>
      inSlices<SessionStory | null>(query.orgId, null, (org) => {
        const log = { db, org, hashSeed: seed.values }
        return readStory(log, { ...query, ceilingSeq: query.ceilingSeq ?? storedLastSeq(db, org) })
      }),
    byId: ({ orgId, id }) => read<StoredEvent | null>(orgId, null, (org) => ids.find(org, id)),
    count: (query) =>
      inSlices(query.orgId, { count: 0, lastSeq: query.ceilingSeq }, (org) =>
        countEvents(db, org, filterClauses(db, org, seed.values, query.filter), query, except(org, query)),
      ),
    tail: (query) =>
      inSlices(query.orgId, { events: [], lastSeq: query.afterSeq }, (org) => {
        const clauses = filterClauses(db, org, seed.values, query.filter)
        return readTail(db, org, clauses, { ...query, exceptKeys: except(org, query) })
      }),
    lastSeq: (orgId) => read(orgId, 0, (org) => storedLastSeq(db, org)),
    metrics: (query) => inSlices(query.orgId, { ...noSums, rows: [] }, (org) => readMetrics(db, org, query)),
    metricsText: (query) =>
      inSlices(query.orgId, { ...noSums, rowsJson: '[]' }, (org) => readMetricsText(db, org, query)),
    breakdown: (query) => inSlices(query.orgId, { rows: [] }, (org) => readBreakdown(db, org, query)),
    classVendor: (query) => inSlices(query.orgId, { rows: [] }, (org) => readClassVendor(db, org, query)),
    agents: (query) => inSlices(query.orgId, { rows: [] }, (org) => readAgents(db, org, query)),
    ...columnQueries(db, seed.values, inSlices, except),
    distinct: (query) => inSlices(query.orgId, { rows: [] }, (org) => readDistinct(db, org, query)),
    durations: (query) => inSlices(query.orgId, { rows: [] }, (org) => readDurations(db, org, query)),
    trustReached: (query) =>
      inSlices<TrustReached | null>(query.orgId, { rows: [], complete: true }, (org) =>
        readTrustReached({ db, org, hashSeed: seed.values }, query),
      ),
    *recount({ orgId, hourStartMs }) {
      const { step } = recounting(hourStartMs)
      for (;;) {
        const repairs = read<RollupRepair[] | null>(orgId, [], (org) => step(db, org))
        if (repairs !== null) return repairs
        yield // each step has its own transaction, because all steps of a busy day take long
      }
    },
    eventBytes: (orgId) => inSlices(orgId, 0, (org) => eventBytes(db, org)),
    cutoff: ({ orgId, bytesMax }) =>
      inSlices<number | null>(orgId, null, (org) => cutoffForBytes(db, org, bytesMax)),
    firstHour: (orgId) => inSlices<number | null>(orgId, null, (org) => firstHour(db, org)),
    verify: () => verifyEvents(db, ids),
    overview: (orgId) => inSlices(orgId, { total: 0, byType: {} }, (org) => readOverview(db, org)),
  }
}

type InSlices = ReturnType<typeof snapshots>['inSlices']
type Except = (org: number, range: { exceptKeys?: string[] }) => ReadonlySet<number>

/** The queries under any filter, which read columns rather than rollups. */
function columnQueries(
  db: Database,
  hashSeed: number,
  inSlices: InSlices,
  except: Except,
): Pick<
  EventReader,
  'filteredCounts' | 'histogram' | 'series' | 'top' | 'explore' | 'newValues' | 'robotsTest'
> {
  return {
    filteredCounts: (query) =>
      inSlices(
        query.orgId,
        { rows: [], breakdowns: query.breakdowns.map(() => []), expired: 0, complete: true },
        (org) => readFilteredCounts(db, org, hashSeed, query, except(org, query.arrivals ?? {})),
      ),
    histogram: (query) =>
      inSlices(query.orgId, { rows: [], exactSinceMs: query.edges[0] ?? 0 }, (org) =>
        readHistogram(db, org, hashSeed, query),
      ),
    series: (query) => inSlices(query.orgId, noSeries(query), (org) => readSeries(db, org, hashSeed, query)),
    top: (query) => inSlices(query.orgId, noTop(query), (org) => readTop(db, org, hashSeed, query)),
    explore: (query) =>
      inSlices(query.orgId, nothingExplored(query, true), (org) => readExplore(db, org, hashSeed, query)),
    robotsTest: (query) =>
      inSlices(query.orgId, noRobotsTest(query), (org) => readRobotsTest(db, org, hashSeed, query)),
    newValues: (query) =>
      inSlices(query.orgId, { values: [] }, (org) =>
        readNewValues({ db, org, hashSeed }, query, except(org, query.arrivals)),
      ),
  }
}

/** Read transactions of an organization, so that blocks, indexes and rollups are consistent. */
function snapshots(db: Database) {
  const findOrg = db.query<{ num: number }, [string]>('SELECT num FROM event_org WHERE org_id = ?')

  /** `none` for an organization without events. */
  function* inSlices<T>(orgId: string, emptyResult: T, work: (org: number) => Sliced<T>): Sliced<T> {
    db.query(db.dialect.beginRead).run()
    try {
      const org = findOrg.get(orgId)
      return org === null ? emptyResult : yield* work(org.num)
    } finally {
      if (db.inTransaction) db.query('COMMIT').run()
    }
  }

  /** The same for short queries. */
  function read<T>(orgId: string, emptyResult: T, work: (org: number) => T): T {
    const whole = function* (org: number) {
      return work(org)
    }
    return atOnce(inSlices(orgId, emptyResult, whole))
  }

  return { inSlices, read }
}
