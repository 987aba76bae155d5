/** One run of the dispatcher: what is due goes out, new events become deliveries, rules look, probes start. */
import type { Store } from '../../../db/contract/store.ts'
import type { Endpoint } from '../../../db/contract/webhooks.ts'
import { isoTime, type Clock } from '../../clock.ts'
import { newId } from '../../ids.ts'
import { limits } from '../../limits.ts'
import type { Log } from '../../log.ts'
import type { Dispatcher } from './dispatcher.ts'
import { feedEndpoint } from './fan-out.ts'
import { probeEveryMs } from './retry-policy.ts'

export interface RunParts {
  store: Pick<Store, 'webhooks' | 'events'>
  clock: Clock
  log: Log
  dispatcher: Dispatcher
  /** Looks at the rules that speak. */
  watch(now: number): Promise<void>
}

export interface Run {
  run(now: number): Promise<void>
  /** New events of one organization become deliveries, and what is due goes out: between runs. */
  feed(orgId: string, now: number): Promise<void>
  /** Wakes endpoints whose position waited for their deliveries to end. */
  ended(endpointIds: string[]): void
  /** Resolves when nothing is being fed or sent. */
  idle(): Promise<void>
}

const probesMax = 100
/** Organizations that are fed at the same time by a run. */
const feedsAtOnce = 4

interface Waiting {
  orgId: string
  untilSeq: number
}

interface Feeds {
  /** Everything that arrived for one organization, or for all, becomes deliveries. */
  org(orgId: string, now: number): Promise<void>
  all(now: number): Promise<void>
  /** Endpoints whose position waits go on, up to where the feed began. */
  goOn(endpointIds: string[]): void
  running(): Promise<unknown>[]
}

function makeFeeds({ store, clock, log, dispatcher }: RunParts): Feeds {
  const warn = (error: unknown, endpointId?: string) =>
    log.warn('webhook_feed_failed', { endpointId, message: String(error) })
  const waiting = new Map<string, Waiting>() // endpoints whose position waits, and up to where it goes
  const failed = new Set<string>() // endpoints whose feed failed since the last run, which tries them again
  const { inTurn, running } = makeTurns() // by organization: one must not keep another waiting

  async function feedOne(endpoint: Endpoint, untilSeq: number, now: number): Promise<void> {
    const { id, orgId } = endpoint
    // One endpoint's trouble, such as a filter whose search takes too long, must not keep the others waiting.
    const atMs = Math.min(now, clock.now()) // the clock may have been set back since the run began
    const result = await feedEndpoint({ store }, endpoint, untilSeq, atMs).catch((error: unknown) => {
      warn(error, id)
      failed.add(id)
      return 'end'
    })
    if (result === 'full') waiting.set(id, { orgId, untilSeq })
    else waiting.delete(id)
  }

  async function feedOrg(orgId: string, now: number): Promise<void> {
    const endpoints = await store.webhooks.bareEndpoints(orgId)
    const active = endpoints.filter(({ id, status }) => status === 'active' && !failed.has(id))
    if (active.length === 0) return
    const lastSeq = await store.events.lastSeq(orgId)
    for (const endpoint of active) await feedOne(endpoint, lastSeq, now)
  }

  async function feedWaiting(orgId: string, ids: readonly string[]): Promise<void> {
    const now = clock.now()
    for (const endpoint of await store.webhooks.bareEndpoints(orgId)) {
      const wanted = ids.includes(endpoint.id) ? waiting.get(endpoint.id) : undefined
      if (wanted !== undefined && endpoint.status === 'active') await feedOne(endpoint, wanted.untilSeq, now)
    }
    await dispatcher.dispatch(now)
  }

  return {
    org: (orgId, now) => inTurn(orgId, () => feedOrg(orgId, now)),
    async all(now) {
      failed.clear()
      const endpoints = await store.webhooks.activeEndpoints()
      const ids = new Set(endpoints.map(({ id }) => id))
      for (const id of waiting.keys()) if (!ids.has(id)) waiting.delete(id)
      const orgIds = [...new Set(endpoints.map(({ orgId }) => orgId))].values()
      const feedNext = async () => {
        for (const orgId of orgIds) await inTurn(orgId, () => feedOrg(orgId, now))
      }
      await Promise.all(Array.from({ length: feedsAtOnce }, feedNext))
    },
    goOn(endpointIds) {
      const found = endpointIds.flatMap((id) => {
        const wanted = waiting.get(id)
        return wanted === undefined ? [] : [{ id, orgId: wanted.orgId }]
      })
      for (const [orgId, some] of Map.groupBy(found, (each) => each.orgId)) {
        const ids = some.map(({ id }) => id)
        inTurn(orgId, () => feedWaiting(orgId, ids)).catch(warn)
      }
    },
    running,
  }
}

/** Work under one name is done one after the other, whoever asks for it. */
function makeTurns() {
  const last = new Map<string, Promise<void>>()
  return {
    inTurn(name: string, work: () => Promise<void>): Promise<void> {
      const done = (last.get(name) ?? Promise.resolve()).then(work)
      const settled = done
        .catch(() => undefined)
        .then(() => void (last.get(name) === settled && last.delete(name)))
      last.set(name, settled)
      return done
    },
    running: () => [...last.values()],
  }
}

export function makeRun(parts: RunParts): Run {
  const { store, dispatcher } = parts
  const feeds = makeFeeds(parts)
  return {
    async run(now) {
      await dispatcher.dispatch(now)
      await feeds.all(now)
      await parts.watch(now)
      await store.webhooks.startProbes({
        now,
        nextProbeAtMs: now + probeEveryMs,
        body: JSON.stringify({ type: 'endpoint.probe', timestamp: isoTime(now), data: {} }),
        ids: Array.from({ length: probesMax }, () => newId('wh')),
      })
      await dispatcher.dispatch(now)
    },
    async feed(orgId, now) {
      await feeds.org(orgId, now)
      await dispatcher.dispatch(now)
    },
    ended: feeds.goOn,
    async idle() {
      do {
        await dispatcher.idle()
        await Promise.all(feeds.running())
      } while (feeds.running().length > 0 || dispatcher.isSending())
    },
  }
}

const pruneAtOnce = 500

/** Removes deliveries whose time is over (contract §9), a few at a time so that no write waits long behind it. */
export async function pruneDeliveries(store: Pick<Store, 'webhooks'>, now: number): Promise<number> {
  let total = 0
  for (;;) {
    const gone = await store.webhooks.prune({
      deliveredBeforeMs: now - limits.webhookDeliveredKeptMs,
      deadBeforeMs: now - limits.webhookDeadKeptMs,
      incidentsBeforeMs: now - limits.webhookDeadKeptMs,
      limit: pruneAtOnce,
    })
    total += gone
    if (gone < pruneAtOnce) return total
  }
}
