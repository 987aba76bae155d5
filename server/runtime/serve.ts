/** Runs the server in this process: opens the data folder, listens, and stops without losing acknowledged events. */
import { prepareFirstOwner } from '../identity/people/first-owner.ts'
import { systemClock } from '../clock.ts'
import { shortenWaits } from '../system/slow-files.ts'
import { startClockGuard, systemTime } from '../system/clock-guard.ts'
import { noteDatabase } from '../system/outbound.ts'
import { protectedFiles } from '../system/watched-path.ts'
import { startControl } from './store-access.ts'
import { isShed, memoryAllowed, requireMemory } from '../operations/health/memory.ts'
import { startLog } from '../log.ts'
import { setUpAtStart } from '../operations/setup/apply.ts'
import { readSetupFile } from '../operations/setup/file.ts'
import { version } from '../system/version.ts'
import { databaseServers, openDatabaseAdmin } from '../../db/open.ts'
import { nodeReport } from '../operations/health/nodes.ts'
import { openServerStore } from './open-data-folder.ts'
import { upgradeWait } from './upgrade-wait.ts'
import { runsJobs } from '../jobs.ts'
import { createApp } from '../app.ts'
import { writeCheckpoints } from '../audit/checkpoints.ts'
import { serverState, type ServerState } from '../operations/doctor/server-checks.ts'
import { watchCertificate } from '../http/tls.ts'
import { limitConnections } from '../http/connection-limit.ts'
import { clearSocket, listen, type Listener } from '../http/listener.ts'
import { senderReader, type ListenAddress } from '../http/address.ts'
import { makeServices, type MadeServices, type ServeConfig, type ServerOptions } from './make-services.ts'
import type { AccessReceiver } from '../access/receiver.ts'
import { answerOverStdio } from '../mcp/server.ts'
import type { Json } from '../../db/contract/store.ts'
import { startLogInputs } from '../access/watches.ts'
import type { WorkTable } from './work.ts'
import type { Webhooks } from '../webhooks/start.ts'

/** Runs the server until SIGTERM or SIGINT and returns the exit code. Rejects when it cannot start. */
export async function serve(config: ServeConfig, work: WorkTable): Promise<number> {
  const log = startLog({ level: config.logLevel, clock: systemClock })
  const location = config.shared?.url ?? config.dataDir
  if (config.shared !== null) noteDatabase(databaseServers(config.shared)) // also refuses a URL that is wrong
  // Before the store is opened, which writes: without its own file the guard uses the newest write.
  const lastWriteMs = await openDatabaseAdmin(location).lastWriteMs()
  const clockGuard = startClockGuard({ time: systemTime(), dataDir: config.dataDir, lastWriteMs, log })
  const { clock } = clockGuard
  const setup = config.setupFile === null ? null : readSetupFile(config.setupFile)
  let reload: () => void = () => undefined
  let failed: () => boolean = () => false
  // Before the folder is opened: SIGHUP during an upgrade must not end the process.
  process.on('SIGHUP', () => {
    const logReopened = log.reopen()
    log.info('reloaded', { logReopened })
    reload()
  })
  const store = await openServerStore(config, clock, upgradeWait(config, log))
  clockGuard.run()
  const ended = Promise.withResolvers<number>()
  // Not `once`: npm and `timeout` send the signal twice, and the second would interrupt the shutdown.
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => ended.resolve(0))
  try {
    for (const warning of config.warnings) log.warn('configuration', { warning })
    const setupToken = await prepareFirstOwner({ store, config, clock, log })
    if (setup !== null) await setUpAtStart({ config, store, clock, log }, setup)
    requireMemory(config.memoryLimitBytes ?? memoryAllowed(), config.memoryLimitBytes !== null)
    const server = await startServer({
      config,
      store,
      clock,
      clockGuard,
      log,
      fail: () => ended.resolve(1),
      exhausted: () => ended.resolve(0),
    })
    reload = server.reload
    failed = server.failed
    const { publicUrl, basePath } = config
    const baseUrl = publicUrl === null ? server.link : `${publicUrl}${basePath}`
    const running = {
      ingestUrl: server.ingestLink,
      log,
      backups: { ...config.backup, keyRing: config.keyRing, location },
      clockGuard,
      accessReceiver: server.accessReceiver,
      answerMcp: (orgId: string, message: Json) => server.answerMcp(orgId, message, baseUrl),
      state: server.state,
    }
    const context = { store, clock, baseUrl, webhooks: () => server.webhooks, server: running }
    const control = await startControl({ dataDir: config.dataDir, log, work, context })
    // A contract: people and scripts wait for these lines, in this order.
    const lines = [`sightglass ${version} listening on ${server.url}`]
    if (server.ingestUrl) lines.push(`ingest listening on ${server.ingestUrl}`)
    if (setupToken) lines.push(`set up the first owner: ${baseUrl}/setup#${setupToken}`)
    process.stdout.write(`${lines.join('\n')}\n`)
    const signalled = await ended.promise
    const code = failed() ? 1 : signalled
    log.info('stopping', { code })
    shortenWaits()
    await control.stop()
    await server.stop()
    log.info('stopped')
    return code
  } finally {
    clockGuard.stop(!failed())
    await store.close()
    await log.close()
  }
}

