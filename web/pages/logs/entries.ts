/** The rows of Logs: new events on top, history below, no duplicates. */
import { eventTimeMs } from '../../api/field-filters.ts'
import type { ReceivedEvent, TraceEvent } from '../../api/api.ts'

export interface Entry {
  id: string
  occurredAtMs: number
  receivedAtMs: number
  atMs: number // the time that orders the list
  alone: boolean // arrived with few others, so that its animation is visible
  event: TraceEvent
  record?: ReceivedEvent['record']
}

export interface EntryList {
  entries: Entry[] // the rows of the table, top first
  ids: Set<string>
}

export const emptyList: EntryList = { entries: [], ids: new Set() }

function entryOf({ receivedAt, event, record }: ReceivedEvent, alone: boolean): Entry {
  const occurredAtMs = Date.parse(event.occurredAt)
  const receivedAtMs = Date.parse(receivedAt)
  const atMs = eventTimeMs(occurredAtMs, receivedAtMs)
  return { id: event.id, occurredAtMs, receivedAtMs, atMs, alone, event, ...(record && { record }) }
}

/** Events of `received` that are not in the list, each once, in the given order. */
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

/** More rows that slide in at once would flicker and drop frames. */
const aloneMax = 4

/** Adds new events on top. They are oldest first, as in the stream, so the last one becomes the first row. */
export function addArrivals(list: EntryList, received: ReceivedEvent[]): EntryList {
  const ids = new Set(list.ids)
  const arrived = newOnes(ids, received, received.length <= aloneMax).reverse()
  return arrived.length === 0 ? list : { entries: [...arrived, ...list.entries], ids }
}

interface Trimmed {
  list: EntryList
  /** The latest time of the removed rows, from which history must be fetched again; null if none were removed. */
  latestRemovedMs: number | null
}

/** Limits the list to `max` rows, so that a page left open for days does not fill the memory. */
export function trim(list: EntryList, max: number): Trimmed {
  if (list.entries.length <= max) return { list, latestRemovedMs: null }
  const newest = list.entries.slice(0, max)
  let latestRemovedMs = 0
  for (const removed of list.entries.slice(max)) latestRemovedMs = Math.max(latestRemovedMs, removed.atMs)
  return { list: { entries: newest, ids: new Set(newest.map((entry) => entry.id)) }, latestRemovedMs }
}
