/** The control socket: while a server holds the data folder, verbs of the command line hand their work to it. */
import { chmodSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { StoreError } from '../../db/contract/errors.ts'
import type { Json } from '../../db/contract/store.ts'
import type { Params } from './params.ts'
import { problemOf } from './problem.ts'
import { storeVerbs } from '../cli/commands/store-verbs.ts'
import type { VerbContext } from './verb-context.ts'
import { AppError, UsageError } from '../errors.ts'
import type { Log } from '../log.ts'
import { version } from '../system/version.ts'

export interface ControlRequest {
  version: string
  verb: string
  params: Params
}

export type ControlAnswer = { result: Json } | { error: ControlError }

export interface ControlError {
  kind: 'usage' | 'refused' | 'failed'
  /** Of what was refused: a code of the API or of the store. */
  code?: string
  message: string
  hint: string | null
}

/** One export, import or filling of the demo is many of these; its begin is told, and that is enough. */
const steps = new Set(['demo append', 'export audit page', 'export traces page', 'import append'])

const requestBytesMax = 32 * 1024 * 1024

export function controlPath(dataDir: string): string {
  return join(dataDir, 'control.sock')
}

/** Answers on `control.sock`. Only for the holder of the folder's lock: it replaces a socket left by a crash. */
export async function startControl(
  options: VerbContext & { dataDir: string; log: Log },
): Promise<{ stop(): Promise<void> }> {
  const path = controlPath(options.dataDir)
  rmSync(path, { force: true })
  const server = Bun.serve({
    unix: path,
    development: false,
    maxRequestBodySize: requestBytesMax,
    fetch(request, of) {
      // Large work takes as long as it takes; the other end waits for it.
      of.timeout(request, 0)
      return answer(request, options)
    },
  })
  // The folder is 0700 already; the socket says it once more, whatever the umask was.
  chmodSync(path, 0o600)
  return { stop: () => server.stop() }
}

async function answer(request: Request, options: VerbContext & { log: Log }): Promise<Response> {
  const { log } = options
  let verb = ''
  try {
    const asked = (await request.json()) as Partial<ControlRequest>
    if (asked.version !== version) return Response.json({ error: wrongVersion(String(asked.version)) })
    verb = String(asked.verb)
    const run = Object.hasOwn(storeVerbs, verb) ? storeVerbs[verb] : undefined
    if (!run) throw new UsageError(`the server has no verb "${verb}"`)
    const result = await run(options, asked.params ?? {})
    log[steps.has(verb) ? 'debug' : 'info']('control_verb', { verb })
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
    message: `the server of this data folder runs ${version}, this command is ${cliVersion}`,
    hint: 'use the executable the server was started with, or restart the server with this one',
  }
}

function describe(thrown: unknown): ControlError {
  if (thrown instanceof UsageError) return { kind: 'usage', message: thrown.message, hint: thrown.hint }
  if (thrown instanceof AppError) {
    return { kind: 'refused', code: thrown.code, message: thrown.message, hint: thrown.details.hint ?? null }
  }
  if (thrown instanceof StoreError) {
    const { error: code, message, hint = null } = problemOf(thrown)
    return { kind: 'refused', code, message, hint }
  }
  return { kind: 'failed', message: thrown instanceof Error ? thrown.message : String(thrown), hint: null }
}
