/** The options that `doctor` judges: those of the running server when one holds the folder, else its own. */
import { resolve } from 'node:path'
import type { ListenAddress } from '../../http/address.ts'
import type { TlsFiles } from '../../http/tls.ts'
import type { BackupConfig } from '../backup/config.ts'
import type { RetentionRule } from '../retention/expire-all.ts'
import { ok, warning, type Check } from './check.ts'

/** No secret is among them: they travel over the control socket. */
export interface Diagnosed {
  dataDir: string
  diskFloorBytes: number
  listen: ListenAddress
  publicUrl: string | null
  trustedProxies: string[]
  retention: RetentionRule
  hasTls: boolean
  backup: { dir: string; cron: string | null; keep: number; isEncrypted: boolean }
}

interface Options extends Omit<Diagnosed, 'backup' | 'hasTls'> {
  backup: BackupConfig
  tls: TlsFiles | null
}

export function diagnosedOf(config: Options): Diagnosed {
  const { dataDir, diskFloorBytes, listen, publicUrl, trustedProxies, retention, backup, tls } = config
  const { dir, cron, keep, passphrase } = backup
  return {
    ...{ dataDir, diskFloorBytes, listen, publicUrl, trustedProxies, retention },
    hasTls: tls !== null,
    // The command may run in another folder than the server.
    backup: { dir: resolve(dir), cron, keep, isEncrypted: passphrase !== null },
  }
}

/** `url` is where the running server listens; null without one. */
export function checkOptions({ backup, retention }: Diagnosed, url: string | null): Check[] {
  const whose =
    url === null
      ? 'No server is running. These checks use the options of this command.'
      : `These checks use the options of the running server on ${url}.`
  const { days, bytes } = retention
  const limits = [
    ...(days === null ? [] : [`for ${days} days`]),
    ...(bytes === null ? [] : [`up to ${bytes.toLocaleString('en-US')} bytes per organization`]),
  ]
  const limit = limits.length === 0 ? 'without a limit' : limits.join(', ')
  return [ok('options', whose), checkSchedule(backup), ok('retention', `Events are stored ${limit}.`)]
}

function checkSchedule({ cron, keep, isEncrypted }: Diagnosed['backup']): Check {
  if (cron === null)
    return warning(
      'backup-schedule',
      'Automatic backups are off (--backup-cron off).',
      'set --backup-cron, or run "sightglass backup create" from your own timer',
    )
  const how = isEncrypted ? 'encrypted' : 'not encrypted'
  return ok('backup-schedule', `Backups run at "${cron}" (UTC), ${how}. The newest ${keep} are stored.`)
}