interface RunningServer {
  url: string
  link: string // the URL for other machines, unless a proxy provides another
  ingestUrl: string | null
  ingestLink: string | null // null: on a socket, which only a proxy can reach
  metricsUrl: string | null
  webhooks: Webhooks
  accessReceiver: AccessReceiver
  answerMcp(orgId: string, message: Json, baseUrl: string): Promise<Json>
  /** The state that the doctor reports. */
  state(): Promise<ServerState>
  /** Whether the store failed permanently, even if the server stays up for reads. */
  failed(): boolean
  /** Reloads the TLS files. */
  reload(): void
  /** Stops accepting, ends live streams, finishes requests in flight, writes pending counts. */
  stop(): Promise<void>
}

const drainMs = 20_000
const backupStopMs = 3_000 // a backup that takes longer is aborted and repeated

export async function startServer(options: ServerOptions): Promise<RunningServer> {
  for (const { unix } of addressesOf(options.config)) if (unix !== undefined) await clearSocket(unix)
  const runtime = await makeServices(options)
  const listeners = await listenOrEnd(options, runtime)
  // Last: a server that cannot listen must not send webhooks.
  if (options.wakesWebhooks !== false && runsJobs(options.config.role)) runtime.services.webhooks.startWake()
  const inputs = await startLogInputs(
    { ...runtime.services, protectedFiles: protectedFiles(options.config) },
    options.config,
  )
  const { main, ingest, metrics } = listeners
  return {
    url: main.url,
    link: main.link,
    ingestUrl: ingest?.url ?? null,
    ingestLink: linkOf(ingest ?? main),
    metricsUrl: metrics?.url ?? null,
    webhooks: runtime.services.webhooks,
    accessReceiver: runtime.services.accessReceiver,
    answerMcp: (...args) => answerOverStdio(runtime.services, ...args),
    state: () => serverState(runtime.services, main.url),
    failed: () => runtime.services.state.storeFailed !== null,
    reload: listeners.reload,
    async stop() {
      await drain(options, runtime)
      runtime.services.state.stopping = true
      await inputs.stop()
      await listeners.stop()
      await settle(options, runtime)
    },
  }
}

/** Load balancers that ask `/readyz` send new requests elsewhere before this server refuses them. */
async function drain({ config }: ServerOptions, { services }: MadeServices): Promise<void> {
  const { state, node } = services
  state.isDraining = true
  // A database that is away must not delay the end.
  void node?.beat(nodeReport(services)).catch(() => undefined)
  if (state.storeFailed === null) await Bun.sleep(config.drainMs)
}

function linkOf({ url, link }: Listener): string | null {
  return url.startsWith('unix:') ? null : link
}

function addressesOf({
  listen: main,
  ingestListen,
  metricsListen,
}: ServerOptions['config']): ListenAddress[] {
  return [main, ingestListen, metricsListen].filter((address) => address !== null)
}

/** Stops the jobs when a port is in use: one that found the store closed would log that above the reason. */
async function listenOrEnd(options: ServerOptions, runtime: MadeServices) {
  try {
    return openListeners(options, runtime)
  } catch (error) {
    await runtime.jobs.stop()
    throw error
  }
}

function openListeners({ config, log }: ServerOptions, { services }: MadeServices) {
  const { handle } = createApp(services)
  const certificate = watchCertificate(config.tls, log)
  const { listen: address, publicUrl, allowedHosts, basePath } = config
  const hostRule = { listenHosts: [address.host], publicUrl, allowedHosts }
  const open = (kind: 'main' | 'ingest' | 'metrics' | 'jobs', listenAddress: ListenAddress): Listener =>
    listen({
      kind,
      at: listenAddress,
      // The other listeners have their own addresses, which are not served under a path.
      basePath: kind === 'main' ? basePath : '',
      handle,
      observe: services.httpTimes.note,
      hostRule,
      sender: senderReader(config.trustedProxies),
      stopping: () => services.state.stopping,
      isShed: (method, path) => isShed(method, path, services.memory.pressure()),
      inFlight: services.inFlight,
      log,
      tls: certificate.pair(),
    })
  const main = open(config.role === 'all' || config.role === 'web' ? 'main' : config.role, address)
  const ingest = config.ingestListen && open('ingest', config.ingestListen)
  const metrics = config.metricsListen && open('metrics', config.metricsListen)
  if (metrics) log.info('metrics_listening', { url: metrics.url })
  const listeners = [main, ingest, metrics].filter((listener) => listener !== null)
  certificate.start((pair) => listeners.forEach((listener) => listener.useCertificate(pair)))
  const connections = limitConnections({ acceptors: listeners, log })
  return {
    main,
    ingest,
    metrics,
    reload: certificate.reload,
    async stop() {
      certificate.stop()
      connections.stop()
      for (const stream of services.streams) stream.abort()
      await Promise.all(listeners.map((listener) => listener.stop(drainMs)))
    },
  }
}

/** After the last request: stops background work and writes pending counts. */
async function settle({ config, store, clock, log }: ServerOptions, runtime: MadeServices): Promise<void> {
  const { services, jobs, lastUses, trail } = runtime
  await jobs.stop()
  // A machine that is off at the hour of the daily job gets its checkpoints here. After a failure of the store the
  // folder may have been replaced, so this process must not write into it.
  if (services.state.storeFailed === null)
    await writeCheckpoints(trail, clock.now()).catch((error: unknown) =>
      log.warn('audit_checkpoint_not_written', { message: String(error) }),
    )
  await services.fsyncProbe.close()
  await services.webhooks.stop()
  await services.erasures.stop()
  await services.backups.settle(backupStopMs)
  await services.rejections.settled()
  await services.ingestCounts.flush()
  await services.shareOpens.flush()
  await lastUses
    .flush()
    .catch((error: unknown) => log.warn('last_use_not_written', { message: String(error) }))
  await services.node?.leave().catch(() => undefined) // the others notice that it is missing
}
