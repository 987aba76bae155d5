/** Searches the texts of events in bounded steps. */
import { isSliceOver, type Sliced } from '../../threads/slices.ts'
import type { EventPage, EventPageQuery, StoredEvent } from '../../../contract/store.ts'
import type { EventReader } from '../engine.ts'

/** Limits of one step: events and time. `next` continues after them. */
const stepEventsMax = 50_000
const stepMs = 250
const pageEvents = 1_000
const pageBytesMax = 1024 * 1024

/** Like `page`, but the page may be short, or empty with a `next` that continues the search. */
export function* searchPage(
  events: Pick<EventReader, 'page'>,
  query: EventPageQuery,
  text: string,
  budget = { events: stepEventsMax, ms: stepMs },
): Sliced<EventPage> {
  const matches = textMatcher(text)
  const endMs = performance.now() + budget.ms
  const found: StoredEvent[] = []
  let { before, ceilingSeq } = query
  let looked = 0
  let bytes = 0
  for (;;) {
    const page = yield* events.page({
      ...query,
      limit: pageEvents,
      bytesMax: pageBytesMax,
      before,
      ceilingSeq,
    })
    ceilingSeq = page.ceilingSeq
    for (const event of page.events) {
      if (isSliceOver()) yield
      if (!matches(event.json)) continue
      found.push(event)
      bytes += Buffer.byteLength(event.json)
      if (found.length < query.limit && bytes <= (query.bytesMax ?? Infinity)) continue
      const isLast = page.next === null && event === page.events.at(-1)
      return { events: found, next: isLast ? null : positionOf(event), ceilingSeq }
    }
    looked += page.events.length
    before = page.next
    if (before === null || looked >= budget.events || performance.now() > endMs)
      return { events: found, next: before, ceilingSeq }
  }
}

function positionOf({ occurredAtMs, seq }: StoredEvent): { occurredAtMs: number; seq: number } {
  return { occurredAtMs, seq }
}

/**
 * Compares in upper case: unlike lower case it does not depend on a letter's neighbours (the Greek final sigma), so a
 * part of a text stays a part of it.
 */
export function textMatcher(part: string): (json: string) => boolean {
  const wanted = part.toUpperCase()
  const escaped = JSON.stringify(part).slice(1, -1).toUpperCase()
  return (json) => {
    // A cheap check without false negatives. Its hit may be in names of fields or in numbers.
    if (!json.toUpperCase().includes(escaped)) return false
    return holds(JSON.parse(json), wanted)
  }
}

function holds(value: unknown, wanted: string): boolean {
  if (typeof value === 'string') return value.toUpperCase().includes(wanted)
  if (typeof value !== 'object' || value === null) return false
  for (const inner of Object.values(value)) if (holds(inner, wanted)) return true
  return false
}
