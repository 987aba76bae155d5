/** Assembles the webhook services of a running server: what its routes, jobs and commands use. */
import { readTextFile } from '../../db/rules/regular-files.ts'
import type { JobLease } from '../../db/contract/nodes.ts'
import type { Store } from '../../db/contract/store.ts'
import { isoTime, type Clock } from '../clock.ts'
import { newId } from '../ids.ts'
import { limits } from '../limits.ts'
import type { Log } from '../log.ts'
import { openSecretBox } from '../system/encryption.ts'
import { makeEvaluate } from './alerts/evaluate.ts'
import { addressGuard, resolveWith, systemResolver, type Resolver } from './sinks/addresses.ts'
import { makeDispatcher, type Dispatcher } from './delivery/dispatcher.ts'
import { makeFanOut, type FanOut } from './delivery/fan-out.ts'
import { probeEveryMs } from './delivery/retry-policy.ts'
import type { Sender } from './delivery/waiting.ts'
import { startWake, type Wake } from './delivery/wake.ts'
import type { KeyRing } from '../system/key-ring.ts'
import type { EndpointServices } from './endpoints/endpoints.ts'

/** The webhook options of the operator. */
export interface WebhookConfig {
  cron: string // of the dispatcher; with an optional seconds field
  backoffMs: number[] // the wait before each retry
  allow: string[] // private ranges that deliveries may reach
  sinkDir: string | null // the folder of file sinks; null: file sinks are disabled
  caFile: string | null // additional certificate authorities, PEM
  proxy: string | null // the HTTP proxy for http and https
}

export interface WebhookOptions {
  config: WebhookConfig
  dataDir: string
  keyRing?: KeyRing | null // null: the key is a file of the data folder
  store: Pick<Store, 'webhooks' | 'events' | 'keys' | 'retention' | 'health'>
  clock: Clock
  log: Log
  version: string
  publicUrl?: string | null // with the base path
  resolver?: Resolver // replaced in tests
  random?: () => number
  timeoutMs?: number
  leaseMs?: number
  node?: string | null // its name, when others share the database
}

type AlertsWork = (lease?: JobLease | null) => Promise<void>

export interface Webhooks extends EndpointServices {
  version: string
  sender: Sender
  /** From now on new events and due deliveries wake the dispatcher. */
  startWake(): void
  /**
   * One run: sends, fans out new events, evaluates alert rules, starts probes. Running attempts outlive it. `alerts`
   * runs the part that one of several nodes does; default: this one.
   */
  run(now: number, alerts?: (work: AlertsWork) => Promise<void>): Promise<void>
  prune(now: number): Promise<void>
  /** Moves stored times with the clock, so that every wait keeps its length. */
  clockJumped(byMs: number): void
  /** Resolves when no fan-out and no attempt is running. */
  idle(): Promise<void>
  stop(): Promise<void>
}

export function startWebhooks(options: WebhookOptions): Webhooks {
  const { config, store, clock, log, version } = options
  const box = openSecretBox(options.dataDir, options.keyRing)
  const resolve = resolveWith(options.resolver ?? systemResolver, addressGuard(config.allow))
  const { sinkDir } = config
  const dispatcher = makeDispatcher({
    store,
    clock,
    log,
    box,
    resolve,
    version,
    sinkDir,
    proxy: config.proxy,
    ca: config.caFile === null ? null : readTextFile(config.caFile),
    timeoutMs: options.timeoutMs ?? limits.webhookTimeoutMs,
    leaseMs: options.leaseMs ?? limits.webhookLeaseMs,
    node: options.node ?? null,
    waitsMs: config.backoffMs,
    random: options.random ?? Math.random,
    onEnded: (endpointIds) => fanOut.resume(endpointIds),
    onRetryScheduled: (atMs) => wake?.dueAt(atMs),
  })
  const fanOut = makeFanOut({ store, clock, log, dispatch: dispatcher.dispatch })
  const evaluate = makeEvaluate({ store, log, publicUrl: options.publicUrl ?? null })
  const idle = () => untilIdle(dispatcher, fanOut)
  let wake: Wake | null = null
  return {
    store,
    clock,
    box,
    resolve,
    sinkDir,
    version,
    sender: dispatcher.sender,
    async run(now, alerts = (work) => work()) {
      await dispatcher.dispatch(now)
      await fanOut.all(now)
      await alerts((lease) => evaluate(now, lease).then(() => startProbes(store, now)))
      await dispatcher.dispatch(now)
    },
    async prune(now) {
      const count = await pruneDeliveries(store, now)
      if (count > 0) log.info('webhook_deliveries_pruned', { count })
    },
    clockJumped(byMs) {
      dispatcher.clockJumped(byMs)
      store.webhooks.shiftTimes({ byMs }).catch((error: unknown) => {
        log.error('webhook_times_not_shifted', { byMs, message: String(error) })
      })
    },
    idle,
    startWake() {
      wake ??= startWake({
        store,
        clock,
        log,
        dispatch: dispatcher.dispatch,
        async fanOut(orgId, now) {
          await fanOut.org(orgId, now)
          await dispatcher.dispatch(now)
        },
      })
    },
    async stop() {
      wake?.stop()
      await dispatcher.stop(limits.webhookStopGraceMs)
      await idle()
    },
  }
}

/** A fan-out makes deliveries, and an ended delivery may resume a fan-out. */
async function untilIdle(dispatcher: Dispatcher, fanOut: FanOut): Promise<void> {
  do {
    await dispatcher.idle()
    await Promise.all(fanOut.running())
  } while (fanOut.running().length > 0 || dispatcher.isSending())
}

const probesMax = 100

async function startProbes(store: Pick<Store, 'webhooks'>, now: number): Promise<void> {
  await store.webhooks.startProbes({
    now,
    nextProbeAtMs: now + probeEveryMs,
    body: JSON.stringify({ type: 'endpoint.probe', timestamp: isoTime(now), data: {} }),
    ids: Array.from({ length: probesMax }, () => newId('wh')),
  })
}

/** Small enough that no other write waits long. */
const prunedAtOnce = 500

/** Deletes deliveries whose retention is over (contract §9); returns how many. */
async function pruneDeliveries(store: Pick<Store, 'webhooks'>, now: number): Promise<number> {
  let total = 0
  for (;;) {
    const deleted = await store.webhooks.prune({
      deliveredBeforeMs: now - limits.webhookDeliveredRetentionMs,
      deadBeforeMs: now - limits.webhookDeadRetentionMs,
      incidentsBeforeMs: now - limits.webhookDeadRetentionMs,
      limit: prunedAtOnce,
    })
    total += deleted
    if (deleted < prunedAtOnce) return total
  }
}
