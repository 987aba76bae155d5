/** Runs the built executable as a user would: a server in a temporary folder on a free port, or one CLI verb. */
import { cpSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { buildIfStale } from '../../scripts/build.ts'
import { gcOptions, nodeOptions } from '../../server/system/environment.ts'
import { dropDatabaseOf, withEngine } from './engine.ts'
import { run } from './process.ts'
import { tempDir } from './temp-dir.ts'

/** The executable under test. */
export const binaryPath = join(import.meta.dir, '../../dist/sightglass')

export interface Exit {
  code: number
  stdout: string
  stderr: string
}

export interface Appliance extends AsyncDisposable {
  /** `http://127.0.0.1:<port>`, without a trailing slash. */
  url: string
  /** Of the second listener; null without `--ingest-listen`. */
  ingestUrl: string | null
  version: string
  dataDir: string
  pid: number
  stdout(): string
  /** The JSON log lines. */
  stderr(): string
  /** The one-time link for the first owner; rejects when none is printed within two seconds. */
  setupLink(): Promise<string>
  /** Runs a CLI verb on the same data folder: `cli('key', 'list', '--json')`. */
  cli(...args: string[]): Promise<Exit>
  /** SIGTERM: a graceful stop. Removes the data folder when `startAppliance` made it, unless `keepData`. */
  stop(): Promise<Exit>
  /** SIGKILL: the crash. Never removes data. */
  kill(): Promise<Exit>
  /** Resolves when it ends by itself. */
  exit(): Promise<Exit>
}

/** How long a verb may take. */
const verbTimeoutMs = 30_000

export interface ApplianceOptions {
  /** More options for `serve`. */
  args?: string[]
  env?: Record<string, string>
  /** An existing folder to serve. Without it a new one is made and removed at the end. */
  dataDir?: string
  /** A data folder of which the new one is a copy. */
  copyOf?: string
  /** Folder the process starts in; the data folder's parent by default. */
  cwd?: string
  readyTimeoutMs?: number
  verbTimeoutMs?: number
  /** Starts it as a user does: it sets its runtime options by executing itself again, for 25 ms of processor time. */
  restarts?: boolean
  /** Another executable, and its port. */
  binary?: string
  port?: number
}

/** A server ends the requests that are left 20 s after SIGTERM, and logs that. */
const stopMs = 30_000

/** Starts `dist/sightglass` (built first when sources are newer) and waits for its listening line. */
export async function startAppliance(options: ApplianceOptions = {}): Promise<Appliance> {
  await ensureBinary()
  const temp = options.dataDir === undefined ? tempDir('data') : null
  const dataDir = options.dataDir ?? join(temp?.path ?? '', 'data')
  if (options.copyOf !== undefined) cpSync(options.copyOf, dataDir, { recursive: true })
  const environment = await withEngine(dataDir, options.env, 'migrated')
  const env = cleanEnv(environment)
  const { binary = binaryPath, port = 0, restarts = false } = options
  const runtimeOptions = environment['SIGHTGLASS_DATABASE'] === undefined ? gcOptions : nodeOptions
  const command = [binary, 'serve', '--listen', `127.0.0.1:${port}`, '--data-dir', dataDir]
  const cwd = options.cwd ?? join(dataDir, '..')
  const child = run([...command, ...(options.args ?? [])], {
    cwd,
    env: restarts ? env : { ...runtimeOptions, ...env },
    asUsers: restarts,
  })
  const exit = async (): Promise<Exit> => {
    const code = await child.exited
    return { code, stdout: child.stdout(), stderr: child.stderr() }
  }
  const kill = (): Promise<Exit> => {
    child.signal('SIGKILL')
    return exit()
  }
  const stop = async (): Promise<Exit> => {
    const startMs = performance.now()
    child.signal('SIGTERM')
    const timer = setTimeout(() => child.signal('SIGKILL'), stopMs) // shows as code 137
    const result = await exit()
    clearTimeout(timer)
    const tookMs = performance.now() - startMs
    if (tookMs > stopMs / 2) console.error(`stopping took ${Math.round(tookMs)} ms\n${result.stderr}`)
    if (temp !== null) await dropDatabaseOf(dataDir)
    temp?.remove()
    return result
  }
  try {
    const ready = await child.line(parseListening, options.readyTimeoutMs ?? 60_000)
    const ingestUrl = options.args?.some((arg) => arg.startsWith('--ingest-listen'))
      ? await child.line(parseIngestListening, 2_000)
      : null
    return {
      ...ready,
      ingestUrl,
      dataDir,
      pid: child.pid,
      stdout: child.stdout,
      stderr: child.stderr,
      setupLink: () => child.line(parseSetupLink, 2_000),
      cli: (...args) => cli(args, { dataDir, env, cwd, timeoutMs: options.verbTimeoutMs ?? verbTimeoutMs }),
      stop,
      kill,
      exit,
      [Symbol.asyncDispose]: async () => {
        await stop()
      },
    }
  } catch (error) {
    await kill()
    temp?.remove()
    throw error
  }
}

export interface CliOptions {
  dataDir?: string
  env?: Record<string, string>
  cwd?: string
  stdin?: string
  timeoutMs?: number
  asUsers?: boolean
}

/** Runs one verb of the executable to its end. Code 137 means that it hung and was killed. */
export async function cli(args: string[], options: CliOptions = {}): Promise<Exit> {
  await ensureBinary()
  const dataFlags = options.dataDir === undefined ? [] : ['--data-dir', options.dataDir]
  using empty = tempDir('cwd') // never the checkout: no verb may depend on where it is started
  const child = run([binaryPath, ...args, ...dataFlags], {
    cwd: options.cwd ?? empty.path,
    env: cleanEnv(await withEngine(options.dataDir, options.env)),
    ...(options.stdin === undefined ? {} : { stdin: options.stdin }),
    asUsers: options.asUsers === true,
  })
  const timer = setTimeout(() => child.signal('SIGKILL'), options.timeoutMs ?? verbTimeoutMs)
  const code = await child.exited
  clearTimeout(timer)
  return { code, stdout: child.stdout(), stderr: child.stderr() }
}

/** `sightglass <version> listening on <url>` (contract §10), or null for any other line. */
export function parseListening(line: string): { version: string; url: string } | null {
  const match = /^sightglass (\S+) listening on (https?:\/\/\S+?)\/?$/.exec(line)
  return match === null ? null : { version: match[1] ?? '', url: match[2] ?? '' }
}

/** `ingest listening on <url>`, or null. */
export function parseIngestListening(line: string): string | null {
  return /^ingest listening on (https?:\/\/\S+?)\/?$/.exec(line)?.[1] ?? null
}

/** The link in the first line with an address that is not a listening line, or null. */
export function parseSetupLink(line: string): string | null {
  if (parseListening(line) !== null || parseIngestListening(line) !== null) return null
  return /https?:\/\/\S+/.exec(line)?.[0] ?? null
}

let ready: Promise<void> | null = null

/** Builds once per process. With SIGHTGLASS_TEST_BINARY=built the runner guarantees that the executable is current. */
function ensureBinary(): Promise<void> {
  ready ??= (async () => {
    if (process.env.SIGHTGLASS_TEST_BINARY === 'built' && existsSync(binaryPath)) return
    await buildIfStale()
  })()
  return ready
}

export function cleanEnv(variables: Record<string, string> = {}): Record<string, string> {
  return { PATH: process.env.PATH ?? '', HOME: tempHome(), TZ: 'UTC', ...variables }
}

let home: string | null = null
function tempHome(): string {
  home ??= tempDir('home').path
  return home
}
