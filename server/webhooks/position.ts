/** Finds where in the event log a time lies, to move an endpoint's position back to it. */
import type { EventStore } from '../../db/store.ts'

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
  // Arrival times rise with arrival numbers: halve the log until the border is found.
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
