/** The naive model of sessions: what the engine must tell of them, from the events in their order of arrival. */
import { expect } from 'bun:test'
import type { Session, SessionPageQuery } from '../../db/session-store.ts'
import type { EventFilter, EventRecord } from '../../db/store.ts'
import { noon } from '../store/make.ts'
import type { Engine } from './subject.ts'

interface Arrived {
  event: EventRecord
  arrival: number
}

const newestFirst = (a: Arrived, b: Arrived) =>
  b.event.occurredAtMs - a.event.occurredAtMs || b.arrival - a.arrival

const ladder = ['detected', 'declared', 'verified', 'linked']

function tally(events: EventRecord[], keyOf: (event: EventRecord) => string): { [key: string]: number } {
  const counts: { [key: string]: number } = {}
  for (const event of events) counts[keyOf(event)] = (counts[keyOf(event)] ?? 0) + 1
  return counts
}

function summary(id: string, all: EventRecord[], eventsMax: number): Session {
  const events = all.slice(0, eventsMax) // newest first
  const oldestFirst = events.toReversed()
  const heightOf = ({ trust }: EventRecord) => ladder.indexOf(trust ?? '')
  const named = oldestFirst.filter((one) => one.class !== null || one.vendor !== null || one.trust !== null)
  const best = named.reduce<EventRecord | null>(
    (found, one) => (found === null || heightOf(one) >= heightOf(found) ? one : found),
    null,
  )
  return {
    id,
    siteIds: [...new Set(oldestFirst.map(({ siteId }) => siteId))],
    firstSeenAtMs: oldestFirst[0]!.occurredAtMs,
    lastSeenAtMs: events[0]!.occurredAtMs,
    events: events.length,
    isCut: all.length > eventsMax,
    class: best?.class ?? null,
    vendor: best?.vendor ?? null,
    trust: best?.trust ?? null,
    byPillar: tally(events, ({ type }) => type.split('.')[0]!),
    byOutcome: tally(events, ({ outcome }) => outcome),
  }
}

/** By their newest matching event, newest first; counted are the newest `eventsMax` of all their events. */
export function sessionsOf(
  events: EventRecord[],
  matches: (event: EventRecord) => boolean,
  eventsMax: number,
): Session[] {
  const sorted = events.map((event, arrival) => ({ event, arrival })).toSorted(newestFirst)
  const bySession = new Map<string, EventRecord[]>()
  for (const { event } of sorted) {
    const known = bySession.get(event.sessionId)
    if (known === undefined) bySession.set(event.sessionId, [event])
    else known.push(event)
  }
  const ids = new Set(sorted.filter(({ event }) => matches(event)).map(({ event }) => event.sessionId))
  return Array.from(ids, (id) => summary(id, bySession.get(id)!, eventsMax))
}

/** Walks to the end, or until `pagesMax` pages were read. */
export function walkSessions(
  { reader }: Engine,
  query: Pick<SessionPageQuery, 'orgId' | 'filter' | 'limit' | 'eventsMax'>,
  { budgetMs = 60_000, pagesMax = Infinity } = {},
): Session[] {
  const sessions: Session[] = []
  let before: SessionPageQuery['before'] = null
  let ceilingSeq: number | null = null
  for (let pages = 0; pages < pagesMax; pages++) {
    const page: ReturnType<typeof reader.sessionPage> = reader.sessionPage({
      ...query,
      before,
      ceilingSeq,
      budgetMs,
    })
    expect(page.sessions.length).toBeLessThanOrEqual(query.limit)
    sessions.push(...page.sessions)
    if (page.next === null) break
    before = page.next
    ceilingSeq = page.ceilingSeq
  }
  return sessions
}

const questions: [filter: EventFilter, matches: (event: EventRecord) => boolean][] = [
  [{}, () => true],
  [{ outcomes: ['blocked'], siteIds: ['shop'] }, (one) => one.outcome === 'blocked' && one.siteId === 'shop'],
  [
    { sinceMs: noon + 1, untilMs: noon + 3_600_001 },
    (one) => one.occurredAtMs > noon && one.occurredAtMs <= noon + 3_600_000,
  ],
]

/** Pages and stories of sessions against the model. */
export function agreesInSessions(subject: Engine, orgId: string, events: EventRecord[]): void {
  for (const [filter, matches] of questions) {
    for (const [limit, eventsMax] of [
      [2, 10_000],
      [50, 7],
    ] as const) {
      const expected = sessionsOf(events, matches, eventsMax)
      expect(walkSessions(subject, { orgId, filter, limit, eventsMax })).toEqual(expected)
    }
  }
  const [first] = sessionsOf(events, () => true, 7)
  if (first === undefined) return
  const own = events
    .map((event, arrival) => ({ event, arrival }))
    .filter(({ event }) => event.sessionId === first.id)
    .toSorted(newestFirst)
    .slice(0, 7)
  const asked = { orgId, sessionId: first.id, after: null, ceilingSeq: null, limit: 5, eventsMax: 7 }
  const story = subject.reader.sessionStory(asked)
  expect(story?.session).toEqual(first)
  expect(story?.events.map(({ json }) => json)).toEqual(
    own
      .toReversed()
      .slice(0, 5)
      .map(({ event }) => event.json),
  )
  expect(story?.next === null).toBe(own.length <= 5)
}
