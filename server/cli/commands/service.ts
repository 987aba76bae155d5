/** `sightglass service`: installs the appliance as a systemd service, removes it, says how it is. */
import { dirname } from 'node:path'
import { type Invocation, type Setting, serveConfig } from '../config.ts'
import { AppError } from '../../errors.ts'
import { folderPath } from '../option-values.ts'
import { optionFits, optionOf, type OptionValues } from '../options.ts'
import { installUnit, serviceState, uninstallUnit } from '../../operations/service/install.ts'
import {
  environmentFile,
  runtimeFolderPath,
  stateFolder,
  unitName,
  unitText,
} from '../../operations/service/unit.ts'
import { print } from '../print.ts'

/** The options of serve that were given stand in the unit; the data folder is systemd's unless one was given. */
export async function serviceInstall(invocation: Invocation): Promise<number> {
  const { values, settings } = invocation
  const config = serveConfig(invocation)
  const given = settings.filter(
    ({ name, source }) => source === 'flag' && optionFits(name, 'serve') && name !== 'data-dir',
  )
  const dataGiven = settings.some(({ name, source }) => name === 'data-dir' && source === 'flag')
  const dataDir = dataGiven ? config.dataDir : stateFolder
  const flags = [
    `--data-dir=${dataDir}`,
    ...given.map((setting) => `--${setting.name}=${inUnit(setting, values)}`),
  ]
  const folders = [
    ...(dataGiven ? [dataDir] : []),
    ...(values['backup-dir'] === null ? [] : [values['backup-dir']]),
    ...(values['sink-dir'] === null ? [] : [values['sink-dir']]),
  ]
  const sockets = [config.listen, config.ingestListen, config.metricsListen]
    .map((at) => at?.unix)
    .filter((path) => path !== undefined)
  const isOurs = (path: string) => dirname(path) === runtimeFolderPath
  folders.push(...sockets.filter((path) => !isOurs(path)).map((path) => dirname(path)))
  const runtimeFolder = sockets.some(isOurs)
  const ports = [config.listen.port, config.ingestListen?.port ?? 0]
  const lowPort = ports.some((port) => port > 0 && port < 1024)
  const place = { unitDir: values['unit-dir'], executable: values.executable }
  const wanted = { flags, lowPort, writableFolders: folders, runtimeFolder }
  const unit = unitText({ executable: place.executable, ...wanted })
  if (values['dry-run']) {
    print(values.json ? JSON.stringify({ dryRun: true, unit, ...place }) : unit)
    return 0
  }
  if (!Bun.isStandaloneExecutable) {
    throw new AppError('conflict', 'Only the built executable can be installed.', { hint: 'npm run build' })
  }
  await installUnit(place, unit)
  const state = await serviceState(place)
  const text = [
    `Installed and started ${unitName}: ${place.executable}, data in ${dataDir}.`,
    `The link for the first owner: journalctl -u ${unitName} -o cat | grep setup`,
    `Secrets go into ${environmentFile}; "systemctl reload ${unitName}" takes up a renewed certificate.`,
  ]
  print(values.json ? JSON.stringify({ dryRun: false, ...state, ...place }) : text.join('\n'))
  return 0
}

/** The service starts in another folder than this command: a path is written from the root. */
function inUnit({ name, text }: Setting, values: OptionValues): string {
  const value = values[name]
  if (optionOf(name).read === folderPath) return String(value)
  if (text?.startsWith('unix:')) return `unix:${folderPath(text.slice('unix:'.length))}`
  return text ?? ''
}

export async function serviceUninstall({ values }: Invocation): Promise<number> {
  const removed = await uninstallUnit({ unitDir: values['unit-dir'] })
  const text = removed
    ? `Stopped and removed ${unitName}. The data is still there.`
    : `${unitName} was not installed.`
  print(values.json ? JSON.stringify({ removed }) : text)
  return 0
}

/** Exit code 1 unless it is installed and active. */
export async function serviceStatus({ values }: Invocation): Promise<number> {
  const state = await serviceState({ unitDir: values['unit-dir'] })
  const enabled = state.enabled ? 'starts with the machine' : 'does not start with the machine'
  const text = state.installed
    ? `${unitName} is ${state.active} and ${enabled} (${state.unit}).`
    : `${unitName} is not installed.`
  print(values.json ? JSON.stringify(state) : text)
  return state.installed && state.active === 'active' ? 0 : 1
}
