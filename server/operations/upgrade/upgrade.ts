/**
 * Replaces the executable by that of another release: backup, stop, swap, start, and back to the previous one when the
 * server does not become ready. Works on the data with the executables only, because each release reads its own.
 */
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmSync,
  rmdirSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { syncFile, syncFolder } from '../../../db/rules/durable-files.ts'
import { AppError } from '../../errors.ts'
import { listBackups } from '../backup/backup-folder.ts'
import { readOwner } from '../backup/owner.ts'
import type { ReleaseFile } from './release-file.ts'

/** How the server is stopped and started. */
export interface ServerControl {
  stop(): Promise<void>
  start(): Promise<void>
}

interface UpgradeOptions {
  executable: string // to replace
  release: ReleaseFile
  dataDir: string
  /** Options for every command, such as --config. */
  flags: string[]
  environment: Record<string, string> // of commands
  control: ServerControl | null // null: the operator restarts it
  isRunning(): Promise<boolean>
  /** Whether a process of the executable is a server. */
  isServing(): boolean
  /** Without the time of a migration. */
  waitMs: number
  nowMs: number
  say(line: string): void
}

export interface Upgraded {
  version: string
  previous: string // version
  previousExecutable: string
  backup: string | null
  migrates: boolean // the previous executable cannot read the data after that
  restarted: boolean
}

export async function upgrade(options: UpgradeOptions): Promise<Upgraded> {
  const { executable, release, say, control } = options
  const draft = `${executable}.new`
  const previous = (await versionOf(executable)).version
  const { version } = await stage(draft, release.executable).catch(cleaning(draft))
  say(`Verified ${release.name}: version ${version}, ${release.signed ? 'signed' : 'not signed, trusted'}.`)
  const data = await requireReadable(options, draft, version).catch(cleaning(draft))
  const schema = data?.state ?? null
  const backup = data?.backsUp === true ? await backUp(options).catch(cleaning(draft)) : null
  if (backup !== null) say(`Backup: ${backup.path}`)
  if (data?.backsUp === false)
    say(
      'No backup was made: the database is backed up with its own tools. A migration cannot be undone without one.',
    )
  const wasRunning = await options.isRunning()
  const answer = {
    version,
    previous,
    previousExecutable: `${executable}.previous`,
    backup: backup?.path ?? null,
    migrates: schema === 'pending',
  }
  if (control === null || !wasRunning) {
    swap(executable, draft)
    return { ...answer, restarted: false }
  }
  const endProtection = ignoreSignals()
  try {
    options = { ...options, isServing: observable(options) }
    await stop(options, control).catch(cleaning(draft))
    swap(executable, draft)
    say(`Stopped the server and installed ${version}.`)
    const allowedMs = options.waitMs + (schema === 'pending' ? migrationMs(backup?.events ?? 0) : 0)
    const problem = await startAndWait(options, control, allowedMs)
    if (problem === null) return { ...answer, restarted: true }
    const backupDir = backup === null ? null : dirname(backup.path)
    return await rollBack(options, control, { version, previous, problem, backupDir })
  } finally {
    endProtection()
  }
}

/** Three times what the CHANGELOG says of the slowest migration. */
const migrationMs = (events: number): number => 60_000 + (events / 1_000_000) * 30_000

/** A session that ends must not leave the server stopped. */
function ignoreSignals(): () => void {
  const ignore = (): void => undefined
  const signals = ['SIGHUP', 'SIGINT', 'SIGTERM'] as const
  for (const signal of signals) process.on(signal, ignore)
  return () => signals.forEach((signal) => process.off(signal, ignore))
}

const cleaning =
  (draft: string) =>
  (error: unknown): never => {
    rmSync(draft, { force: true })
    throw error
  }

/** Writes the executable beside the one to replace and starts it once. */
async function stage(draft: string, bytes: Uint8Array): Promise<{ version: string }> {
  try {
    rmSync(draft, { force: true })
    writeFileSync(draft, bytes, { mode: 0o755, flag: 'wx' })
    chmodSync(draft, 0o755)
    syncFile(draft)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    if (!['EACCES', 'EPERM', 'EROFS'].includes(code)) throw error
    throw new AppError('forbidden', `${dirname(draft)} is not writable (${code}).`, {
      hint:
        code === 'EROFS' ? 'in a container, start the image of the new release' : 'run it as root, with sudo',
    })
  }
  return versionOf(draft)
}

