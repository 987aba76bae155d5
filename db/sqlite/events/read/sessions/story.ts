/** One session with its events from the first to the last, a page of them at a time. */
import { StoreError } from '../../../../contract/errors.ts'
import type { SessionStory, SessionStoryQuery } from '../../../../contract/sessions.ts'
import type { StoredEvent } from '../../../../contract/store.ts'
import { readBlock, type OpenBlock } from '../../blocks/open-block.ts'
import type { LogView } from './log-view.ts'
import { isSliceOver, type Sliced } from '../../../threads/slices.ts'
import { isAfter, newestOfSession } from './rows.ts'
import { summaryOfRows } from './summary.ts'
import type { SessionRow } from './tally.ts'
import { sessionTexts } from './texts.ts'

/** Only the events that are shown are opened. */
export function* readStory(
  log: LogView,
  query: SessionStoryQuery & { ceilingSeq: number },
): Sliced<SessionStory | null> {
  const { sessionId, after, limit, ceilingSeq, eventsMax, bytesMax = Infinity } = query
  const found = yield* newestOfSession(log, sessionId, ceilingSeq, eventsMax)
  if (found.rows.length === 0) return null
  const rows = found.rows.toReversed().filter((row) => after === null || isAfter(row, after))
  const events = yield* openEvents(log, rows.slice(0, limit), bytesMax)
  const last = events.at(-1)
  const next =
    rows.length > events.length && last !== undefined
      ? { occurredAtMs: last.occurredAtMs, seq: last.seq }
      : null
  return { session: summaryOfRows(sessionId, found, sessionTexts(log)), events, next, ceilingSeq }
}

function* openEvents({ db }: LogView, rows: SessionRow[], bytesMax: number): Sliced<StoredEvent[]> {
  const blocks = new Map<number, OpenBlock | null>()
  const events: StoredEvent[] = []
  let bytes = 0
  for (const { zone, row } of rows) {
    if (isSliceOver()) yield
    if (!blocks.has(zone.place)) blocks.set(zone.place, readBlock(db, zone))
    const block = blocks.get(zone.place) ?? null
    if (block === null) throw new StoreError('corrupt', `block ${zone.place} is missing`)
    const event = block.event(row)
    bytes += Buffer.byteLength(event.json)
    if (events.length > 0 && bytes > bytesMax) break
    events.push(event)
  }
  return events
}
