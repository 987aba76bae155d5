/** The systemd service: its unit, installation, removal and state. Never touches the data folder. */
import {
  chmodSync,
  constants,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { syncFile, syncFolder } from '../../../db/rules/durable-files.ts'
import { AppError } from '../../errors.ts'

interface ServicePlace {
  unitDir: string
  executable: string // path in the unit
}

interface ServiceState {
  installed: boolean
  enabled: boolean
  active: string // state from systemd: active, inactive, failed …
  unit: string // path
}

/** Copies this executable, writes the unit and starts it. Running it again upgrades both. */
export async function installUnit({ unitDir, executable }: ServicePlace, unit: string): Promise<void> {
  requireSystemd()
  const path = join(unitDir, unitName)
  try {
    if (process.execPath !== executable) copyExecutable(executable)
    mkdirSync(unitDir, { recursive: true })
    rmSync(`${path}.new`, { force: true }) // a link is not followed
    writeFileSync(`${path}.new`, unit, { mode: 0o644, flag: 'wx' })
    chmodSync(`${path}.new`, 0o644)
    replace(`${path}.new`, path)
  } catch (error) {
    throw notAllowed(error)
  }
  await systemctl('daemon-reload')
  await systemctl('enable', unitName)
  await systemctl('restart', unitName)
}

function copyExecutable(executable: string): void {
  mkdirSync(dirname(executable), { recursive: true })
  const draft = `${executable}.new`
  rmSync(draft, { force: true })
  copyFileSync(process.execPath, draft, constants.COPYFILE_EXCL)
  chmodSync(draft, 0o755)
  replace(draft, executable) // a running process keeps its file
}

/** Syncs before the rename: a power cut must not leave an empty executable. */
function replace(draft: string, path: string): void {
  syncFile(draft)
  renameSync(draft, path)
  syncFolder(dirname(path))
}

/** Stops and removes the service. Returns false when there was none. */
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
  const enabled = (await stateOf('is-enabled', unitName)) === 'enabled'
  return { installed, enabled, active: await stateOf('is-active', unitName), unit }
}

/** What an installed unit runs; null without one, or without systemd. */
export function installedUnit(unitDir: string): { executable: string; dataDir: string } | null {
  const unit = join(unitDir, unitName)
  if (!existsSync(unit) || Bun.which('systemctl') === null) return null
  const line = /^ExecStart=(.*)$/m.exec(readFileSync(unit, 'utf8'))?.[1] ?? ''
  const [executable = '', ...flags] = line.match(/"(?:[^"\\]|\\.)*"|\S+/g)?.map(unquoted) ?? []
  const dataDirFlag = flags.findLast((flag) => flag.startsWith('--data-dir='))
  return { executable, dataDir: dataDirFlag?.slice('--data-dir='.length) ?? stateFolder }
}

export function controlUnit(action: 'start' | 'stop'): Promise<void> {
  return systemctl(action, unitName)
}

function requireSystemd(): void {
  if (Bun.which('systemctl') !== null) return
  throw new AppError('conflict', 'This machine has no systemctl.', {
    hint: 'without systemd, let your supervisor run "sightglass serve"; "sightglass service install --dry-run" prints the unit',
  })
}

async function systemctl(...args: string[]): Promise<void> {
  const child = Bun.spawn(['systemctl', ...args], { stdin: 'ignore', stdout: 'ignore', stderr: 'pipe' })
  const [code, output] = await Promise.all([child.exited, new Response(child.stderr).text()])
  if (code === 0) return
  throw new AppError(
    'conflict',
    `systemctl ${args.join(' ')} failed: ${output.trim() || `exit code ${code}`}`,
    {
      hint: `see journalctl -u ${unitName}`,
    },
  )
}

/** Both print a word; their exit code repeats it. */
async function stateOf(query: 'is-active' | 'is-enabled', unit: string): Promise<string> {
  const child = Bun.spawn(['systemctl', query, unit], {
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'ignore',
  })
  const output = await new Response(child.stdout).text()
  return output.trim() || 'unknown'
}

function notAllowed(error: unknown): Error {
  const code = error instanceof Error && 'code' in error ? error.code : null
  if (code !== 'EACCES' && code !== 'EPERM' && code !== 'EROFS') return error as Error
  return new AppError('forbidden', 'Installing a service needs root.', {
    hint: 'sudo sightglass service install',
  })
}