async function versionOf(executable: string): Promise<{ version: string }> {
  const ran = await start([executable, 'version', '--json'], {})
  const answer = parsed(ran.stdout)
  if (ran.code === 0 && typeof answer?.['version'] === 'string') return { version: answer['version'] }
  throw new AppError('conflict', `The executable does not run on this machine: ${reasonOf(ran)}`, {
    hint: 'use the file of the release for this system and CPU',
  })
}

/** A rename replaces the executable at once; the running server keeps its file. */
function swap(executable: string, draft: string): void {
  const previous = `${executable}.previous`
  rmSync(`${previous}.new`, { force: true })
  linkSync(executable, `${previous}.new`)
  renameSync(`${previous}.new`, previous)
  renameSync(draft, executable)
  syncFolder(dirname(executable))
}

interface DataState {
  state: 'current' | 'pending' | 'newer'
  /** False for a database that other tools back up. The commands know it by the settings of the server. */
  backsUp: boolean
}

/** Null without data. Throws when the release cannot read it. */
async function requireReadable(
  options: UpgradeOptions,
  executable: string,
  version: string,
): Promise<DataState | null> {
  const data = await stateOf(options, executable)
  if (data?.state !== 'newer') return data
  throw new AppError('conflict', `Release ${version} cannot read the data, which a newer release wrote.`, {
    hint: 'use a newer release, or restore a backup',
  })
}

async function stateOf(options: UpgradeOptions, executable: string): Promise<DataState | null> {
  const ran = await inData(options, executable, 'migrate', 'status')
  const { state, backups } = parsed(ran.stdout) ?? {}
  if (state === 'current' || state === 'pending' || state === 'newer')
    return { state, backsUp: backups !== 'tools' }
  if (parsed(ran.stderr)?.['error'] === 'not_found') return null
  throw new AppError('conflict', `The data cannot be read: ${reasonOf(ran)}`)
}

/** By the running server, with its settings, or without one. */
async function backUp(options: UpgradeOptions): Promise<{ path: string; events: number }> {
  const ran = await inData(options, options.executable, 'backup', 'create')
  const answer = parsed(ran.stdout)
  if (ran.code === 0 && typeof answer?.['path'] === 'string')
    return { path: answer['path'], events: Number(answer['events']) }
  throw new AppError('conflict', `Nothing was changed, because no backup could be created: ${reasonOf(ran)}`)
}

const stopWaitMs = 60_000
const pollMs = 250

async function stop({ isRunning }: UpgradeOptions, control: ServerControl): Promise<void> {
  await control.stop()
  for (const endMs = performance.now() + stopWaitMs; await isRunning(); await Bun.sleep(pollMs)) {
    if (performance.now() > endMs)
      throw new AppError('conflict', 'Nothing was changed, because the server did not stop.', {
        hint: 'check the command of --stop',
      })
  }
}

/**
 * On systems without /proc, or where it hides the processes of others, nothing is seen while the old server runs: then
 * only `waitMs` ends the wait for the new one.
 */
function observable({ isServing }: UpgradeOptions): () => boolean {
  return isServing() ? isServing : () => true
}

/** A shell may start the server a moment after it returned; systemd starts a failed one again after 2 s. */
const endedMs = 1_500

