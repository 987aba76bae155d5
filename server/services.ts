/** The services of a running server. Every feature declares the ones it needs in its own signature. */
import type { Store } from '../db/contract/store.ts'
import type { ParquetParts } from './api/traces/export.ts'
import type { AccessReceiver } from './access/receiver.ts'
import type { HostNames } from './system/host-names.ts'
import type { SyslogListener } from './access/syslog.ts'
import type { SigningKey } from './audit/signing.ts'
import type { HalfSignIns } from './identity/sign-in/second-factor.ts'
import type { Provider } from './identity/sign-in/provider-routes.ts'
import type { Backups } from './operations/backup/backups.ts'
import type { SignIns } from './identity/sign-in/sign-ins.ts'
import type { LinkThrottle, Throttle } from './identity/sign-in/throttle.ts'
import type { Clock } from './clock.ts'
import type { ClockGuard } from './system/clock-guard.ts'
import type { SharedNode } from './system/shared-node.ts'
import type { Diagnosed } from './operations/doctor/options.ts'
import type { DiskWatch, FsyncProbe } from './system/disk.ts'
import type { MemoryWatch } from './operations/health/memory.ts'
import type { Assets } from './http/assets.ts'
import type { KeyGuard } from './http/guard.ts'
import type { RateLimits } from './http/rate-limit.ts'
import type { Cipher } from './system/encryption.ts'
import type { Shares } from './http/shares.ts'
import type { Jobs } from './system/scheduler.ts'
import type { IngestCounts } from './ingest/counts.ts'
import type { HttpTimes, WebhookOutcomes } from './operations/metrics-endpoint/counters.ts'
import type { Rejections } from './ingest/rejected.ts'
import type { ParseQueue } from './ingest/admission.ts'
import type { EvidenceReader } from './evidence/evidence.ts'
import type { QuestionSessions } from './mcp/question-sessions.ts'
import type { MappingOptions } from './otlp/events.ts'
import type { Log } from './log.ts'
import type { RetentionRule } from './system/retention-rule.ts'
import type { Erasures } from './operations/retention/erasures.ts'
import type { ScheduledReports } from './reports/scheduled.ts'
import type { Recount } from './operations/retention/recount.ts'
import type { ShareOpens } from './sharing/links.ts'
import type { Webhooks } from './webhooks/start.ts'

export interface Services {
  store: Store
  clock: Clock
  clockGuard: ClockGuard
  node: SharedNode | null // null: no other node shares the database
  log: Log
  version: string
  publicUrl: string | null
  basePath: string
  guard: KeyGuard
  rateLimits: RateLimits
  signIns: SignIns
  throttle: Throttle // for passwords and codes
  linkThrottle: LinkThrottle // for links that do not exist
  shareOpens: ShareOpens
  halfSignIns: HalfSignIns
  briefCipher: Cipher // for tokens that come back within minutes, to any node
  auditKey: SigningKey
  provider: Provider | null
  cursorCipher: Cipher
  disk: DiskWatch
  fsyncProbe: FsyncProbe
  memory: MemoryWatch
  jobs: Pick<Jobs, 'late' | 'report'>
  rejections: Rejections
  ingestCounts: IngestCounts
  parseQueue: ParseQueue
  otlp: MappingOptions
  questionSessions: QuestionSessions
  evidence: EvidenceReader
  evidenceMaxAgeDays: number
  hostNames: HostNames | null // of addresses; null: they are not looked up
  accessReceiver: AccessReceiver
  syslogListeners: SyslogListener[]
  recount: Recount
  scheduledReports: ScheduledReports
  retention: RetentionRule
  httpTimes: HttpTimes
  webhookOutcomes: WebhookOutcomes
  metricsToken: string | null // for /metrics; null: the main listener does not serve it
  webhooks: Webhooks
  backups: Backups
  erasures: Erasures
  diagnosed: Diagnosed
  /** Of the database: the data folder, or the URL of a shared one. */
  location: string
  assets: Assets
  commandReference(): string // Markdown, for the operations guide
  streams: Set<AbortController> // open live streams and queries with progress, ended before the listener stops
  streamShares: Shares
  exportShares: Shares
  parquetParts: ParquetParts
  inFlight: { bodies: Shares; largeBodies: Shares; responses: Shares } // bytes
  /** `isDraining`: `/readyz` refuses, everything else still works. */
  state: { isDraining: boolean; stopping: boolean; storeFailed: string | null }
  /** Stops acknowledging and ends the process with an error, unless it holds the only copy of the data. */
  fail(reason: string, holdsOnlyCopy?: boolean): void
}
