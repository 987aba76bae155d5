/** Fans new events out to endpoints: batches become deliveries, and each endpoint's position advances with them. */
import type { EventStore, Store, StoredEvent } from '../../../db/contract/store.ts'
import type { Endpoint } from '../../../db/contract/webhooks.ts'
import { writeBatch } from '../../../db/rules/batch-body.ts'
import { isoTime, type Clock } from '../../clock.ts'
import { messageRecordJson } from '../../api/traces/record.ts'
import { newId } from '../../ids.ts'
import { limits } from '../../limits.ts'
import type { Log } from '../../log.ts'

interface FanOutServices {
  store: Pick<Store, 'webhooks' | 'events'>
  clock: Clock
  log: Log
  /** Sends due deliveries. */
  dispatch(now: number): Promise<void>
}

export interface FanOut {
  /** Turns the new events of one organization into deliveries. */
  org(orgId: string, now: number): Promise<void>
  all(now: number): Promise<void>
  /** Continues endpoints whose pending deliveries were at their limit, up to where their fan-out began. */
  resume(endpointIds: string[]): void
  running(): Promise<unknown>[]
}

/** Organizations that `all` serves concurrently. */
const concurrentOrgs = 4

export function makeFanOut({ store, clock, log, dispatch }: FanOutServices): FanOut {
  const warn = (error: unknown, endpointId?: string) =>
    log.warn('webhook_fan_out_failed', { endpointId, message: String(error) })
  const full = new Map<string, { orgId: string; untilSeq: number }>() // endpoints at their limit of pending deliveries
  const failed = new Set<string>() // endpoints to skip until the next call of `all`
  const { inOrder, running } = makeQueues() // by organization, so that none waits for another

  async function fanOutTo(endpoint: Endpoint, untilSeq: number, now: number): Promise<void> {
    const { id, orgId } = endpoint
    const atMs = Math.min(now, clock.now()) // the clock may have been set back since the run began
    // A failure of one endpoint, such as a filter whose search times out, must not delay the others.
    const result = await fanOutEndpoint(store, endpoint, untilSeq, atMs).catch((error: unknown) => {
      warn(error, id)
      failed.add(id)
      return 'end'
    })
    if (result === 'full') full.set(id, { orgId, untilSeq })
    else full.delete(id)
  }

  async function fanOutOrg(orgId: string, now: number): Promise<void> {
    const endpoints = await store.webhooks.bareEndpoints(orgId)
    const active = endpoints.filter(({ id, status }) => status === 'active' && !failed.has(id))
    if (active.length === 0) return
    const lastSeq = await store.events.lastSeq(orgId)
    for (const endpoint of active) await fanOutTo(endpoint, lastSeq, now)
  }

  async function resumeOrg(orgId: string, ids: readonly string[]): Promise<void> {
    const now = clock.now()
    for (const endpoint of await store.webhooks.bareEndpoints(orgId)) {
      const limit = ids.includes(endpoint.id) ? full.get(endpoint.id) : undefined
      if (limit !== undefined && endpoint.status === 'active') await fanOutTo(endpoint, limit.untilSeq, now)
    }
    await dispatch(now)
  }

  return {
    org: (orgId, now) => inOrder(orgId, () => fanOutOrg(orgId, now)),
    async all(now) {
      failed.clear()
      const endpoints = await store.webhooks.activeEndpoints()
      const ids = new Set(endpoints.map(({ id }) => id))
      for (const id of full.keys()) if (!ids.has(id)) full.delete(id)
      const orgIds = [...new Set(endpoints.map(({ orgId }) => orgId))].values()
      const work = async () => {
        for (const orgId of orgIds) await inOrder(orgId, () => fanOutOrg(orgId, now))
      }
      await Promise.all(Array.from({ length: concurrentOrgs }, work))
    },
    resume(endpointIds) {
      const fullEndpoints = endpointIds.flatMap((id) => {
        const limit = full.get(id)
        return limit === undefined ? [] : [{ id, orgId: limit.orgId }]
      })
      for (const [orgId, orgEndpoints] of Map.groupBy(fullEndpoints, (endpoint) => endpoint.orgId)) {
        const ids = orgEndpoints.map(({ id }) => id)
        inOrder(orgId, () => resumeOrg(orgId, ids)).catch(warn)
      }
    },
    running,
  }
}

/** Runs work with the same name one after another. */
function makeQueues() {
  const last = new Map<string, Promise<void>>()
  return {
    inOrder(name: string, work: () => Promise<void>): Promise<void> {
      const queuedWork = (last.get(name) ?? Promise.resolve()).then(work)
      const settled = queuedWork
        .catch(() => undefined)
        .then(() => void (last.get(name) === settled && last.delete(name)))
      last.set(name, settled)
      return queuedWork
    },
    running: () => [...last.values()],
  }
}