/** Null when the server is ready, otherwise what is wrong. */
async function startAndWait(
  options: UpgradeOptions,
  control: ServerControl,
  allowedMs: number,
): Promise<string | null> {
  const endMs = performance.now() + allowedMs
  try {
    await control.start()
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
  for (let seenMs = performance.now(); ; await Bun.sleep(pollMs)) {
    const isServing = options.isServing()
    const ran = await inData(options, options.executable, 'ready')
    if (ran.code === 0) return null
    if (isServing || options.isServing()) seenMs = performance.now()
    else if (performance.now() - seenMs > endedMs) return 'its process ended.'
    if (performance.now() > endMs)
      return `it was not ready within ${Math.round(allowedMs / 1_000)} s: ${reasonOf(ran)}`
  }
}

interface Failed {
  version: string
  previous: string
  problem: string
  backupDir: string | null
}

/** Always throws: with the previous release running again, or with what the operator must do. */
async function rollBack(
  options: UpgradeOptions,
  control: ServerControl,
  { version, previous, problem, backupDir }: Failed,
): Promise<never> {
  const { executable } = options
  options.say(`Release ${version} did not start: ${problem} Going back to ${previous}.`)
  await stop(options, control).catch(() => undefined)
  renameSync(`${executable}.previous`, executable)
  syncFolder(dirname(executable))
  const restored = await restoreOlderSchema(options, backupDir)
  const again = await startAndWait(options, control, options.waitMs)
  const failureText = `Release ${version} did not start: ${problem}`
  if (again !== null)
    throw new AppError('conflict', `${failureText} Neither does ${previous}: ${again}`, {
      hint: 'see the log of the server, and sightglass doctor',
    })
  throw new AppError('conflict', `${failureText} Release ${previous} runs again${restored}.`, {
    hint: 'see the log of the server for the reason',
  })
}

/** The new server makes a backup before it migrates, with everything that was acknowledged until then. */
async function restoreOlderSchema(options: UpgradeOptions, backupDir: string | null): Promise<string> {
  const data = await stateOf(options, options.executable)
  if (data?.state !== 'newer') return ''
  if (!data.backsUp)
    throw new AppError(
      'conflict',
      'The new release migrated the database, and the previous one, which is installed again, cannot read it. No server runs.',
      {
        hint: 'restore the backup of the database that you made, then start the server; or install the new release again and see its log',
      },
    )
  const backups =
    backupDir === null
      ? []
      : await listBackups(backupDir, readOwner({ dataDir: options.dataDir, dir: backupDir }))
  const backup = backups.find(
    ({ manifest }) => manifest?.reason === 'upgrade' && Date.parse(manifest.createdAt) >= options.nowMs,
  )
  if (backup === undefined)
    throw new AppError('conflict', 'The new release migrated the data, and no earlier backup was found.', {
      hint: 'restore a backup, then start the server',
    })
  const ran = await inData(options, options.executable, 'restore', backup.path, '--yes')
  if (ran.code !== 0)
    throw new AppError('conflict', `${backup.path} could not be restored: ${reasonOf(ran)}`, {
      hint: 'restore it, then start the server',
    })
  return ', with the data of before the migration; what it had migrated was moved aside'
}

interface Ran {
  code: number
  stdout: string
  stderr: string
}

/** As the owner of the data, so that its files stay the server's. */
async function inData(options: UpgradeOptions, executable: string, ...words: string[]): Promise<Ran> {
  const { dataDir, flags, environment } = options
  const command = [executable, ...words, '--json', '--data-dir', dataDir, ...flags]
  const owner = existsSync(dataDir) ? statSync(dataDir) : null
  if (process.getuid?.() !== 0 || owner === null || owner.uid === 0) return start(command, environment)
  const drop = ['setpriv', `--reuid=${owner.uid}`, `--regid=${owner.gid}`, '--clear-groups', '--']
  const folder = realpathSync(dataDir)
  const parent = statSync(dirname(folder))
  const isHidden = (parent.mode & 0o001) === 0 && parent.uid !== owner.uid
  if (!isHidden) return start([...drop, ...command], environment)
  const spare = mkdtempSync(join(tmpdir(), 'sightglass-'))
  const reveal = ['unshare', '--mount', 'sh', '-c', revealing, 'sh', folder, spare]
  return start([...reveal, ...drop, ...command], environment).finally(() => rmdirSync(spare))
}

/**
 * systemd has the folder of a dynamic account below one that only root may enter. As it does for the service, this
 * replaces that one by an empty one with the same folder in it, in a mount namespace of the command.
 */
const revealing = `set -e
mount --bind "$1" "$2"
mount -t tmpfs -o mode=0755 tmpfs "$(dirname "$1")"
mkdir "$1"
mount --bind "$2" "$1"
shift 2
exec "$@"`

async function start(args: string[], env: Record<string, string>): Promise<Ran> {
  try {
    const child = Bun.spawn(args, {
      cwd: '/',
      env,
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
    })
    const [code, stdout, stderr] = await Promise.all([
      child.exited,
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ])
    return { code, stdout, stderr }
  } catch (error) {
    return { code: 1, stdout: '', stderr: error instanceof Error ? error.message : String(error) }
  }
}

function parsed(text: string): { [name: string]: unknown } | null {
  try {
    return JSON.parse(text) as { [name: string]: unknown }
  } catch {
    return null
  }
}

/** The message of a command that failed, in one sentence. */
function reasonOf({ code, stdout, stderr }: Ran): string {
  const message = parsed(stderr)?.['message'] ?? parsed(stdout)?.['message']
  return typeof message === 'string' ? message : stderr.trim().split('\n').at(-1) || `exit code ${code}.`
}