interface UnitOptions {
  executable: string // absolute
  flags: string[] // of serve, for ExecStart
  lowPort: boolean // whether it listens below port 1024
  writableFolders: string[] // besides the data folder, such as the one of backups
  runtimeFolder: boolean // whether a listener has a socket in /run/sightglass
  account: 'dynamic' | 'static' // a package creates its account, and systemd one that exists while the service runs
}

export const unitName = 'sightglass.service'
export const stateFolder = '/var/lib/sightglass'
export const runtimeFolderPath = '/run/sightglass'
export const environmentFile = '/etc/sightglass/environment'

export function unitText({
  executable,
  flags,
  lowPort,
  writableFolders,
  runtimeFolder,
  account,
}: UnitOptions): string {
  const capability = lowPort ? 'CAP_NET_BIND_SERVICE' : ''
  const lines = [
    '[Unit]',
    'Description=Sightglass, a record of the AI agents that visit your site',
    'Wants=network-online.target',
    'After=network-online.target',
    '',
    '[Service]',
    'Type=exec',
    `ExecStart=${[executable, 'serve', ...flags].map(quoted).join(' ')}`,
    'ExecReload=/bin/kill -HUP $MAINPID',
    '# Secrets such as SIGHTGLASS_BACKUP_PASSPHRASE=…, in a file with mode 0600.',
    `EnvironmentFile=-${environmentFile}`,
    '# Variables that change what the executable does.',
    'UnsetEnvironment=BUN_BE_BUN BUN_OPTIONS NODE_OPTIONS LD_PRELOAD',
    '# The server exits to be restarted when memory runs out.',
    'Restart=always',
    'RestartSec=2',
    'TimeoutStopSec=40',
    'LimitNOFILE=65536',
    '',
    ...(account === 'dynamic' ? ['DynamicUser=yes'] : []),
    'User=sightglass',
    'StateDirectory=sightglass',
    'StateDirectoryMode=0700',
    'UMask=0077',
    ...(runtimeFolder
      ? [
          '# Folder of its socket. Set Group= to the group of the proxy to let it connect.',
          'RuntimeDirectory=sightglass',
          'RuntimeDirectoryMode=0750',
        ]
      : []),
    ...writableFolders.map((folder) => `ReadWritePaths=${quoted(folder)}`),
    '',
    `AmbientCapabilities=${capability}`,
    `CapabilityBoundingSet=${capability}`,
    // CAP_NET_BIND_SERVICE has no effect in a user namespace of the service.
    ...(lowPort ? [] : ['PrivateUsers=yes']),
    ...hardening,
    '',
    '[Install]',
    'WantedBy=multi-user.target',
    '',
  ]
  return lines.join('\n')
}

/** No MemoryDenyWriteExecute: the runtime compiles at run time. */
const hardening = [
  'NoNewPrivileges=yes',
  'ProtectSystem=strict',
  'ProtectHome=yes',
  'PrivateTmp=yes',
  'PrivateDevices=yes',
  'ProtectProc=invisible',
  'ProtectClock=yes',
  'ProtectControlGroups=yes',
  'ProtectHostname=yes',
  'ProtectKernelLogs=yes',
  'ProtectKernelModules=yes',
  'ProtectKernelTunables=yes',
  'RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX',
  'RestrictNamespaces=yes',
  'RestrictRealtime=yes',
  'RestrictSUIDSGID=yes',
  'RemoveIPC=yes',
  'LockPersonality=yes',
  'SystemCallArchitectures=native',
  'SystemCallFilter=@system-service',
  'SystemCallFilter=~@privileged',
  'SystemCallErrorNumber=EPERM',
]

/** Quotes an argument for systemd, with its specifiers and variables escaped. */
function quoted(text: string): string {
  const safe = text.replaceAll('%', '%%').replaceAll('$', '$$$$')
  return /^[\w@%+=:,./$-]+$/.test(safe) ? safe : `"${safe.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`
}

function unquoted(word: string): string {
  const text = word.startsWith('"') ? word.slice(1, -1).replace(/\\(.)/g, '$1') : word
  return text.replaceAll('%%', '%').replaceAll('$$', '$')
}
