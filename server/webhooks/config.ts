/** What the operator chooses about webhooks when the appliance starts. */

export interface WebhookConfig {
  cron: string // of the dispatcher; seconds field allowed
  backoffMs: number[] // one step before each of the retries
  allow: string[] // private ranges that deliveries may reach
  sinkDir: string | null // the folder below which file sinks lie
  caFile: string | null // PEM of further certificate authorities
  proxy: string | null // the HTTP proxy through which http and https go
}
