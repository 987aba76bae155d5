/** `sightglass upgrade`: replaces this executable by that of a release file, on a machine without a network. */
import { existsSync, readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs'
import { resolve } from 'node:path'
import { systemClock } from '../../clock.ts'
import { AppError, UsageError } from '../../errors.ts'
import { controlUnit, installedUnit } from '../../operations/service/install.ts'
import { readRelease } from '../../operations/upgrade/release-file.ts'
import { upgrade as upgradeTo, type ServerControl, type Upgraded } from '../../operations/upgrade/upgrade.ts'
import { runningServer } from '../../runtime/store-access.ts'
import { environmentOf } from '../../system/environment.ts'
import { command, type Invocation, type Noun, type Setting } from '../command.ts'
import { environmentTwin, folderPath, text, toggle, wholeNumber } from '../option.ts'
import { backupOptions } from '../options.ts'
import { print, printAnswer } from '../print.ts'
import { unitDir } from './service.ts'

const options = {
  key: file('FILE', 'public key (PEM, Ed25519) that signed the release, instead of the known ones'),
  trust: { ...toggle('install a file that is not signed with such a key'), flagOnly: true },
  stop: { ...text('COMMAND', 'how to stop the server, without systemd'), flagOnly: true },
  start: { ...text('COMMAND', 'how to start the server, without systemd'), flagOnly: true },
  wait: {
    read: wholeNumber(1, 86_400),
    value: 'SECONDS',
    default: '60',
    help: 'how long the new release may take until it is ready, besides a migration',
    flagOnly: true,
  },
  executable: file('FILE', 'executable to replace, by default this one'),
  ...unitDir,
  ...backupOptions,
} as const

function file(value: string, help: string) {
  return { read: folderPath, value, default: null, help, flagOnly: true } as const
}

type UpgradeInvocation = Invocation<typeof options>

export const upgrade: Noun = {
  group: 'Operations',
  commands: [
    command({
      name: 'upgrade',
      summary: 'install the executable of a release file, and go back if it does not start',
      arguments: 'FILE',
      about: [
        'FILE is sightglass-VERSION-PLATFORM.gz of a release, beside its SHA256SUMS and SHA256SUMS.sig. Needs no network.',
        'Verifies the checksum and the signature, creates a backup, replaces the executable atomically and restarts the systemd service. If the server is not ready in time, it reinstalls the previous executable and, after a migration, restores the backup. The previous executable stays beside the new one.',
        'Without systemd, --stop and --start are the commands that restart the server. Without them nothing restarts.',
      ],
      examples: [
        'sudo sightglass upgrade /media/usb/sightglass-0.2.0-linux-x64.gz',
        'sightglass upgrade ./sightglass-0.2.0-linux-x64.gz --stop "sv stop sightglass" --start "sv start sightglass"',
      ],
      options,
      run,
    }),
  ],
}

async function run(invocation: UpgradeInvocation): Promise<number> {
  const { words, values, settings } = invocation
  const [path] = words
  if (path === undefined)
    throw new UsageError('"sightglass upgrade" needs the file of a release', 'sightglass help upgrade')
  const executable = values.executable ?? process.execPath
  if (values.executable === null && !Bun.isStandaloneExecutable)
    throw new UsageError('only the built executable can replace itself; name one with --executable')
  requireOwnFile(executable)
  const release = readRelease(resolve(path), { keyFile: values.key, trust: values.trust })
  const unit = installedUnit(values['unit-dir'])
  const isUnit = unit !== null && unit.executable === executable
  const dataGiven = settings.some(({ name, source }) => name === 'data-dir' && source !== 'default')
  const dataDir = isUnit && !dataGiven ? unit.dataDir : values['data-dir']
  const server = await runningServer(dataDir)
  const pid = server !== null && 'state' in server ? server.state.pid : null
  const upgraded = await upgradeTo({
    executable,
    release,
    dataDir,
    flags: flagsOf(settings),
    environment: environmentOf(pid, secretsOf(settings)),
    control: controlOf(values, isUnit),
    isServing: () => isServing(executable),
    isRunning: async () => (await runningServer(dataDir)) !== null || isAlive(pid),
    waitMs: values.wait * 1_000,
    nowMs: systemClock.now(),
    say: (line) => (values.json ? undefined : print(line)),
  })
  const wasRunning = server !== null
  printAnswer(values, { ...upgraded, restartNeeded: wasRunning && !upgraded.restarted }, (answer) =>
    upgradedText(answer, executable),
  )
  return 0
}

/** A server that stops closes its socket before its process ends. */
function isAlive(pid: number | null): boolean {
  try {
    return pid !== null && process.kill(pid, 0)
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}

/** By the arguments of the processes, or by the file of those that were started by its name alone. */
function isServing(executable: string): boolean {
  try {
    return readdirSync('/proc').some((name) => /^\d+$/.test(name) && serves(`/proc/${name}`, executable))
  } catch {
    return false // another system than Linux
  }
}

function serves(process: string, executable: string): boolean {
  try {
    const args = readFileSync(`${process}/cmdline`, 'utf8').split('\0')
    if (!args.includes('serve')) return false
    return args.includes(executable) || readlinkSync(`${process}/exe`) === realpathSync(executable)
  } catch {
    return false // it has ended, or is another account's
  }
}

/** Package managers must know what they installed. */
function requireOwnFile(executable: string): void {
  const owners: [isIt: boolean, hint: string][] = [
    [executable.includes('/node_modules/'), 'npm install the packages of the new release'],
    [executable.includes('/Cellar/'), 'brew upgrade sightglass'],
    [
      executable === '/usr/bin/sightglass' && existsSync('/var/lib/dpkg/info/sightglass.list'),
      'sudo apt install the .deb of the new release',
    ],
    [executable === '/usr/bin/sightglass', 'sudo rpm --upgrade the .rpm of the new release'],
  ]
  const hint = owners.find(([isIt]) => isIt)?.[1]
  if (hint !== undefined)
    throw new AppError('conflict', `${executable} belongs to a package manager.`, { hint })
}

function controlOf(
  { stop, start }: Pick<UpgradeInvocation['values'], 'stop' | 'start'>,
  isUnit: boolean,
): ServerControl | null {
  if ((stop === null) !== (start === null)) throw new UsageError('--stop and --start belong together')
  if (stop !== null && start !== null) return { stop: () => shell(stop), start: () => shell(start) }
  return isUnit ? { stop: () => controlUnit('stop'), start: () => controlUnit('start') } : null
}

/** Its output is not waited for: a server that it starts may keep it open. */
async function shell(line: string): Promise<void> {
  const child = Bun.spawn(['sh', '-c', line], { stdin: 'ignore', stdout: 'ignore', stderr: 'ignore' })
  const code = await child.exited
  if (code !== 0) throw new AppError('conflict', `"${line}" ended with exit code ${code}.`)
}

const passedOn = ['config', 'key-file', 'backup-dir']

function flagsOf(settings: Setting[]): string[] {
  return settings
    .filter(({ name, source }) => passedOn.includes(name) && source === 'flag')
    .flatMap(({ name, text: flagText }) => [`--${name}`, flagText === null ? '' : folderPath(flagText)])
}

/** Secrets of the environment, which this process does not pass on by itself. */
function secretsOf(settings: Setting[]): Record<string, string> {
  const secretSettings = settings.filter(
    ({ option, text: secretText }) => option.secret === true && secretText !== null,
  )
  return Object.fromEntries(
    secretSettings.map(({ name, text: secretText }) => [environmentTwin(name), secretText!]),
  )
}

function upgradedText(answer: Upgraded & { restartNeeded: boolean }, executable: string): string {
  const { version, previous, previousExecutable, backup, migrates, restarted, restartNeeded } = answer
  const restore = migrates && backup !== null ? `, and restore an earlier backup, such as ${backup}` : ''
  const back = `To go back: mv ${previousExecutable} ${executable}${restore}`
  if (restarted)
    return `Upgraded from ${previous} to ${version}; the server is ready.\n${back}, then restart.`
  return restartNeeded
    ? `Installed ${version}, but the server still runs ${previous}. Restart it, then run "sightglass ready".\n${back}`
    : `Installed ${version}. No server was running.\n${back}`
}
