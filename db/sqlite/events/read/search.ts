/** Looks for a text in events: pages of the engine, each event's texts compared, in bounded steps. */
import type { EventPage, EventPageQuery, StoredEvent } from '../../../contract/store.ts'
import type { EventReader } from '../engine.ts'
import { isSliceOver, type Sliced } from '../../threads/slices.ts'
import { textMatcher } from './text-matcher.ts'

/** One step looks at so many events at most, or for so long; what is not done is told by `next`. */
const stepEventsMax = 50_000
const stepMs = 250
const pageEvents = 1_000
const pageBytesMax = 1024 * 1024

/** Like `page`, but the page may come back short, or empty with a `next`: the search goes on there. */
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
