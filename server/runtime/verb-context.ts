/** What a verb's work gets: the store, the time, and the addresses it may print. */
import type { Json, Store } from '../../db/contract/store.ts'
import type { Clock } from '../clock.ts'
import type { ClockGuard } from '../system/clock-guard.ts'
import type { ServerState } from '../operations/doctor/server-checks.ts'
import type { Log } from '../log.ts'
import type { EndpointServices } from '../webhooks/endpoints/endpoints.ts'
import type { Params } from './params.ts'

export interface VerbContext {
  store: Store
  clock: Clock
  /** Where people open the dashboard, without a slash at the end: one-time links start with it. */
  baseUrl: string
  /** Where ingest answers; null when no server runs. */
  ingestUrl: string | null
  /** Of a running server; its level can be changed while it runs. */
  log?: Pick<Log, 'setLevel'>
  /** Where a running server keeps its backups, and what encrypts them. */
  backups?: { dir: string; passphrase: string | null }
  /** Of a running server. */
  clockGuard?: ClockGuard
  /** What a running server says of itself. */
  state?(): Promise<ServerState>
  /** What webhook verbs work with. A server goes by the rules it was started with, not by the given ones. */
  webhooks(given: { allow: string[]; sinkDir: string | null }): EndpointServices
}

export type StoreVerb = (context: VerbContext, params: Params) => Promise<Json>
