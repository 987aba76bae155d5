/** Creates every service of a server from its configuration and store, and starts background work. */
import { startHostNames } from '../system/host-names.ts'
import { makeReceiver } from '../access/receiver.ts'
import type { SyslogRule } from '../access/syslog.ts'
import type { WatchRule } from '../access/watches.ts'
import { writeCheckpoints, type TrailServices } from '../audit/checkpoints.ts'
import { hasOpenLosses } from '../audit/evidence.ts'
import { openSigningKey, ringSigningKey, type SigningKey } from '../audit/signing.ts'
import { makeHalfSignIns } from '../identity/sign-in/second-factor.ts'
import { makeProvider, type OidcConfig } from '../identity/sign-in/provider-routes.ts'
import { makeSignIns } from '../identity/sign-in/sign-ins.ts'
import { makeLinkThrottle, makeThrottle, steadyClock } from '../identity/sign-in/throttle.ts'
import { makeBackups } from '../operations/backup/backups.ts'
import { startClockGuard, testTime, type ClockGuard } from '../system/clock-guard.ts'
import { startNode } from '../system/shared-node.ts'
import { startJobs, type Jobs } from '../system/scheduler.ts'
import { diagnosedOf } from '../operations/doctor/options.ts'
import { probeFsync, watchDisk } from '../system/disk.ts'
import { memoryAllowed, watchMemory } from '../operations/health/memory.ts'
import { nodeReport } from '../operations/health/nodes.ts'
import { makeUpkeepWatch } from '../operations/health/upkeep.ts'
import { assetsFolder, loadAssets, underBasePath, type Assets } from '../http/assets.ts'
import { keyGuard } from '../http/guard.ts'
import { makeRateLimits, type RateLimit } from '../http/rate-limit.ts'
import { boxCipher, makeCipher } from '../system/encryption.ts'
import { makeShares } from '../http/shares.ts'
import { makeIngestCounts } from '../ingest/counts.ts'
import { newToken, sha256Hex } from '../ids.ts'
import { makeRejections } from '../ingest/rejected.ts'
import { makeParseQueue } from '../ingest/admission.ts'
import { evidenceReader } from '../evidence/evidence.ts'
import { makeQuestionSessions } from '../mcp/question-sessions.ts'
import type { MappingOptions } from '../otlp/events.ts'
import { jobTable, type JobServices } from '../jobs.ts'
import { makeLastUses, type LastUses } from '../identity/keys/keys.ts'
import { limits } from '../limits.ts'
import { makeHttpTimes, makeWebhookOutcomes } from '../operations/metrics-endpoint/counters.ts'
import { makeErasures } from '../operations/retention/erasures.ts'
import { makeRecount } from '../operations/retention/recount.ts'
import { makeShareOpens } from '../sharing/links.ts'
import { version } from '../system/version.ts'
import { startWebhooks, type WebhookConfig } from '../webhooks/start.ts'
import type { NewNode, NodeRole } from '../../db/contract/nodes.ts'
import type { SharedDatabase, Store } from '../../db/contract/store.ts'
import type { KeyRing } from '../system/key-ring.ts'
import { elapsedMs, type Clock } from '../clock.ts'
import type { Log } from '../log.ts'
import type { Services } from '../services.ts'
import type { ListenAddress } from '../http/address.ts'
import type { TlsFiles } from '../http/tls.ts'
import type { BackupConfig } from '../operations/backup/backup-folder.ts'
import { join } from 'node:path'
import { parquetParts } from '../parquet/parquet.ts'
import { makeOpenFiles, openFolder, type OpenFiles } from '../parquet/open-files.ts'
import type { MailServer } from '../reports/mail.ts'
import type { ReportRule } from '../reports/schedule.ts'
import { makeScheduledReports, type ScheduledReports } from '../reports/scheduled.ts'
import { robotsReader } from '../robots/judge.ts'
import { requireApplianceId } from '../system/appliance-id.ts'
import { protectedFiles } from '../system/watched-path.ts'
import { watchRobots, type RobotsFiles, type RobotsSource } from '../robots/watched-files.ts'
import type { RetentionRule } from '../system/retention-rule.ts'

