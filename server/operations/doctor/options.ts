/** Checks the options of a server: backups, retention, TLS and proxies. */
import { resolve } from 'node:path'
import { failure, ok, warning, type Check } from './check.ts'
import { isIP } from 'node:net'
import { listenText, type ListenAddress } from '../../http/address.ts'
import type { TlsFiles } from '../../http/tls.ts'
import type { BackupConfig } from '../backup/backup-folder.ts'
import type { RetentionRule } from '../../system/retention-rule.ts'

/** Options of the running server, or of the command without one. No secrets: they cross the control socket. */
export interface Diagnosed {
  dataDir: string
  keyFile: string | null
  diskFloorBytes: number
  listen: ListenAddress
  publicUrl: string | null
  trustedProxies: string[]
  retention: RetentionRule
  evidenceMaxAgeDays: number
  hasTls: boolean
  backup: { dir: string; cron: string | null; keep: number; isEncrypted: boolean }
}

interface Options extends Omit<Diagnosed, 'backup' | 'hasTls'> {
  backup: BackupConfig
  tls: TlsFiles | null
}

export function diagnosedOf(config: Options): Diagnosed {
  const { dataDir, keyFile, diskFloorBytes, listen, publicUrl, trustedProxies, retention, backup, tls } =
    config
  const { dir, cron, keep, passphrase } = backup
  return {
    dataDir,
    keyFile,
    diskFloorBytes,
    listen,
    publicUrl,
    trustedProxies,
    retention,
    evidenceMaxAgeDays: config.evidenceMaxAgeDays,
    hasTls: tls !== null,
    // Absolute, because the command may run in another folder than the server.
    backup: { dir: resolve(dir), cron, keep, isEncrypted: passphrase !== null },
  }
}

/** `url`: where the running server listens; null without one. */
export function checkOptions({ backup, retention }: Diagnosed, url: string | null): Check[] {
  const originText =
    url === null
      ? 'No server is running; these checks use the options of this command.'
      : `These checks use the options of the running server on ${url}.`
  const { days, bytes } = retention
  const limits = [
    ...(days === null ? [] : [`${days} days`]),
    ...(bytes === null ? [] : [`up to ${bytes.toLocaleString('en-US')} bytes per organization`]),
  ]
  const retained = limits.length === 0 ? 'unlimited' : limits.join(', ')
  return [
    ok('options', originText),
    checkSchedule(backup),
    ok('retention', `Retention of events: ${retained}.`),
  ]
}

function checkSchedule({ cron, keep, isEncrypted }: Diagnosed['backup']): Check {
  if (cron === null)
    return warning(
      'backup-schedule',
      'Automatic backups are off (--backup-cron off).',
      'set --backup-cron, or schedule "sightglass backup create" yourself',
    )
  const encryptionText = isEncrypted ? 'encrypted' : 'not encrypted'
  return ok('backup-schedule', `Automatic backups: "${cron}" (UTC), ${encryptionText}, newest ${keep} kept.`)
}

type Reached = Pick<Diagnosed, 'listen' | 'publicUrl' | 'trustedProxies'>

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))
}

export function checkReach({ listen, publicUrl, trustedProxies }: Reached, hasTls: boolean): Check {
  const listenAddress = listenText(listen)
  if (listen.unix !== undefined) return ok('tls', `${listenAddress} is reachable from this machine only.`)
  if (hasTls) return ok('tls', `${listenAddress} uses TLS.`)
  if (isLoopback(listen.host)) return ok('tls', `${listenAddress} is reachable from this machine only.`)
  if (publicUrl?.startsWith('https:') && trustedProxies.length > 0) {
    return ok('tls', `${listenAddress} is behind a proxy that uses TLS (${publicUrl}).`)
  }
  return warning(
    'tls',
    `${listenAddress} is reachable from the network without TLS: passwords and keys are sent in clear text.`,
    'set --tls-cert and --tls-key, or use a proxy with --public-url https://… and --trusted-proxy',
  )
}

export function checkProxies({ publicUrl, trustedProxies }: Reached, hasTls: boolean): Check {
  const openRange = trustedProxies.find((range) => /\/0$/.test(range))
  if (openRange !== undefined) {
    return failure(
      'proxy',
      `--trusted-proxy ${openRange} trusts every sender, so anyone can fake an address.`,
      'list only the addresses of your proxies',
    )
  }
  if (publicUrl?.startsWith('https:') && trustedProxies.length === 0 && !hasTls) {
    return warning(
      'proxy',
      `${publicUrl} is https, but no proxy is trusted: all requests appear to come from one address, without TLS.`,
      'set --trusted-proxy to the address of the proxy',
    )
  }
  return ok(
    'proxy',
    trustedProxies.length === 0 ? 'No proxy is trusted.' : `Trusted: ${trustedProxies.join(', ')}.`,
  )
}
