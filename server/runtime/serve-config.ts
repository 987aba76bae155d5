/** Everything `serve` starts with, made from the options of the command line. */
import type { ListenAddress } from '../http/address.ts'
import type { TlsFiles } from '../http/tls.ts'
import type { RateLimit } from '../http/rate-limit.ts'
import type { OidcConfig } from '../identity/sign-in/provider.ts'
import type { BackupConfig } from '../operations/backup/config.ts'
import type { RetentionRule } from '../operations/retention/expire-all.ts'
import type { WebhookConfig } from '../webhooks/start.ts'

export interface ServeConfig {
  listen: ListenAddress
  ingestListen: ListenAddress | null
  metricsListen: ListenAddress | null
  dataDir: string // absolute
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
  oidc: OidcConfig | null
  logLevel: 'debug' | 'info' | 'warn' | 'error'
  admin: { email: string; password: string } | null
  setupFile: string | null // absolute
  warnings: string[] // logged at start
  commandReference(): string // options and commands as Markdown, for the operations guide
}
