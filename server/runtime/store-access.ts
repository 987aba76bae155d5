/** Gets a verb's work done: by the server that holds the data folder, or here when none does. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { isStoreErrorKind, StoreError } from '../../db/contract/errors.ts'
import type { Json } from '../../db/contract/store.ts'
import type { Clock } from '../clock.ts'
import { controlPath, type ControlAnswer, type ControlError, type ControlRequest } from './control-socket.ts'
import { AppError, type ErrorCode, UsageError, errorStatus } from '../errors.ts'
import { lazySecretBox } from '../system/secrets.ts'
import { version } from '../system/version.ts'
import { addressGuard } from '../webhooks/delivery/address-guard.ts'
import { resolveWith, systemResolver } from '../webhooks/delivery/resolve.ts'
import { openDataFolder, openToRead } from './open-data-folder.ts'
import type { Params } from './params.ts'
import { storeVerbs } from '../cli/commands/store-verbs.ts'
import type { VerbContext } from './verb-context.ts'

export interface DataAccess {
  call(verb: string, params: Params): Promise<Json>
  /** Whether a running server does the work. */
  byServer: boolean
  close(): Promise<void>
}

export interface DataWanted {
  dataDir: string
  baseUrl: string // for links, when no server runs that knows its own
  clock: Clock
  /** Lists never write, so they do not make a folder either. */
  create: boolean
  onlyReads?: boolean
}

// A server that starts or stops holds the lock for a moment without answering; another verb does for its work.
const waitMs = 5_000
const retryMs = 100

export async function openData(wanted: DataWanted): Promise<DataAccess> {
  const deadlineMs = performance.now() + waitMs
  for (;;) {
    if (await serverAnswers(wanted.dataDir)) return throughServer(wanted.dataDir)
    try {
      return await openHere(wanted)
    } catch (error) {
      const locked = error instanceof StoreError && error.kind === 'locked'
      if (!locked || performance.now() > deadlineMs) throw error
      await Bun.sleep(retryMs)
    }
  }
}

async function openHere({
  dataDir,
  baseUrl,
  clock,
  create,
  onlyReads = false,
}: DataWanted): Promise<DataAccess> {
  if (!create && !existsSync(join(dataDir, 'sightglass.db'))) {
    throw new AppError('not_found', `There is no data in ${dataDir}.`, {
      hint: 'name the folder with --data-dir',
    })
  }
  const store = onlyReads ? await openToRead(dataDir, clock) : await openDataFolder(dataDir, clock)
  const webhooks: VerbContext['webhooks'] = ({ allow, sinkDir }) => {
    const resolve = resolveWith(systemResolver, addressGuard(allow))
    return { store, clock, box: lazySecretBox(dataDir), resolve, sinkDir }
  }
  const context = { store, clock, baseUrl, ingestUrl: null, webhooks }
  return {
    byServer: false,
    call(verb, params) {
      const run = storeVerbs[verb]
      if (!run) throw new Error(`no work is written for "${verb}"`)
      return run(context, params)
    },
    close: () => store.close(),
  }
}

function throughServer(dataDir: string): DataAccess {
  return {
    byServer: true,
    async call(verb, params) {
      const answer = await ask(dataDir, { version, verb, params })
      if ('result' in answer) return answer.result
      throw thrownBy(answer.error)
    },
    close: async () => {},
  }
}

/** What the server refused reads here as if it had been refused here. */
function thrownBy({ kind, code, message, hint }: ControlError): Error {
  if (kind === 'usage') return new UsageError(message, hint)
  const details = hint === null ? {} : { hint }
  if (code !== undefined && Object.hasOwn(errorStatus, code))
    return new AppError(code as ErrorCode, message, details)
  if (isStoreErrorKind(code)) return new StoreError(code, message)
  return new AppError(kind === 'refused' ? 'conflict' : 'internal_error', message, details)
}

async function ask(dataDir: string, request: ControlRequest): Promise<ControlAnswer> {
  const body = JSON.stringify(request)
  try {
    const response = await fetch('http://localhost/', { unix: controlPath(dataDir), method: 'POST', body })
    return (await response.json()) as ControlAnswer
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new AppError('internal_error', `The server ended before it answered (${reason}).`, {
      hint: 'look at what it did before you try again',
    })
  }
}

/** A connection alone: a socket file that a crash left behind refuses it. */
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
