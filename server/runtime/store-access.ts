/**
 * Runs a command's work where the data folder is held: in this process, or in the server through its control socket.
 * Both ends of the socket are here.
 */
import { chmodSync, existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { StoreError, isStoreErrorKind } from '../../db/contract/errors.ts'
import { AppError, UsageError, errorStatus, type ErrorCode } from '../errors.ts'
import { lazySecretBox } from '../system/encryption.ts'
import type { KeyRing } from '../system/key-ring.ts'
import { version } from '../system/version.ts'
import { addressGuard, resolveWith, systemResolver } from '../webhooks/sinks/addresses.ts'
import { openDataFolder, openToRead } from './open-data-folder.ts'
import { problemOf, type Params, type RunningServices, type WorkContext, type WorkTable } from './work.ts'
import type { Json, SharedDatabase } from '../../db/contract/store.ts'
import type { Clock } from '../clock.ts'
import type { ServerState } from '../operations/doctor/server-checks.ts'
import type { Log } from '../log.ts'

export interface StoreAccess {
  call(verb: string, params: Params): Promise<Json>
  /** Whether a running server does the work. */
  byServer: boolean
  close(): Promise<void>
}

interface AccessOptions {
  dataDir: string
  /** The database that several nodes share; null: it is in the data folder. */
  shared?: SharedDatabase | null
  /** Read when this process needs the keys. */
  keyRing: () => KeyRing | null
  baseUrl: string // for links when no server runs
  clock: Clock
  work: WorkTable
  /** `create` makes a missing folder; `read` takes no lock and works on a read-only file system. */
  access: 'read' | 'write' | 'create'
}

// A server that starts or stops, or another command, holds the lock for a moment without answering.
const lockWaitMs = 5_000
const retryMs = 100

export async function openStoreAccess(options: AccessOptions): Promise<StoreAccess> {
  const deadlineMs = performance.now() + lockWaitMs
  for (;;) {
    if (await serverAnswers(options.dataDir)) return throughServer(options.dataDir)
    try {
      return await openHere(options)
    } catch (error) {
      const locked = error instanceof StoreError && error.kind === 'locked'
      if (!locked || performance.now() > deadlineMs) throw error
      await Bun.sleep(retryMs)
    }
  }
}

async function openHere({
  dataDir,
  keyRing,
  shared = null,
  baseUrl,
  clock,
  work,
  access,
}: AccessOptions): Promise<StoreAccess> {
  const mayCreate = access === 'create'
  const store =
    access === 'read'
      ? await openToRead(dataDir, clock, shared)
      : await openDataFolder(dataDir, clock, { keyRing: keyRing(), shared, mayCreate })
  const webhooks: WorkContext['webhooks'] = ({ allow, sinkDir }) => {
    const resolve = resolveWith(systemResolver, addressGuard(allow))
    return { store, clock, box: lazySecretBox(dataDir, keyRing), resolve, sinkDir }
  }
  const context: WorkContext = { store, clock, baseUrl, keyRing, location: shared?.url ?? dataDir, webhooks }
  return {
    byServer: false,
    call(verb, params) {
      const run = work.get(verb)
      if (!run) throw new Error(`no work named "${verb}"`)
      return run(context, params)
    },
    close: () => store.close(),
  }
}

/** The server that holds the folder. It may start later: until then calls throw `unavailable`. */
export function serverAccess(dataDir: string): Pick<StoreAccess, 'call'> {
  const server = throughServer(dataDir)
  return {
    async call(verb, params) {
      if (await serverAnswers(dataDir)) return server.call(verb, params)
      throw new AppError('unavailable', `No appliance runs on ${dataDir}.`, {
        hint: 'start it with "sightglass serve", or name its folder with --data-dir',
      })
    },
  }
}

function throughServer(dataDir: string): StoreAccess {
  return {
    byServer: true,
    async call(verb, params) {
      const answer = await send(dataDir, verb, params)
      if ('result' in answer) return answer.result
      throw errorOf(answer.error)
    },
    close: async () => {},
  }
}

/** An error of the server becomes the error that the same work would throw here. */
function errorOf({ kind, code, message, hint }: ControlError): Error {
  if (kind === 'usage') return new UsageError(message, hint)
  const details = hint === null ? {} : { hint }
  if (code !== undefined && Object.hasOwn(errorStatus, code))
    return new AppError(code as ErrorCode, message, details)
  if (isStoreErrorKind(code)) return new StoreError(code, message)
  return new AppError(kind === 'refused' ? 'conflict' : 'internal_error', message, details)
}

async function send(dataDir: string, verb: string, params: Params): Promise<ControlAnswer> {
  try {
    return await post(dataDir, { version, verb, params })
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new AppError('internal_error', `The server ended before it answered (${reason}).`, {
      hint: 'check whether the change was made before you repeat the command',
    })
  }
}

async function post(
  dataDir: string,
  request: ControlRequest,
  signal: AbortSignal | null = null,
): Promise<ControlAnswer> {
  const body = JSON.stringify(request)
  const response = await fetch('http://localhost/', {
    unix: controlPath(dataDir),
    method: 'POST',
    body,
    signal,
  })
  return (await response.json()) as ControlAnswer
}

/** A connection is proof enough: a socket file left by a crash refuses it. */
async function serverAnswers(dataDir: string): Promise<boolean> {
  const path = controlPath(dataDir)
  if (!existsSync(path)) return false
  try {
    const socket = await Bun.connect({ unix: path, socket: { data() {} } })
    socket.end()
    return true
  } catch {
    return false
  }
}

const stateWaitMs = 2_000

/** State of the server that holds the folder: null without one, `problem` when it does not answer. */
export async function runningServer(
  dataDir: string,
): Promise<{ state: ServerState } | { problem: string } | null> {
  if (!existsSync(controlPath(dataDir))) return null
  try {
    const request = { version, verb: 'server state', params: {} }
    const answer = await post(dataDir, request, AbortSignal.timeout(stateWaitMs))
    return 'error' in answer
      ? { problem: answer.error.message }
      : { state: answer.result as unknown as ServerState }
  } catch (error) {
    const timedOut = error instanceof Error && error.name === 'TimeoutError'
    return timedOut ? { problem: `no answer within ${stateWaitMs / 1_000} s` } : null
  }
}

interface ControlRequest {
  version: string
  verb: string
  params: Params
}

type ControlAnswer = { result: Json } | { error: ControlError }

interface ControlError {
  kind: 'usage' | 'refused' | 'failed'
  /** Error code of the API or the store, for `refused`. */
  code?: string
  message: string
  hint: string | null
}

interface ControlOptions {
  dataDir: string
  log: Log
  work: WorkTable
  context: WorkContext & { server: RunningServices }
}

const requestBytesMax = 32 * 1024 * 1024

export function controlPath(dataDir: string): string {
  return join(dataDir, 'control.sock')
}

/** Listens on `control.sock`. The caller must hold the folder's lock: a socket left by a crash is replaced. */
export async function startControl(options: ControlOptions): Promise<{ stop(): Promise<void> }> {
  const path = controlPath(options.dataDir)
  rmSync(path, { force: true })
  const server = Bun.serve({
    unix: path,
    development: false,
    maxRequestBodySize: requestBytesMax,
    fetch(request, bunServer) {
      bunServer.timeout(request, 0) // a backup or an erasure may take minutes
      return answer(request, options)
    },
  })
  // The folder is 0700 already; this also holds under another umask.
  chmodSync(path, 0o600)
  return { stop: () => server.stop() }
}

/** Work of the socket itself: reports on the running server. */
const ownWork: WorkTable = new Map([
  ['server address', async ({ baseUrl, server }) => ({ baseUrl, ingestUrl: server?.ingestUrl ?? null })],
  ['server state', async ({ server }) => ((await server?.state()) ?? null) as unknown as Json],
])

/** Batches of one export, import, watch or demo, and questions, are logged at debug: a `begin` is logged at info. */
const isBatch = (verb: string) => / (?:append|message|page|position)$/.test(verb)

async function answer(request: Request, { context, log, work }: ControlOptions): Promise<Response> {
  let verb = ''
  try {
    const controlRequest = (await request.json()) as Partial<ControlRequest>
    if (controlRequest.version !== version)
      return Response.json({ error: wrongVersion(String(controlRequest.version)) })
    verb = String(controlRequest.verb)
    const run = work.get(verb) ?? ownWork.get(verb)
    if (!run) throw new UsageError(`the server has no verb "${verb}"`)
    const result = await run(context, controlRequest.params ?? {})
    log[isBatch(verb) ? 'debug' : 'info']('control_verb', { verb })
    return Response.json({ result })
  } catch (thrown) {
    const error = describe(thrown)
    const level = error.kind === 'failed' ? 'error' : 'info'
    log[level]('control_verb_failed', { verb, message: error.message })
    return Response.json({ error })
  }
}

function wrongVersion(cliVersion: string): ControlError {
  return {
    kind: 'refused',
    message: `the server on this data folder runs version ${version}, this command is version ${cliVersion}`,
    hint: 'use the executable of the server, or restart the server with this one',
  }
}

function describe(thrown: unknown): ControlError {
  if (thrown instanceof UsageError) return { kind: 'usage', message: thrown.message, hint: thrown.hint }
  if (thrown instanceof AppError || thrown instanceof StoreError) {
    const { error: code, message, hint = null } = problemOf(thrown)
    return { kind: 'refused', code, message, hint }
  }
  return { kind: 'failed', message: thrown instanceof Error ? thrown.message : String(thrown), hint: null }
}
