/** One session with its events from the first to the last, a page of them at a time. */
import { StoreError } from '../../errors.ts'
import type { SessionStory, SessionStoryQuery } from '../../session-store.ts'
import type { EventPosition, StoredEvent } from '../../store.ts'
import { readBlock, type OpenBlock } from '../events/open-block.ts'
import type { LogView } from './log-view.ts'
import { newestOfSession } from './rows.ts'
import { summaryOfRows } from './summary.ts'
import type { SessionRow } from './tally.ts'
import { sessionTexts } from './texts.ts'

/** Only the events that are shown are opened. */
export function readStory(
  log: LogView,
  { sessionId, after, limit, ceilingSeq, eventsMax }: SessionStoryQuery & { ceilingSeq: number },
): SessionStory | null {
  const found = newestOfSession(log, sessionId, ceilingSeq, eventsMax)
  if (found.rows.length === 0) return null
  const rows = found.rows.toReversed().filter((row) => after === null || isAfter(row, after))
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  const next = rows.length > limit && last !== undefined ? { occurredAtMs: last.at, seq: last.seq } : null
  return {
    session: summaryOfRows(sessionId, found, sessionTexts(log)),
    events: openEvents(log, shown),
    next,
    ceilingSeq,
  }
}

function isAfter({ at, seq }: SessionRow, after: EventPosition): boolean {
  return at > after.occurredAtMs || (at === after.occurredAtMs && seq > after.seq)
}

function openEvents({ db }: LogView, rows: SessionRow[]): StoredEvent[] {
  const blocks = new Map<number, OpenBlock | null>()
  return rows.map(({ zone, row }) => {
    if (!blocks.has(zone.place)) blocks.set(zone.place, readBlock(db, zone))
    const block = blocks.get(zone.place) ?? null
    if (block === null) throw new StoreError('corrupt', `block ${zone.place} is missing`)
    return block.event(row)
  })
}
