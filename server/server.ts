/** Puts the parts together, opens the listeners and starts the jobs; `stop` takes it all down in the safe order. */
import type { Store } from '../db/store.ts'
import { createApp } from './app.ts'
import { writeCheckpoints } from './audit/checkpoints.ts'
import { openSigningKey } from './audit/signing-key.ts'
import { makeProvider } from './auth/provider.ts'
import { makeSignIns } from './auth/sign-ins.ts'
import { makeThrottle } from './auth/throttle.ts'
import type { Clock } from './clock.ts'
import type { ServeConfig } from './config.ts'
import { makeBackups } from './backup/backups.ts'
import { watchDisk } from './health/disk.ts'
import { isShed, memoryAllowed, watchMemory } from './health/memory.ts'
import { assetsFolder, loadAssets, type Assets } from './http/assets.ts'
import { watchCertificate } from './http/certificate.ts'
import { keyGuard } from './http/guard.ts'
import { listen, type Listener } from './http/listen.ts'
import { makeRateLimits } from './http/rate-limit.ts'
import { senderReader } from './http/proxy.ts'
import { sealWith } from './http/seal.ts'
import { startJobs } from './clockwork.ts'
import { makeIngestCounts } from './ingest/counts.ts'
import { makeRejections } from './ingest/rejections.ts'
import { jobTable } from './jobs.ts'
import { makeLastUses } from './keys/last-use.ts'
import type { Log } from './log.ts'
import type { ListenAddress } from './option-values.ts'
import type { Parts } from './parts.ts'
import { makeHttpTimes } from './prometheus/http-times.ts'
import { makeWebhookOutcomes } from './prometheus/webhook-outcomes.ts'
import { makeRecount } from './rollup/recount.ts'
import { version } from './version.ts'
import { startWebhooks, type Webhooks } from './webhooks/start.ts'

export interface ServerOptions {
  config: ServeConfig
  store: Store
  clock: Clock
  log: Log
  assets?: Assets // tests of the API alone bring none
  /** The store failed for good: whoever started the server should end the process with an error. */
  fail(): void
  /** Memory is used up: whoever started the server should end it in good order, to be started afresh. */
  exhausted(): void
}

export interface RunningServer {
  url: string
  ingestUrl: string | null
  metricsUrl: string | null
  webhooks: Webhooks
  /** Stops accepting, ends live streams, finishes what is in flight, writes what was remembered. */
  stop(): Promise<void>
}

const drainMs = 20_000
const backupStopMs = 3_000 // one that takes longer is given up and made anew

export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const { config, store, clock, log } = options
  const lastUses = makeLastUses(store)
  const disk = await watchDisk(config.dataDir, config.diskFloorBytes, log)
  const memory = watchMemory(config.memoryLimitBytes ?? memoryAllowed(), log, options.exhausted)
  const { dataDir } = config
  const webhookOutcomes = makeWebhookOutcomes()
  const countedStore = { ...store, webhooks: webhookOutcomes.counted(store.webhooks) }
  const webhooks = startWebhooks({ config: config.webhooks, dataDir, store: countedStore, clock, log, version })
  const dispatchCron = config.webhooks.cron
  const auditKey = openSigningKey(dataDir)
  const backups = makeBackups({ config: config.backup, dataDir, store, clock, log })
  const backupCron = config.backup.cron
  const ingestCounts = makeIngestCounts(store, clock, log)
  const recount = makeRecount({ store, log })
  const jobParts = {
    store,
    lastUses,
    ingestCounts,
    disk,
    memory,
    webhooks,
    dispatchCron,
    dataDir,
    log,
    auditKey,
    backups,
    backupCron,
    retention: config.retention,
    recount,
  }
  const jobs = startJobs(jobTable(jobParts), clock, log)
  const hostRule = {
    listenHosts: [config.listen.host],
    publicUrl: config.publicUrl,
    allowedHosts: config.allowedHosts,
  }
  const rateLimits = makeRateLimits(config.rateLimits, clock)
  const parts: Parts = {
    store,
    clock,
    log,
    version,
    publicUrl: config.publicUrl,
    guard: keyGuard({ store, clock, limit: rateLimits.key, used: lastUses.used }),
    rateLimits,
    signIns: makeSignIns(store, clock),
    throttle: makeThrottle(clock),
    auditKey,
    provider: config.oidc === null ? null : makeProvider(config.oidc),
    seal: sealWith(await store.secret('cursor')),
    disk,
    memory,
    jobs,
    rejections: makeRejections(store, log),
    recount,
    retention: config.retention,
    ingestCounts,
    httpTimes: makeHttpTimes(),
    webhookOutcomes,
    metricsToken: config.metricsToken,
    webhooks,
    backups,
    diagnosed: config,
    assets: options.assets ?? loadAssets(assetsFolder()),
    streams: new Set(),
    state: { stopping: false, storeFailed: null },
    fail(reason) {
      if (parts.state.storeFailed !== null) return
      parts.state.storeFailed = reason
      log.error('store_failed_for_good', { reason })
      options.fail()
    },
  }
  const app = createApp(parts)
  const open = (kind: 'main' | 'ingest' | 'metrics', { host, port }: ListenAddress): Listener =>
    listen({
      kind,
      host,
      port,
      handle: app.handle,
      observe: parts.httpTimes.note,
      hostRule,
      sender: senderReader(config.trustedProxies),
      stopping: () => parts.state.stopping,
      isShed: (path) => isShed(path, memory.pressure()),
      log,
      tls: certificate.pair(),
    })
  const certificate = watchCertificate(config.tls, log)
  const listeners = [open('main', config.listen)]
  const ingestListener = config.ingestListen && open('ingest', config.ingestListen)
  if (ingestListener) listeners.push(ingestListener)
  const metricsListener = config.metricsListen && open('metrics', config.metricsListen)
  if (metricsListener) {
    listeners.push(metricsListener)
    log.info('metrics_listening', { url: metricsListener.url })
  }
  certificate.start((pair) => listeners.forEach((listener) => listener.showCertificate(pair)))
  return {
    url: listeners[0]!.url,
    ingestUrl: ingestListener?.url ?? null,
    metricsUrl: metricsListener?.url ?? null,
    webhooks,
    async stop() {
      parts.state.stopping = true
      certificate.stop()
      for (const stream of parts.streams) stream.abort()
      await Promise.all(listeners.map((listener) => listener.stop(drainMs)))
      await jobs.stop()
      // A machine that never runs at the hour of the daily job has its checkpoints all the same.
      await writeCheckpoints({ store, key: auditKey, dataDir, log }, clock.now()).catch((error: unknown) =>
        log.warn('audit_checkpoint_not_written', { message: String(error) }),
      )
      await webhooks.stop()
      await backups.settle(backupStopMs)
      await parts.rejections.settled()
      await ingestCounts.flush()
      await lastUses
        .flush()
        .catch((error: unknown) => log.warn('last_use_not_written', { message: String(error) }))
    },
  }
}
