/** Puts the webhook parts of a running server together: what routes, jobs and command line verbs work with. */
import { readFileSync } from 'node:fs'
import { limits } from '../limits.ts'
import { openSecretBox } from '../system/secrets.ts'
import { addressGuard } from './delivery/address-guard.ts'
import { makeDispatcher } from './delivery/dispatcher.ts'
import { resolveWith, systemResolver, type Resolver } from './delivery/resolve.ts'
import { makeRun, pruneDeliveries } from './delivery/run.ts'
import { startWake, type Wake } from './delivery/wake.ts'
import { makeWatch } from './alerts/evaluate.ts'
import type { Store } from '../../db/contract/store.ts'
import type { Clock } from '../clock.ts'
import type { Log } from '../log.ts'
import type { EndpointServices } from './endpoints/endpoints.ts'

export interface WebhookOptions {
  config: WebhookConfig
  dataDir: string
  store: Pick<Store, 'webhooks' | 'events' | 'keys'>
  clock: Clock
  log: Log
  version: string
  publicUrl?: string | null // with the base path
  resolver?: Resolver // tests answer names themselves
  random?: () => number
  timeoutMs?: number
  leaseMs?: number
}

export interface Webhooks extends EndpointServices {
  version: string
  /** From now on new events and due deliveries wake the dispatcher. */
  startWake(): void
  /** One run of the dispatcher; what it sends outlives it. */
  run(now: number): Promise<void>
  prune(now: number): Promise<void>
  /** Waits go on as long as before: what is stored as a time moves with the clock. */
  clockJumped(byMs: number): void
  /** Resolves when nothing is being fed or sent. */
  idle(): Promise<void>
  stop(): Promise<void>
}

export function startWebhooks(options: WebhookOptions): Webhooks {
  const { config, store, clock, log, version } = options
  const box = openSecretBox(options.dataDir)
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
    ca: config.caFile === null ? null : readFileSync(config.caFile, 'utf8'),
    timeoutMs: options.timeoutMs ?? limits.webhookTimeoutMs,
    leaseMs: options.leaseMs ?? limits.webhookLeaseMs,
    stepsMs: config.backoffMs,
    random: options.random ?? Math.random,
    ended: (endpointIds) => ended(endpointIds),
    retryAt: (atMs) => wake?.dueAt(atMs),
  })
  const watch = makeWatch({ store, log, publicUrl: options.publicUrl ?? null })
  const { run, feed, ended, idle } = makeRun({ store, clock, log, dispatcher, watch })
  let wake: Wake | null = null
  return {
    store,
    clock,
    box,
    resolve,
    sinkDir,
    version,
    run,
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
      wake ??= startWake({ store, clock, log, dispatch: dispatcher.dispatch, feed })
    },
    async stop() {
      wake?.stop()
      await dispatcher.stop(limits.webhookStopGraceMs)
      await idle()
    },
  }
}

/** What the operator chooses about webhooks when the appliance starts. */
export interface WebhookConfig {
  cron: string // of the dispatcher; seconds field allowed
  backoffMs: number[] // one step before each of the retries
  allow: string[] // private ranges that deliveries may reach
  sinkDir: string | null // the folder below which file sinks lie
  caFile: string | null // PEM of further certificate authorities
  proxy: string | null // the HTTP proxy through which http and https go
}