/** Everything `serve` starts with, made from the options of the command line. */
export interface ServeConfig {
  listen: ListenAddress
  ingestListen: ListenAddress | null
  metricsListen: ListenAddress | null
  dataDir: string // absolute
  shared: SharedDatabase | null // null: the database is in the data folder
  role: NodeRole // `all` without a shared database
  upgradeWaitMs: number | null // how long for nodes of an older release; null: without limit
  drainMs: number // after SIGTERM requests are served for so long, while /readyz refuses
  keyFile: string | null // absolute
  keyRing: KeyRing | null // null: the keys are files of the data folder
  publicUrl: string | null // origin, without a trailing slash
  basePath: string // such as /sightglass, or empty
  allowedHosts: string[]
  metricsToken: string | null
  trustedProxies: string[] // addresses and CIDR ranges
  diskFloorBytes: number
  memoryLimitBytes: number | null // null: the memory of the machine or container
  rateLimits: { gateway: RateLimit | null; ingest: RateLimit | null } // null: off
  tls: TlsFiles | null
  retention: RetentionRule
  backup: BackupConfig
  webhooks: WebhookConfig
  robots: RobotsSource[] // watched files
  reports: { rules: ReportRule[]; mailServer: MailServer | null } // scheduled
  openFiles: boolean // Parquet files of past days, in the data folder
  oidc: OidcConfig | null
  otlp: MappingOptions
  evidenceDns: boolean // host names are looked up
  evidenceMaxAgeDays: number // of lists that contradict claims of agents
  watches: WatchRule[] // access logs that this node follows
  syslog: SyslogRule[] // addresses at which it receives access logs
  logLevel: 'debug' | 'info' | 'warn' | 'error'
  admin: { email: string; password: string } | null
  setupFile: string | null // absolute
  warnings: string[] // logged at start
  commandReference(): string // options and commands as Markdown, for the operations guide
}

export interface ServerOptions {
  config: ServeConfig
  store: Store
  clock: Clock
  /** The guard behind `clock`; without it no clock jump is detected. */
  clockGuard?: ClockGuard
  log: Log
  /** This node of a database that several nodes share. Without it no other process uses the database. */
  node?: NewNode
  assets?: Assets // set by tests
  /** False in tests that trigger webhook delivery themselves: only cron dispatches. */
  wakesWebhooks?: boolean
  /** Called when the store failed permanently: the process should exit with an error. */
  fail(): void
  /** Called when memory is exhausted: the process should exit cleanly, to be restarted. */
  exhausted(): void
}

/** The services, and what is only needed to stop the server. */
export interface MadeServices {
  services: Services
  jobs: Jobs
  lastUses: LastUses
  trail: TrailServices
}

export async function makeServices(options: ServerOptions): Promise<MadeServices> {
  const running = await startRunning(options)
  const { lastUses, rateLimits, jobs, trail, ...shared } = running
  const { config, store, log } = options
  const clock = shared.node?.clock ?? options.clock
  // Alone, the key ends with the process. Of several nodes each may receive what another one began.
  const briefCipher =
    shared.node === null ? makeCipher(sha256Hex(newToken())) : boxCipher(shared.webhooks.box)
  const judged = judgedBy(config, store, clock)
  const services: Services = {
    ...shared,
    store,
    clock,
    log,
    version,
    publicUrl: config.publicUrl,
    basePath: config.basePath,
    commandReference: config.commandReference,
    guard: keyGuard({ store, clock, limit: rateLimits.key, used: lastUses.used }),
    rateLimits,
    signIns: makeSignIns(store, clock, config.basePath),
    throttle: makeThrottle({
      store: store.throttle,
      secret: await store.secret('cursor'),
      clock: shared.node === null ? steadyClock(clock) : clock,
    }),
    linkThrottle: makeLinkThrottle(clock, limits.linkAttemptsFree),
    halfSignIns: makeHalfSignIns(briefCipher, shared.node === null ? () => elapsedMs(clock) : clock.now),
    provider: config.oidc === null ? null : makeProvider(config.oidc),
    cursorCipher: makeCipher(await store.secret('cursor')),
    briefCipher,
    jobs,
    rejections: makeRejections(store, log),
    parseQueue: makeParseQueue(),
    questionSessions: makeQuestionSessions({ store, clock }),
    otlp: config.otlp,
    syslogListeners: [],
    ...judged,
    accessReceiver: makeReceiver({
      store,
      clock,
      disk: shared.disk,
      isShared: shared.node !== null,
      ...judged,
      robots: robotsReader(store, clock),
      arrivalMs: () => shared.node?.clock.now() ?? shared.clockGuard.arrival(),
      fail: (reason, holdsOnlyCopy) => services.fail(reason, holdsOnlyCopy),
    }),
    retention: config.retention,
    httpTimes: makeHttpTimes(),
    metricsToken: config.metricsToken,
    diagnosed: diagnosedOf(config),
    location: config.shared?.url ?? config.dataDir,
    assets: underBasePath(options.assets ?? loadAssets(assetsFolder()), config.basePath),
    streams: new Set(),
    streamShares: makeShares(limits.liveStreamsMax),
    exportShares: makeShares(limits.exportsMax),
    parquetParts,
    inFlight: {
      // One organization gets at most half of it: a quarter of the memory limit when that is small.
      bodies: makeShares(Math.min(limits.bodiesInFlightBytesMax, shared.memory.limitBytes / 2)),
      largeBodies: makeShares(Math.min(limits.otlpBodiesInFlightBytesMax, shared.memory.limitBytes / 2)),
      responses: makeShares(limits.responsesInFlightBytesMax),
    },
    state: shared.state,
    fail(reason, holdsOnlyCopy = false) {
      if (services.state.storeFailed !== null) return
      services.state.storeFailed = reason
      log.error('store_failed_permanently', { reason })
      // A supervisor would restart the server on an empty folder, and the last copy would be lost.
      if (holdsOnlyCopy) void jobs.stop()
      else options.fail()
    },
  }
  // After a failed write of a request or a job, the contents of the disk are unknown until a new process reads them.
  void store.broken.then(({ message, kind }) => services.fail(message, kind === 'deleted'))
  return { services, jobs, lastUses, trail }
}

