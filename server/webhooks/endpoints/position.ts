/** Finds positions in the event log: of a time of arrival, and of the last event of certain senders. */
import type { EventStore, StoredEvent } from '../../../db/contract/store.ts'

/** The position just before the first event that arrived at or after `sinceMs`; the log's end when there is none. */
export async function positionBefore(
  events: Pick<EventStore, 'tail' | 'lastSeq'>,
  orgId: string,
  sinceMs: number,
): Promise<number> {
  const arrivedAfter = async (seq: number): Promise<number | null> => {
    const { events: found } = await events.tail({ orgId, filter: {}, afterSeq: seq, limit: 1 })
    return found[0]?.receivedAtMs ?? null
  }
  // Binary search, because arrival times increase with arrival numbers.
  let low = 0
  let high = await events.lastSeq(orgId)
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    const next = await arrivedAfter(middle)
    if (next !== null && next < sinceMs) low = middle + 1
    else high = middle
  }
  return low
}

export type Arrival = Pick<StoredEvent, 'seq' | 'receivedAtMs'>

/** The search ends after this many arrivals, which takes 1 to 2 s. */
const backMax = 2 ** 24

/** The newest arrival after `afterSeq` that none of the keys sent; null when there is none. */
export async function lastArrival(
  events: Pick<EventStore, 'tail' | 'lastSeq'>,
  query: { orgId: string; afterSeq: number; exceptKeys: string[] },
): Promise<Arrival | null> {
  const firstAfter = async (afterSeq: number): Promise<Arrival | null> =>
    (await events.tail({ ...query, filter: {}, afterSeq, limit: 1 })).events[0] ?? null
  let none = await events.lastSeq(query.orgId) // there is none after it
  let found: Arrival | null = null
  for (let back = 1; found === null && none > query.afterSeq && back <= backMax; back *= 2) {
    const from = Math.max(query.afterSeq, none - back)
    found = await firstAfter(from)
    if (found === null) none = from
  }
  while (found !== null && found.seq < none) {
    const middle = Math.floor((found.seq + none) / 2)
    const later = await firstAfter(middle)
    if (later === null) none = middle
    else found = later
  }
  return found
}