type FanOutStore = FanOutServices['store']

/** `end`: reached `untilSeq`; `full`: too many deliveries are pending; `stale`: the endpoint was changed meanwhile. */
type Result = 'end' | 'full' | 'stale'

interface Progress {
  result: Result
  position: number
  sequence: number
}

/**
 * Makes batches for one endpoint until its position reaches `untilSeq`, the end of the log when the run began. A range
 * that is being replayed comes before new events.
 */
async function fanOutEndpoint(
  store: FanOutStore,
  endpoint: Endpoint,
  untilSeq: number,
  now: number,
): Promise<Result> {
  const { replayUntil, resumePosition } = endpoint
  if (replayUntil === null || resumePosition === null)
    return (await advanceTo(store, endpoint, { untilSeq, isReplay: false }, now)).result
  const replay = await advanceTo(store, endpoint, { untilSeq: replayUntil, isReplay: true }, now)
  if (replay.result !== 'end' || replay.position < replayUntil) return replay.result
  const resumed = { ...endpoint, position: resumePosition, sequence: replay.sequence }
  return (await advanceTo(store, resumed, { untilSeq, isReplay: false }, now)).result
}

/** A replay stops exactly at `untilSeq`; new events are followed to the end of the log. */
async function advanceTo(
  store: FanOutStore,
  endpoint: Endpoint,
  { untilSeq, isReplay }: { untilSeq: number; isReplay: boolean },
  now: number,
): Promise<Progress> {
  const { id, orgId, url, types, outcomes, classes, siteIds, batchSize } = endpoint
  const filter = { types, outcomes, classes, siteIds }
  const pendingMax = limits.webhookPendingBatchesMax
  let { position, sequence } = endpoint
  const progress = (result: Result): Progress => ({ result, position, sequence })
  const lastSeqMax = isReplay ? untilSeq : Number.MAX_SAFE_INTEGER
  const gap = position < untilSeq ? await expiredAfter(store.events, orgId, position) : 0
  const missed = Math.min(gap, lastSeqMax - position)
  if (missed > 0) {
    // Retention deleted these events before they were sent; the endpoint counts them for its notice.
    const from = { position, sequence }
    const step = { endpointId: id, from, position: position + missed, missed, delivery: null, pendingMax }
    const result = await store.webhooks.advance(step)
    if (result !== 'advanced') return progress(result)
    position += missed
  }
  while (position < untilSeq) {
    const tail = await store.events.tail({
      orgId,
      filter,
      afterSeq: position,
      limit: batchSize,
      provenance: true,
    })
    const events = tail.events.filter(({ seq }) => seq <= lastSeqMax)
    const { body, used: usedCount } = batchBody(sequence + 1, events, now)
    // A batch cut by its size ends at its last event; filtered events after that are read again.
    const reached =
      usedCount < events.length ? events[usedCount - 1]!.seq : Math.min(tail.lastSeq, lastSeqMax)
    const to = Math.max(reached, position)
    if (to === position) return progress('end')
    const delivery = { id: newId('wh'), orgId, endpointId: id, url, lane: id, body, scheduledAtMs: now }
    const result = await store.webhooks.advance({
      endpointId: id,
      from: { position, sequence },
      position: to,
      missed: 0,
      delivery: usedCount === 0 ? null : delivery,
      pendingMax,
    })
    if (result !== 'advanced') return progress(result)
    position = to
    if (usedCount > 0) sequence++
  }
  return progress('end')
}

/** Arrival numbers have no gaps, so a gap after the position is events that retention deleted. */
async function expiredAfter(events: EventStore, orgId: string, position: number): Promise<number> {
  const { events: nextEvents, lastSeq } = await events.tail({
    orgId,
    filter: {},
    afterSeq: position,
    limit: 1,
  })
  const next = nextEvents[0]?.seq ?? lastSeq + 1
  return next - position - 1
}

/** The message of contract §9, with at least one event and at most 512 KiB. */
export function batchBody(
  sequence: number,
  events: Pick<StoredEvent, 'json' | 'receivedAtMs' | 'provenance'>[],
  now: number,
): { body: string; used: number } {
  const bytesMax = limits.webhookBatchBytesMax
  const items = events.map((event) => ({ event: event.json, record: messageRecordJson(event) }))
  return writeBatch({ sequence, timestamp: isoTime(now), bytesMax }, items)
}
