/** Installs, removes and asks about the systemd service; the data folder is never touched. */
import { chmodSync, copyFileSync, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { syncFile, syncFolder } from '../../../db/rules/durable-files.ts'
import { AppError } from '../../errors.ts'
import { unitName } from './unit.ts'

export interface ServicePlace {
  unitDir: string
  executable: string // where the unit finds it
}

export interface ServiceState {
  installed: boolean
  enabled: boolean
  active: string // as systemd says: active, inactive, failed …
  unit: string // path
}

/** Copies this executable to its place, writes the unit and starts it; doing it again upgrades both. */
export async function installUnit({ unitDir, executable }: ServicePlace, unit: string): Promise<void> {
  requireSystemd()
  const path = join(unitDir, unitName)
  try {
    if (process.execPath !== executable) placeExecutable(executable)
    mkdirSync(unitDir, { recursive: true })
    writeFileSync(`${path}.new`, unit, { mode: 0o644 })
    chmodSync(`${path}.new`, 0o644)
    place(`${path}.new`, path)
  } catch (error) {
    throw notAllowed(error)
  }
  await systemctl('daemon-reload')
  await systemctl('enable', unitName)
  await systemctl('restart', unitName)
}

function placeExecutable(executable: string): void {
  mkdirSync(dirname(executable), { recursive: true })
  const draft = `${executable}.new`
  copyFileSync(process.execPath, draft)
  chmodSync(draft, 0o755)
  place(draft, executable) // a running one keeps the file it has
}

/** On disk before it has its name: an executable that a power cut leaves empty starts no more. */
function place(draft: string, path: string): void {
  syncFile(draft)
  renameSync(draft, path)
  syncFolder(dirname(path))
}

/** Stops and forgets the service. Returns false when there was none. */
export async function uninstallUnit({ unitDir }: Pick<ServicePlace, 'unitDir'>): Promise<boolean> {
  requireSystemd()
  const path = join(unitDir, unitName)
  if (!existsSync(path)) return false
  await systemctl('disable', '--now', unitName)
  try {
    rmSync(path)
  } catch (error) {
    throw notAllowed(error)
  }
  await systemctl('daemon-reload')
  return true
}

export async function serviceState({ unitDir }: Pick<ServicePlace, 'unitDir'>): Promise<ServiceState> {
  const unit = join(unitDir, unitName)
  const installed = existsSync(unit)
  if (!installed || Bun.which('systemctl') === null)
    return { installed, enabled: false, active: 'unknown', unit }
  const enabled = (await asked('is-enabled', unitName)) === 'enabled'
  return { installed, enabled, active: await asked('is-active', unitName), unit }
}

function requireSystemd(): void {
  if (Bun.which('systemctl') !== null) return
  throw new AppError('conflict', 'This machine has no systemctl.', {
    hint: 'sightglass service install --dry-run prints the unit; without systemd have your supervisor run "sightglass serve"',
  })
}

async function systemctl(...args: string[]): Promise<void> {
  const child = Bun.spawn(['systemctl', ...args], { stdin: 'ignore', stdout: 'ignore', stderr: 'pipe' })
  const [code, said] = await Promise.all([child.exited, new Response(child.stderr).text()])
  if (code === 0) return
  throw new AppError(
    'conflict',
    `systemctl ${args.join(' ')} failed: ${said.trim() || `exit code ${code}`}`,
    {
      hint: `see journalctl -u ${unitName}`,
    },
  )
}

/** These two answer with words and an exit code that says the same. */
async function asked(question: 'is-active' | 'is-enabled', unit: string): Promise<string> {
  const child = Bun.spawn(['systemctl', question, unit], {
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'ignore',
  })
  const said = await new Response(child.stdout).text()
  return said.trim() || 'unknown'
}

function notAllowed(error: unknown): Error {
  const code = error instanceof Error && 'code' in error ? error.code : null
  if (code !== 'EACCES' && code !== 'EPERM' && code !== 'EROFS') return error as Error
  return new AppError('forbidden', 'Installing a service needs root.', {
    hint: 'sudo sightglass service install',
  })
}
