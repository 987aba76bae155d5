/** The reading half of the event engine, on a connection of its own; every call sees one moment of the log. */
import type { Database } from 'bun:sqlite'
import { StoreError } from '../../errors.ts'
import type { EventPageQuery, RollupRepair, StoredEvent } from '../../store.ts'
import type { SessionStory } from '../../session-store.ts'
import type { EventReader } from '../event-engine.ts'
import { readBreakdown } from './breakdown.ts'
import { readClassVendor } from './class-vendor.ts'
import { readDistinct } from './distinct.ts'
import { readDurations } from './durations.ts'
import { findById } from './by-id.ts'
import { countEvents } from './count.ts'
import { firstHour } from './drop-rollups.ts'
import { filterClauses, keyCodes } from './filter-codes.ts'
import { fingerprints } from './fingerprint.ts'
import { keepColumns } from './kept-columns.ts'
import { keepHours } from './kept-hours.ts'
import { keepIds } from './kept-ids.ts'
import { keepMatches } from './kept-matches.ts'
import { keepSketches } from './kept-sketches.ts'
import { readMetrics, readMetricsText } from './metrics.ts'
import { storedLastSeq } from './org-state.ts'
import { readOverview } from './overview.ts'
import { readPage } from './page.ts'
import { recounting } from './recount.ts'
import { readSeed } from './seed.ts'
import { listSessions } from '../sessions/page.ts'
import { readStory } from '../sessions/story.ts'
import { cutoffForBytes, eventBytes } from './size.ts'
import { readTail } from './tail.ts'
import { verifyEvents } from './verify.ts'

const noSums = { total: 0, byType: {}, byOutcome: {}, byHour: [], truncated: false }

export function compactEventReader(db: Database, deadlineMs: number, fingerprintBits = 53): EventReader {
  const seed = readSeed(db)
  const print = fingerprints(seed.ids, fingerprintBits)
  for (const keep of [keepColumns, keepIds, keepMatches, keepHours, keepSketches]) keep(db)
  const findOrg = db.query<{ num: number }, [string]>('SELECT num FROM event_org WHERE org_id = ?')

  /** One read transaction, so that blocks, indexes and rollups belong together; `none` when nothing was ever stored. */
  function read<T>(orgId: string, none: T, work: (org: number) => T): T {
    db.query('BEGIN').run()
    try {
      const org = findOrg.get(orgId)
      return org === null ? none : work(org.num)
    } finally {
      if (db.inTransaction) db.query('COMMIT').run()
    }
  }

  const except = (org: number, { exceptKeys = [] }: { exceptKeys?: string[] }) =>
    keyCodes(db, org, seed.values, exceptKeys)
  const watch = () => watchDeadline(deadlineMs)
  return {
    page: (query: EventPageQuery) =>
      read(query.orgId, { events: [], next: null, ceilingSeq: query.ceilingSeq ?? 0 }, (org) => {
        const ceilingSeq = query.ceilingSeq ?? storedLastSeq(db, org)
        const clauses = filterClauses(db, org, seed.values, query.filter)
        return readPage(db, org, clauses, query, ceilingSeq, watch())
      }),
    sessionPage: (query) =>
      read(query.orgId, { sessions: [], next: null, ceilingSeq: query.ceilingSeq ?? 0 }, (org) => {
        const log = { db, org, hashSeed: seed.values, inTime: watch() }
        return listSessions(log, { ...query, ceilingSeq: query.ceilingSeq ?? storedLastSeq(db, org) })
      }),
    sessionStory: (query) =>
      read<SessionStory | null>(query.orgId, null, (org) => {
        const log = { db, org, hashSeed: seed.values, inTime: watch() }
        return readStory(log, { ...query, ceilingSeq: query.ceilingSeq ?? storedLastSeq(db, org) })
      }),
    byId: (orgId, id) => read<StoredEvent | null>(orgId, null, (org) => findById(db, org, print, id)),
    count: (query) =>
      read(query.orgId, { count: 0, lastSeq: query.ceilingSeq }, (org) =>
        countEvents(db, org, filterClauses(db, org, seed.values, query.filter), query, except(org, query)),
      ),
    tail: (query) =>
      read(query.orgId, { events: [], lastSeq: query.afterSeq }, (org) => {
        const clauses = filterClauses(db, org, seed.values, query.filter)
        return readTail(db, org, clauses, { ...query, exceptKeys: except(org, query) }, watch())
      }),
    lastSeq: (orgId) => read(orgId, 0, (org) => storedLastSeq(db, org)),
    metrics: (query) => read(query.orgId, { ...noSums, rows: [] }, (org) => readMetrics(db, org, query)),
    metricsText: (query) =>
      read(query.orgId, { ...noSums, rowsJson: '[]' }, (org) => readMetricsText(db, org, query)),
    breakdown: (query) => read(query.orgId, { rows: [] }, (org) => readBreakdown(db, org, query)),
    classVendor: (query) => read(query.orgId, { rows: [] }, (org) => readClassVendor(db, org, query)),
    distinct: (query) => read(query.orgId, { rows: [] }, (org) => readDistinct(db, org, query)),
    durations: (query) => read(query.orgId, { rows: [] }, (org) => readDurations(db, org, query)),
    recount({ orgId, hourStartMs }) {
      const { step } = recounting(hourStartMs)
      return sliceBySlice(() => read<RollupRepair[] | null>(orgId, [], (org) => step(db, org)))
    },
    eventBytes: (orgId) => read(orgId, 0, (org) => eventBytes(db, org)),
    cutoff: ({ orgId, bytesMax }) =>
      read<number | null>(orgId, null, (org) => cutoffForBytes(db, org, bytesMax)),
    firstHour: (orgId) => read<number | null>(orgId, null, (org) => firstHour(db, org)),
    verify: () => verifyEvents(db, fingerprintBits),
    overview: (orgId) => read(orgId, { total: 0, byType: {} }, (org) => readOverview(db, org)),
  }
}

/** The function it returns throws when the time is up. */
function watchDeadline(ms: number): () => void {
  const deadline = performance.now() + ms
  return () => {
    if (performance.now() > deadline) throw new StoreError('deadline', `a read took longer than ${ms} ms`)
  }
}

/** Asks until there is an answer, and lets the thread's next message come between two slices. */
async function sliceBySlice<T>(slice: () => T | null): Promise<T> {
  for (;;) {
    const answer = slice()
    if (answer !== null) return answer
    await Bun.sleep(0)
  }
}
