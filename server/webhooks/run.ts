/** One run of the dispatcher: what is due goes out, new events become deliveries, rules look, probes start. */
import type { Store } from '../../db/store.ts'
import { isoTime } from '../clock.ts'
import { newId } from '../ids.ts'
import { limits } from '../limits.ts'
import type { Log } from '../log.ts'
import type { Dispatcher } from './dispatcher.ts'
import { feedEndpoint } from './feed.ts'
import { probeEveryMs } from './judge.ts'

export interface RunParts {
  store: Pick<Store, 'webhooks' | 'events'>
  log: Log
  dispatcher: Dispatcher
  /** Looks at the rules that speak. */
  watch(now: number): Promise<void>
}

export interface Run {
  run(now: number): Promise<void>
  /** Wakes endpoints whose position waited for their deliveries to end. */
  ended(endpointIds: string[]): void
  /** Resolves when nothing is being fed or sent. */
  idle(): Promise<void>
}

const probesMax = 100

export function makeRun(parts: RunParts): Run {
  const { store, log, dispatcher } = parts
  const waiting = new Map<string, number>() // endpoints whose position waits, and up to where it goes
  let feeding: Promise<void> = Promise.resolve()

  async function feed(now: number): Promise<void> {
    const endpoints = await store.webhooks.activeEndpoints()
    const lastSeqs = new Map<string, number>()
    waiting.clear()
    for (const endpoint of endpoints) {
      const { orgId } = endpoint
      const lastSeq = lastSeqs.get(orgId) ?? (await store.events.lastSeq(orgId))
      lastSeqs.set(orgId, lastSeq)
      // One endpoint's trouble, such as a filter whose search takes too long, must not keep the others waiting.
      const result = await feedEndpoint({ store }, endpoint, lastSeq, now).catch((error: unknown) => {
        log.warn('webhook_feed_failed', { endpointId: endpoint.id, message: String(error) })
        return 'end'
      })
      if (result === 'full') waiting.set(endpoint.id, lastSeq)
    }
  }

  async function feedWaiting(endpointIds: string[]): Promise<void> {
    const wanted = endpointIds.filter((id) => waiting.has(id))
    if (wanted.length === 0) return
    const endpoints = await store.webhooks.activeEndpoints()
    for (const endpoint of endpoints.filter(({ id }) => wanted.includes(id))) {
      const untilSeq = waiting.get(endpoint.id) ?? 0
      const result = await feedEndpoint({ store }, endpoint, untilSeq, dueAtMs)
      if (result !== 'full') waiting.delete(endpoint.id)
    }
    await dispatcher.dispatch(dueAtMs)
  }

  /** Feeding is one thing at a time, whoever asks for it. */
  function inTurn(work: () => Promise<void>): Promise<void> {
    const done = feeding.then(work)
    feeding = done.catch(() => undefined)
    return done
  }

  let dueAtMs = 0
  return {
    async run(now) {
      dueAtMs = now
      await dispatcher.dispatch(now)
      await inTurn(() => feed(now))
      await parts.watch(now)
      await store.webhooks.startProbes({
        now,
        nextProbeAtMs: now + probeEveryMs,
        body: JSON.stringify({ type: 'endpoint.probe', timestamp: isoTime(now), data: {} }),
        ids: Array.from({ length: probesMax }, () => newId('wh')),
      })
      await dispatcher.dispatch(now)
    },
    ended(endpointIds) {
      inTurn(() => feedWaiting(endpointIds)).catch((error: unknown) => {
        log.warn('webhook_feed_failed', { message: String(error) })
      })
    },
    async idle() {
      for (let seen: unknown = null; seen !== feeding;) {
        seen = feeding
        await dispatcher.idle()
        await feeding
      }
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
