/** The work behind a command: functions that run in the process that holds the data folder. */
import type { Json, Store } from '../../db/contract/store.ts'
import type { Clock } from '../clock.ts'
import { UsageError } from '../errors.ts'
import type { Log } from '../log.ts'
import type { ServerState } from '../operations/doctor/server-checks.ts'
import type { ClockGuard } from '../system/clock-guard.ts'
import type { EndpointServices } from '../webhooks/endpoints/endpoints.ts'

export interface WorkContext {
  store: Store
  clock: Clock
  /** Address of the dashboard, without a trailing slash; one-time links start with it. */
  baseUrl: string
  /** Services for webhook work. A running server ignores `given` and uses the options it was started with. */
  webhooks(given: { allow: string[]; sinkDir: string | null }): EndpointServices
  /** Present when a server runs. */
  server?: RunningServices
}

/** Data that only a running server has. */
export interface RunningServices {
  ingestUrl: string | null // null: it listens on a Unix socket
  log: Pick<Log, 'setLevel'>
  backups: { dir: string; passphrase: string | null }
  clockGuard: ClockGuard
  state(): Promise<ServerState>
}

/** Parameters as JSON, because they may arrive over the control socket. */
export type Params = { [name: string]: Json }

export type Work = (context: WorkContext, params: Params) => Promise<Json>

/** All work by name, such as `org create` or `export traces page`. */
export type WorkTable = ReadonlyMap<string, Work>

export function textOf(params: Params, name: string): string {
  const value = params[name]
  if (typeof value === 'string') return value
  throw new UsageError(`${name} is missing`)
}

export function textOrNull(params: Params, name: string): string | null {
  const value = params[name]
  if (value === undefined || value === null) return null
  return textOf(params, name)
}

export function textsOf(params: Params, name: string): string[] {
  const value = params[name] ?? []
  if (Array.isArray(value) && value.every((part) => typeof part === 'string')) return value
  throw new UsageError(`${name} must be a list of strings`)
}

export function flagOf(params: Params, name: string): boolean {
  return params[name] === true
}

export function numberOf(params: Params, name: string): number {
  const value = params[name]
  if (typeof value === 'number') return value
  throw new UsageError(`${name} must be a number`)
}
