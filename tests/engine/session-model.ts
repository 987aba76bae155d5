/** The naive model of sessions: the summaries that the engine must return for events in arrival order. */
import { expect } from 'bun:test'
import type { Session, SessionPageQuery } from '../../db/contract/sessions.ts'
import type { EventFilter, EventRecord } from '../../db/contract/store.ts'
import { noon } from '../store/make.ts'
import type { Engine } from './subject.ts'

interface Arrived {
  event: EventRecord
  arrival: number
}

const newestFirst = (a: Arrived, b: Arrived) =>
  b.event.occurredAtMs - a.event.occurredAtMs || b.arrival - a.arrival

const ladder = ['detected', 'declared', 'verified', 'linked']

function countBy(events: EventRecord[], keyOf: (event: EventRecord) => string): { [key: string]: number } {
  const counts: { [key: string]: number } = {}
  for (const event of events) counts[keyOf(event)] = (counts[keyOf(event)] ?? 0) + 1
  return counts
}

function summary(id: string, sessionEvents: EventRecord[], eventsMax: number): Session {
  const events = sessionEvents.slice(0, eventsMax) // newest first
  const oldestFirst = events.toReversed()
  const heightOf = ({ trust }: EventRecord) => ladder.indexOf(trust ?? '')
  const agentEvents = oldestFirst.filter(
    (event) => event.class !== null || event.vendor !== null || event.trust !== null,
  )
  const best = agentEvents.reduce<EventRecord | null>(
    (highestEvent, event) =>
      highestEvent === null || heightOf(event) >= heightOf(highestEvent) ? event : highestEvent,
    null,
  )
  return {
    id,
    siteIds: [...new Set(oldestFirst.map(({ siteId }) => siteId))],
    firstSeenAtMs: oldestFirst[0]!.occurredAtMs,
    lastSeenAtMs: events[0]!.occurredAtMs,
    events: events.length,
    isCut: sessionEvents.length > eventsMax,
    class: best?.class ?? null,
    vendor: best?.vendor ?? null,
    trust: best?.trust ?? null,
    byPillar: countBy(events, ({ type }) => type.split('.')[0]!),
    byOutcome: countBy(events, ({ outcome }) => outcome),
  }
}

interface Sorted {
  newestFirst: EventRecord[]
  bySession: Map<string, EventRecord[]> // each newest first
}

function sort(events: EventRecord[]): Sorted {
  const arrived = events.map((event, arrival) => ({ event, arrival })).toSorted(newestFirst)
  const sorted: Sorted = { newestFirst: arrived.map(({ event }) => event), bySession: new Map() }
  for (const event of sorted.newestFirst) {
    const sessionEvents = sorted.bySession.get(event.sessionId)
    if (sessionEvents === undefined) sorted.bySession.set(event.sessionId, [event])
    else sessionEvents.push(event)
  }
  return sorted
}

type Matches = (event: EventRecord) => boolean

/** Ordered by their newest matching event, newest first, and counting the newest `eventsMax` of all their events. */
function expectedOf(
  { newestFirst: sorted, bySession }: Sorted,
  matches: Matches,
  eventsMax: number,
): Session[] {
  const ids = new Set(sorted.filter(matches).map(({ sessionId }) => sessionId))
  return Array.from(ids, (id) => summary(id, bySession.get(id)!, eventsMax))
}

export function sessionsOf(events: EventRecord[], matches: Matches, eventsMax: number): Session[] {
  return expectedOf(sort(events), matches, eventsMax)
}

/** Walks to the end, or until `pagesMax` pages were read. */
export function walkSessions(
  { reader }: Engine,
  query: Pick<SessionPageQuery, 'orgId' | 'filter' | 'limit' | 'eventsMax'>,
  { budgetMs = 60_000, pagesMax = Infinity } = {},
): Session[] {
  const sessions: Session[] = []
  let position: SessionPageQuery['before'] = null
  let ceilingSeq: number | null = null
  for (let pages = 0; pages < pagesMax; pages++) {
    const page: ReturnType<typeof reader.sessionPage> = reader.sessionPage({
      ...query,
      before: position,
      ceilingSeq,
      budgetMs,
    })
    expect(page.sessions.length).toBeLessThanOrEqual(query.limit)
    sessions.push(...page.sessions)
    if (page.next === null) break
    position = page.next
    ceilingSeq = page.ceilingSeq
  }
  return sessions
}

const questions: [filter: EventFilter, matches: (event: EventRecord) => boolean][] = [
  [{}, () => true],
  [
    { outcomes: ['blocked'], siteIds: ['shop'] },
    (event) => event.outcome === 'blocked' && event.siteId === 'shop',
  ],
  [
    { sinceMs: noon + 1, untilMs: noon + 3_600_001 },
    (event) => event.occurredAtMs > noon && event.occurredAtMs <= noon + 3_600_000,
  ],
]

/** Compares pages and events of sessions with the model. */
export function agreesInSessions(subject: Engine, orgId: string, events: EventRecord[]): void {
  const sorted = sort(events)
  for (const [filter, matches] of questions) {
    for (const [limit, eventsMax] of [
      [2, 10_000],
      [50, 7],
    ] as const) {
      const expected = expectedOf(sorted, matches, eventsMax)
      expect(walkSessions(subject, { orgId, filter, limit, eventsMax })).toEqual(expected)
    }
  }
  const newest = sorted.newestFirst[0]
  if (newest === undefined) return
  const { sessionId } = newest
  const sessionEvents = sorted.bySession.get(sessionId)!
  const query = { orgId, sessionId, after: null, ceilingSeq: null, limit: 5, eventsMax: 7 }
  const story = subject.reader.sessionStory(query)
  expect(story?.session).toEqual(summary(sessionId, sessionEvents, 7))
  const expectedEvents = sessionEvents.slice(0, 7).toReversed().slice(0, 5)
  expect(story?.events.map(({ json }) => json)).toEqual(expectedEvents.map(({ json }) => json))
  expect(story?.next === null).toBe(sessionEvents.length <= 5)
}