/** What claims of agents are judged by. */
function judgedBy({ evidenceDns, evidenceMaxAgeDays }: ServeConfig, store: Store, clock: Clock) {
  const hostNames = evidenceDns ? startHostNames(clock) : null
  return { evidence: evidenceReader(store), evidenceMaxAgeDays, hostNames }
}

function robotsFilesOf({ config, store, log }: ServerOptions, clock: Clock): RobotsFiles | null {
  return watchRobots({ store, clock, log, protectedFiles: protectedFiles(config) }, config.robots)
}

function openFilesOf({ config, store, log }: ServerOptions): OpenFiles | null {
  if (!config.openFiles) return null
  const { dataDir } = config
  const applianceId = requireApplianceId(dataDir)
  return makeOpenFiles({ store, folder: join(dataDir, openFolder), applianceId, log })
}

function reportsOf({ config, store, log }: ServerOptions, key: SigningKey): ScheduledReports {
  const { reports, retention } = config
  const { mailServer, rules } = reports
  const publicUrl = publicAddressOf(config)
  return makeScheduledReports(
    { store, log, key, mailServer, publicUrl, auditDays: retention.auditDays },
    rules,
  )
}

/** The address of the dashboard in messages. */
function publicAddressOf({ publicUrl, basePath }: ServeConfig): string | null {
  return publicUrl === null ? null : `${publicUrl}${basePath}`
}

function nodeOf({ shared, role }: ServeConfig): NewNode | null {
  return shared === null ? null : { name: shared.node, version, role }
}

/** Background work, driven by jobs or by commits. */
async function startRunning(options: ServerOptions) {
  const { config, store, clock: machineClock, log, exhausted } = options
  const { dataDir, retention } = config
  const ownNode = options.node ?? nodeOf(config)
  const node = ownNode === null ? null : await startNode({ store, clock: machineClock, log, node: ownNode })
  // Nodes that share a database use its clock: theirs differ, and a jump of one moves nothing.
  const clock = node?.clock ?? machineClock
  const time = testTime(machineClock)
  const clockGuard = options.clockGuard ?? startClockGuard({ time, dataDir: null, log })
  const lastUses = makeLastUses(store)
  const disk = await watchDisk(dataDir, config.diskFloorBytes, log)
  const fsyncProbe = await probeFsync(dataDir)
  await fsyncProbe.check()
  const memory = watchMemory(config.memoryLimitBytes ?? memoryAllowed(), log, exhausted)
  const webhookOutcomes = makeWebhookOutcomes()
  const webhooks = startWebhooks({
    config: config.webhooks,
    dataDir,
    keyRing: config.keyRing,
    node: node?.name ?? null,
    store: { ...store, webhooks: webhookOutcomes.counted(store.webhooks) },
    clock,
    log,
    version,
    publicUrl: publicAddressOf(config),
  })
  const { shared: database, keyRing } = config
  const auditKey = node !== null && keyRing !== null ? ringSigningKey(keyRing) : openSigningKey(dataDir)
  const trail: TrailServices = { store, key: auditKey, folder: node === null ? dataDir : null, log }
  // After a loss of evidence the new one begins at once; the audit trail records since when.
  if (node !== null || (await hasOpenLosses(store))) await writeCheckpoints(trail, clock.now())
  const backups = makeBackups({
    config: config.backup,
    keyRing,
    location: database?.url ?? dataDir,
    dataDir,
    store,
    clock,
    clockGuard,
    log,
  })
  const erasures = makeErasures({ store, clock, log, node: node?.name ?? 'the server' })
  const ingestCounts = makeIngestCounts(store, clock, log, clockGuard)
  const watches = { disk, fsyncProbe, memory }
  const state: Services['state'] = { isDraining: false, stopping: false, storeFailed: null }
  if (node === null) clockGuard.onJump(webhooks.clockJumped)
  const shared = {
    node,
    clockGuard,
    auditKey,
    trail,
    backups,
    erasures,
    ingestCounts,
    lastUses,
    shareOpens: makeShareOpens({ store, clock }, log),
    recount: makeRecount({ store, log }),
    scheduledReports: reportsOf(options, auditKey),
    webhooks,
    state,
    ...watches,
  }
  const crons = { dispatchCron: config.webhooks.cron, backupCron: config.backup.cron }
  const table: JobServices = {
    ...shared,
    ...crons,
    store,
    log,
    retention,
    role: config.role,
    watchUpkeep: makeUpkeepWatch(store, clock, log),
    robotsFiles: robotsFilesOf(options, clock),
    openFiles: openFilesOf(options),
    report: () => nodeReport({ ...shared, store, jobs }),
  }
  const jobs: Jobs = startJobs(jobTable(table), machineClock, log)
  return { ...shared, jobs, webhookOutcomes, rateLimits: makeRateLimits(config.rateLimits, clock) }
}
