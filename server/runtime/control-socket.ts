/** The control socket: commands on the same machine send their work to the server that holds the data folder. */
import { chmodSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { StoreError } from '../../db/contract/errors.ts'
import type { Json } from '../../db/contract/store.ts'
import { AppError, UsageError } from '../errors.ts'
import type { Log } from '../log.ts'
import { version } from '../system/version.ts'
import { problemOf, type Params, type RunningServices, type WorkContext, type WorkTable } from './work.ts'

export interface ControlRequest {
  version: string
  verb: string
  params: Params
}

export type ControlAnswer = { result: Json } | { error: ControlError }

export interface ControlError {
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
    fetch(request, of) {
      of.timeout(request, 0) // a backup or an erasure may take minutes
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

/** Batches of one export, import or demo are logged at debug: their `begin` is logged at info. */
const isBatch = (verb: string) => / (?:append|page)$/.test(verb)

async function answer(request: Request, { context, log, work }: ControlOptions): Promise<Response> {
  let verb = ''
  try {
    const sent = (await request.json()) as Partial<ControlRequest>
    if (sent.version !== version) return Response.json({ error: wrongVersion(String(sent.version)) })
    verb = String(sent.verb)
    const run = work.get(verb) ?? ownWork.get(verb)
    if (!run) throw new UsageError(`the server has no verb "${verb}"`)
    const result = await run(context, sent.params ?? {})
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
