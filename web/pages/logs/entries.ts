/** The rows of Logs: arrivals on top, history below, no event twice. */
import { eventTimeMs } from '../../text/event-time.ts'
import type { ReceivedEvent, TraceEvent } from '../../api/api.ts'

export interface Entry {
  id: string
  occurredAtMs: number
  receivedAtMs: number
  atMs: number // by which it is listed
  alone: boolean // arrived by the stream with few others, so its animation is visible
  event: TraceEvent
}

export interface EntryList {
  entries: Entry[] // what the table shows, top first
  ids: Set<string>
}

export const emptyList: EntryList = { entries: [], ids: new Set() }

function entryOf({ receivedAt, event }: ReceivedEvent, alone: boolean): Entry {
  const occurredAtMs = Date.parse(event.occurredAt)
  const receivedAtMs = Date.parse(receivedAt)
  const atMs = eventTimeMs(occurredAtMs, receivedAtMs)
  return { id: event.id, occurredAtMs, receivedAtMs, atMs, alone, event }
}

/** Those of `received` that the list does not hold yet, each once, in the order given. */
function newOnes(ids: Set<string>, received: ReceivedEvent[], alone: boolean): Entry[] {
  const fresh: Entry[] = []
  for (const item of received) {
    if (ids.has(item.event.id)) continue
    ids.add(item.event.id)
    fresh.push(entryOf(item, alone))
  }
  return fresh
}

/** Appends a page of history, newest first. */
export function addOlder(list: EntryList, received: ReceivedEvent[]): EntryList {
  const ids = new Set(list.ids)
  const older = newOnes(ids, received, false)
  return older.length === 0 ? list : { entries: [...list.entries, ...older], ids }
}

/** Many rows that slide at once are a flicker, and cost frames. */
const aloneMax = 4

/** Arrivals, oldest first as in the stream, go on top, so that the last one is the first row. */
export function addArrivals(list: EntryList, received: ReceivedEvent[]): EntryList {
  const ids = new Set(list.ids)
  const arrived = newOnes(ids, received, received.length <= aloneMax).reverse()
  return arrived.length === 0 ? list : { entries: [...arrived, ...list.entries], ids }
}

export interface Trimmed {
  list: EntryList
  /** The latest time of the removed rows, from which history must be fetched again; null when none were removed. */
  latestGoneMs: number | null
}

/** Keeps the first `max` rows, so that a page left open for days does not fill the reader's memory. */
export function trim(list: EntryList, max: number): Trimmed {
  if (list.entries.length <= max) return { list, latestGoneMs: null }
  const kept = list.entries.slice(0, max)
  let latestGoneMs = 0
  for (const gone of list.entries.slice(max)) latestGoneMs = Math.max(latestGoneMs, gone.atMs)
  return { list: { entries: kept, ids: new Set(kept.map((entry) => entry.id)) }, latestGoneMs }
}
