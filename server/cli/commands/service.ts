/** `sightglass service`: installs the server as a systemd service, removes it, shows its state. */
import { dirname } from 'node:path'
import { AppError } from '../../errors.ts'
import {
  environmentFile,
  installUnit,
  runtimeFolderPath,
  serviceState,
  stateFolder,
  uninstallUnit,
  unitName,
  unitText,
} from '../../operations/service/install.ts'
import type { ServeConfig } from '../../runtime/make-services.ts'
import { command, type Invocation, type Noun, type Setting } from '../command.ts'
import { folderPath, toggle } from '../option.ts'
import { serveOptions } from '../options.ts'
import { UsageError } from '../../errors.ts'
import { print, printAnswer } from '../print.ts'
import { serveConfig } from '../serve-config.ts'

export const unitDir = {
  'unit-dir': {
    read: folderPath,
    value: 'FOLDER',
    default: '/etc/systemd/system',
    help: 'folder of the systemd unit',
    flagOnly: true,
  },
} as const

const installOptions = {
  ...serveOptions,
  'dry-run': { ...toggle('print the unit and change nothing'), flagOnly: true },
  ...unitDir,
  executable: {
    read: folderPath,
    value: 'FILE',
    default: '/usr/local/bin/sightglass',
    help: 'where to copy this executable for the service',
    flagOnly: true,
  },
} as const

type InstallInvocation = Invocation<typeof installOptions>

export const service: Noun = {
  group: 'Server',
  commands: [
    command({
      name: 'service install',
      summary: 'install and start the server as a systemd service',
      usage: '[OPTIONS OF serve] [--dry-run]',
      about: [
        'Copies this executable to /usr/local/bin, writes a hardened unit (its own user, one writable folder), enables and starts it. Run it with a newer executable to upgrade the service. --dry-run only prints the unit.',
      ],
      examples: [
        'sudo sightglass service install --listen 0.0.0.0:443 --tls-cert /etc/tls/cert.pem --tls-key /etc/tls/key.pem',
        'sightglass service install --dry-run',
      ],
      options: installOptions,
      run: install,
    }),
    command({
      name: 'service uninstall',
      summary: 'stop and remove the service; the data stays',
      examples: ['sudo sightglass service uninstall'],
      options: unitDir,
      async run({ values }) {
        const removed = await uninstallUnit({ unitDir: values['unit-dir'] })
        printAnswer(values, { removed }, () =>
          removed ? `Stopped and removed ${unitName}. The data stays.` : `${unitName} is not installed.`,
        )
        return 0
      },
    }),
    command({
      name: 'service status',
      summary: 'show whether the service is installed and running',
      about: ['Exit code 1 unless it is running.'],
      examples: ['sightglass service status --json'],
      options: unitDir,
      async run({ values }) {
        const state = await serviceState({ unitDir: values['unit-dir'] })
        printAnswer(values, state, ({ installed, active, enabled, unit }) =>
          installed
            ? `${unitName} is ${active} and ${enabled ? 'starts' : 'does not start'} at boot (${unit}).`
            : `${unitName} is not installed.`,
        )
        return state.installed && state.active === 'active' ? 0 : 1
      },
    }),
  ],
}

async function install(invocation: InstallInvocation): Promise<number> {
  const { values } = invocation
  const { unit, dataDir } = planUnit(invocation)
  const target = { unitDir: values['unit-dir'], executable: values.executable }
  if (values['dry-run']) {
    print(values.json ? JSON.stringify({ dryRun: true, unit, ...target }) : unit)
    return 0
  }
  if (!Bun.isStandaloneExecutable)
    throw new AppError('conflict', 'Only the built executable can be installed.', { hint: 'npm run build' })
  await installUnit(target, unit)
  const state = await serviceState(target)
  printAnswer(values, { dryRun: false, ...state, ...target }, () =>
    [
      `Installed and started ${unitName}: ${target.executable}, data in ${dataDir}.`,
      `Link to create the first owner: journalctl -u ${unitName} -o cat | grep setup`,
      `Store secrets in ${environmentFile}. After a certificate renewal: systemctl reload ${unitName}`,
    ].join('\n'),
  )
  return 0
}

/** The unit has the given options of serve. The data folder is the one of systemd unless one was given. */
function planUnit({ values, settings }: InstallInvocation): { unit: string; dataDir: string } {
  const config = serveConfig(values)
  if (settings.some(({ name, source }) => name === 'database' && source === 'flag'))
    throw new UsageError(`--database would show in the unit; set SIGHTGLASS_DATABASE in ${environmentFile}`)
  const explicitFlags = settings.filter(
    ({ name, source }) => source === 'flag' && (name in serveOptions || name === 'key-file'),
  )
  const dataGiven = settings.some(({ name, source }) => name === 'data-dir' && source === 'flag')
  const dataDir = dataGiven ? config.dataDir : stateFolder
  const sockets = socketsOf(config)
  const inRuntimeFolder = (path: string) => dirname(path) === runtimeFolderPath
  const folders = [
    dataGiven ? dataDir : null,
    values['backup-dir'],
    values['sink-dir'],
    ...sockets.filter((path) => !inRuntimeFolder(path)).map((path) => dirname(path)),
  ]
  const ports = [config.listen.port, config.ingestListen?.port ?? 0]
  const unit = unitText({
    executable: values.executable,
    flags: [
      `--data-dir=${dataDir}`,
      ...explicitFlags.map((setting) => `--${setting.name}=${absolute(setting)}`),
    ],
    lowPort: ports.some((port) => port > 0 && port < 1024),
    writableFolders: folders.filter((folder) => folder !== null),
    runtimeFolder: sockets.some(inRuntimeFolder),
    account: 'dynamic',
  })
  return { unit, dataDir }
}

function socketsOf({ listen, ingestListen, metricsListen }: ServeConfig): string[] {
  return [listen, ingestListen, metricsListen]
    .map((address) => address?.unix)
    .filter((path) => path !== undefined)
}

/** The service starts in another folder than this command, so its paths are absolute. */
function absolute({ option, text }: Setting): string {
  if (text !== null && option.read === folderPath) return folderPath(text)
  if (text?.startsWith('unix:')) return `unix:${folderPath(text.slice('unix:'.length))}`
  return text ?? ''
}
