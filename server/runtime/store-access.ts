/** Runs a command's work where the data folder is held: in the server through its socket, or in this process. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { isStoreErrorKind, StoreError } from '../../db/contract/errors.ts'
import type { Json } from '../../db/contract/store.ts'
import type { Clock } from '../clock.ts'
import { AppError, errorStatus, UsageError, type ErrorCode } from '../errors.ts'
import type { ServerState } from '../operations/doctor/server-checks.ts'
import { lazySecretBox } from '../system/encryption.ts'
import { version } from '../system/version.ts'
import { addressGuard, resolveWith, systemResolver } from '../webhooks/sinks/addresses.ts'
import { controlPath, type ControlAnswer, type ControlError, type ControlRequest } from './control-socket.ts'
import { openDataFolder, openToRead } from './open-data-folder.ts'
import type { Params, WorkContext, WorkTable } from './work.ts'

export interface StoreAccess {
  call(verb: string, params: Params): Promise<Json>
  /** Whether a running server does the work. */
  byServer: boolean
  close(): Promise<void>
}

export interface AccessOptions {
  dataDir: string
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

async function openHere({ dataDir, baseUrl, clock, work, access }: AccessOptions): Promise<StoreAccess> {
  if (access !== 'create' && !existsSync(join(dataDir, 'sightglass.db'))) {
    throw new AppError('not_found', `There is no data in ${dataDir}.`, {
      hint: 'set the folder with --data-dir',
    })
  }
  const store = access === 'read' ? await openToRead(dataDir, clock) : await openDataFolder(dataDir, clock)
  const webhooks: WorkContext['webhooks'] = ({ allow, sinkDir }) => {
    const resolve = resolveWith(systemResolver, addressGuard(allow))
    return { store, clock, box: lazySecretBox(dataDir), resolve, sinkDir }
  }
  const context: WorkContext = { store, clock, baseUrl, webhooks }
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

function throughServer(dataDir: string): StoreAccess {
  return {
    byServer: true,
    async call(verb, params) {
      const answer = await send(dataDir, { version, verb, params })
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

async function send(dataDir: string, request: ControlRequest): Promise<ControlAnswer> {
  const body = JSON.stringify(request)
  try {
    const response = await fetch('http://localhost/', { unix: controlPath(dataDir), method: 'POST', body })
    return (await response.json()) as ControlAnswer
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new AppError('internal_error', `The server ended before it answered (${reason}).`, {
      hint: 'check whether the change was made before you repeat the command',
    })
  }
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
  const unix = controlPath(dataDir)
  if (!existsSync(unix)) return null
  try {
    const body = JSON.stringify({ version, verb: 'server state', params: {} })
    const signal = AbortSignal.timeout(stateWaitMs)
    const response = await fetch('http://localhost/', { unix, method: 'POST', body, signal })
    const answer = (await response.json()) as ControlAnswer
    return 'error' in answer
      ? { problem: answer.error.message }
      : { state: answer.result as unknown as ServerState }
  } catch (error) {
    const timedOut = error instanceof Error && error.name === 'TimeoutError'
    return timedOut ? { problem: `no answer within ${stateWaitMs / 1_000} s` } : null
  }
}
