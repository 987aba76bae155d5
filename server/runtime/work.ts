/** The work behind a command: functions that run in the process that holds the data folder, and their errors. */
import { AppError, UsageError, type Issue } from '../errors.ts'
import type { AccessReceiver } from '../access/receiver.ts'
import { StoreError } from '../../db/contract/errors.ts'
import type { Json, Store } from '../../db/contract/store.ts'
import type { Clock } from '../clock.ts'
import type { KeyRing } from '../system/key-ring.ts'
import type { Log } from '../log.ts'
import type { ServerState } from '../operations/doctor/server-checks.ts'
import type { ClockGuard } from '../system/clock-guard.ts'
import type { EndpointServices } from '../webhooks/endpoints/endpoints.ts'

export interface WorkContext {
  store: Store
  clock: Clock
  /** Address of the dashboard, without a trailing slash; one-time links start with it. */
  baseUrl: string
  /** Services for webhook work. A running server ignores the options and uses the options it was started with. */
  webhooks(options: { allow: string[]; sinkDir: string | null }): EndpointServices
  /** Keys that are not files of the data folder, when no server runs. */
  keyRing?(): KeyRing | null
  /** Of the database, when no server runs; by default the data folder. */
  location?: string
  /** Present when a server runs. */
  server?: RunningServices
}

/** Data that only a running server has. */
export interface RunningServices {
  ingestUrl: string | null // null: it listens on a Unix socket
  log: Pick<Log, 'setLevel'>
  backups: { dir: string; passphrase: string | null; keyRing: KeyRing | null; location?: string }
  clockGuard: ClockGuard
  accessReceiver: AccessReceiver
  /** The answer to a message of an assistant; null for none. */
  answerMcp(orgId: string, message: Json): Promise<Json>
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

/** An error as the command line prints it, in text and as `--json`: the same fields as an error of the API. */
interface Problem {
  error: string // a code of the API, a kind of the store, `wrong_usage` or `failed`
  message: string
  hint?: string
  issues?: Issue[]
}

export function problemOf(error: unknown): Problem {
  if (error instanceof UsageError) return withHint('wrong_usage', error.message, error.hint)
  if (error instanceof AppError) {
    const { hint, issues } = error.details
    const problem = withHint(error.code, error.message, hint ?? null)
    return issues === undefined ? problem : { ...problem, issues }
  }
  if (error instanceof StoreError) return withHint(error.kind, error.message, storeHints[error.kind] ?? null)
  return withHint('failed', error instanceof Error ? error.message : String(error), null)
}

function withHint(error: string, message: string, hint: string | null): Problem {
  return hint === null ? { error, message } : { error, message, hint }
}

const storeHints: { readonly [K in StoreError['kind']]?: string } = {
  locked: 'stop the other process, or choose another folder with --data-dir',
  newer_schema: 'use the release that wrote it or a newer one; nothing was changed',
  incomplete:
    'put the missing file back or restore a backup; "sightglass accept-loss" continues without it. Nothing was changed',
  corrupt: 'nothing was changed; restore a backup into another folder and compare',
  unavailable: 'check that the database runs and that this machine can reach it, then try again',
  read_only: 'check the owner of the folder and whether its disk is mounted read-only',
  not_writable:
    'end the read-only mode of the database (default_transaction_read_only), then try again; see "sightglass doctor"',
  storage_full:
    'free disk space on the disk of the data folder, or shorten retention; ingest resumes by itself',
}
