/** Turns new events of the log into batches for each endpoint, and advances its position in the same transaction. */
import type { EventStore, Store } from '../../../db/contract/store.ts'
import type { Endpoint } from '../../../db/contract/webhooks.ts'
import { isoTime } from '../../clock.ts'
import { newId } from '../../ids.ts'
import { limits } from '../../limits.ts'

export interface FeedParts {
  store: Pick<Store, 'webhooks' | 'events'>
}

/** `end`: everything up to `untilSeq` was looked at; `full`: the position waits; `stale`: somebody else changed it. */
export type FeedResult = 'end' | 'full' | 'stale'

interface Fed {
  result: FeedResult
  position: number
  sequence: number
}

/**
 * Makes batches of one endpoint until its position reaches `untilSeq`, the end of the log when the run began. A range
 * that is delivered again comes before what is new.
 */
export async function feedEndpoint(
  parts: FeedParts,
  endpoint: Endpoint,
  untilSeq: number,
  now: number,
): Promise<FeedResult> {
  const { replayUntil, resumePosition } = endpoint
  if (replayUntil === null || resumePosition === null)
    return (await feedUpTo(parts, endpoint, { untilSeq, isRange: false }, now)).result
  const range = await feedUpTo(parts, endpoint, { untilSeq: replayUntil, isRange: true }, now)
  if (range.result !== 'end' || range.position < replayUntil) return range.result
  const resumed = { ...endpoint, position: resumePosition, sequence: range.sequence }
  return (await feedUpTo(parts, resumed, { untilSeq, isRange: false }, now)).result
}

/** Of a range nothing behind its end is taken; of what is new everything that there is. */
async function feedUpTo(
  { store }: FeedParts,
  endpoint: Endpoint,
  { untilSeq, isRange }: { untilSeq: number; isRange: boolean },
  now: number,
): Promise<Fed> {
  const { id, orgId, url, types, outcomes, classes, siteIds, batchSize } = endpoint
  let { position, sequence } = endpoint
  const fed = (result: FeedResult): Fed => ({ result, position, sequence })
  const lastSeqMax = isRange ? untilSeq : Number.MAX_SAFE_INTEGER
  const gap = position < untilSeq ? await missedAfter(store.events, orgId, position) : 0
  const missed = Math.min(gap, lastSeqMax - position)
  if (missed > 0) {
    // What is gone cannot be told any more; how much it was can, and the endpoint's notice says it.
    const from = { position, sequence }
    const skipped = { position: position + missed, missed, delivery: null }
    const pendingMax = limits.webhookPendingBatchesMax
    const result = await store.webhooks.advance({ endpointId: id, from, ...skipped, pendingMax })
    if (result !== 'advanced') return fed(result)
    position += missed
  }
  while (position < untilSeq) {
    const filter = { types, outcomes, classes, siteIds }
    const tail = await store.events.tail({
      orgId,
      filter,
      afterSeq: position,
      limit: batchSize,
    })
    const events = tail.events.filter(({ seq }) => seq <= lastSeqMax)
    const { body, used } = batchBody(
      sequence + 1,
      events.map(({ json }) => json),
      now,
    )
    // A batch cut short by its size ends at its last event; what the filter left out behind it is looked at again.
    const reached = used < events.length ? events[used - 1]!.seq : Math.min(tail.lastSeq, lastSeqMax)
    const to = Math.max(reached, position)
    if (to === position) return fed('end')
    const about = { id: newId('wh'), orgId, endpointId: id, url, lane: id }
    const result = await store.webhooks.advance({
      endpointId: id,
      from: { position, sequence },
      position: to,
      missed: 0,
      delivery: used === 0 ? null : { ...about, body, scheduledAtMs: now },
      pendingMax: limits.webhookPendingBatchesMax,
    })
    if (result !== 'advanced') return fed(result)
    position = to
    if (used > 0) sequence++
  }
  return fed('end')
}

/** Arrivals are counted without a gap, so a gap behind the position is what was removed before it was looked at. */
async function missedAfter(events: EventStore, orgId: string, position: number): Promise<number> {
  const { events: found, lastSeq } = await events.tail({ orgId, filter: {}, afterSeq: position, limit: 1 })
  const next = found[0]?.seq ?? lastSeq + 1
  return next - position - 1
}

/** The message of contract §9 with as many of the events, given as JSON text, as fit; always at least one. */
export function batchBody(sequence: number, events: string[], now: number): { body: string; used: number } {
  const head = `{"type":"trace.batch","timestamp":"${isoTime(now)}","data":{"sequence":${sequence},"events":[`
  const tail = ']}}'
  let bytes = head.length + tail.length
  let used = 0
  for (const event of events) {
    bytes += Buffer.byteLength(event) + 1
    if (used > 0 && bytes > limits.webhookBatchBytesMax) break
    used++
  }
  return { body: `${head}${events.slice(0, used).join(',')}${tail}`, used }
}
