/** Settles the configuration: flag beats environment beats file beats default; every setting remembers its source. */
import { readFileSync } from 'node:fs'
import type { Environment } from '../system/environment.ts'
import { readArguments, type Arguments } from './arguments.ts'
import { readConfigFile } from './config-file.ts'
import { listenText } from '../http/address.ts'
import { commandReference } from './command-reference.ts'
import { UsageError } from '../errors.ts'
import {
  environmentTwin,
  optionFits,
  optionNames,
  optionOf,
  type OptionName,
  type OptionValues,
  type VerbName,
} from './options.ts'
import type { ServeConfig } from '../runtime/serve-config.ts'
import type { OidcConfig } from '../identity/sign-in/provider.ts'
import { backupDirOf } from '../operations/backup/config.ts'
import type { TlsFiles } from '../http/tls.ts'

/** Where a value came from, so that `sightglass config` can say it. */
export interface Setting {
  name: OptionName
  text: string | null // null: not given and without default
  source: 'flag' | 'environment' | 'file' | 'default'
  from: string // --listen, SIGHTGLASS_LISTEN, the path of the file, or default
}

export interface Invocation {
  verb: VerbName
  words: string[]
  help: boolean
  values: OptionValues
  settings: Setting[] // of this verb only, in the order of the table
  warnings: string[]
}

/** Environment variables that hold secrets. */
export const secretVariables = optionNames.filter((name) => optionOf(name).secret).map(environmentTwin)

/** Reads a whole invocation; every mistake is a `UsageError` with one clear line. */
export function readInvocation(args: string[], environment: Environment): Invocation {
  const given = readArguments(args)
  const { verb, words, help } = given
  // Help must come even when the rest is wrong.
  const asking = help || verb === 'help'
  const file = asking ? null : configFile(given, environment)
  const settings: Setting[] = []
  const values: Record<string, unknown> = {}
  for (const name of optionNames) {
    const fits = optionFits(name, verb)
    const setting =
      fits && (!asking || name === 'json') ? settle(name, given, environment, file) : ofDefault(name)
    values[name] = readSetting(setting)
    if (!fits) continue
    settings.push(setting)
    if (!asking && setting.text === null && optionOf(name).neededBy?.includes(verb)) {
      throw new UsageError(
        `"sightglass ${verb}" needs --${name} ${optionOf(name).value}`,
        `sightglass help ${verb}`,
      )
    }
  }
  return { verb, words, help, values: values as OptionValues, settings, warnings: strangers(environment) }
}

function configFile(given: Arguments, environment: Environment) {
  const path = readSetting(settle('config', given, environment, null))
  return typeof path === 'string' ? { path, keys: readConfigFile(path) } : null
}

type ConfigFile = { path: string; keys: Map<OptionName, string> }

function settle(
  name: OptionName,
  given: Arguments,
  environment: Environment,
  file: ConfigFile | null,
): Setting {
  const flag = given.flags.get(name)
  if (flag !== undefined) return { name, text: flag, source: 'flag', from: `--${name}` }
  const fromEnvironment = optionOf(name).flagOnly ? null : environmentText(name, environment)
  if (fromEnvironment) return { name, ...fromEnvironment, source: 'environment' }
  const key = file?.keys.get(name)
  if (file && key !== undefined) return { name, text: key, source: 'file', from: file.path }
  return ofDefault(name)
}

function ofDefault(name: OptionName): Setting {
  return { name, text: optionOf(name).default, source: 'default', from: 'default' }
}

/** An empty variable counts as absent: compose files pass such ones along. */
function environmentText(name: OptionName, environment: Environment): { text: string; from: string } | null {
  const twin = environmentTwin(name)
  const text = environment[twin] || null
  const path = (optionOf(name).secret && environment[`${twin}_FILE`]) || null
  if (text !== null && path !== null) throw new UsageError(`${twin} and ${twin}_FILE are both set; keep one`)
  if (path === null) return text === null ? null : { text, from: twin }
  try {
    return { text: readFileSync(path, 'utf8').replace(/\r?\n$/, ''), from: `${twin}_FILE` }
  } catch (error) {
    throw new UsageError(`${twin}_FILE: ${error instanceof Error ? error.message : 'cannot be read'}`)
  }
}

function readSetting({ name, text, source, from }: Setting): unknown {
  if (text === null) return null
  try {
    return optionOf(name).read(text)
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    // The text of a secret stays out of messages; `from` says where to look.
    const reason = optionOf(name).secret ? 'the value is not usable' : error.message
    const hint = optionOf(name).secret ? undefined : (error.hint ?? undefined)
    throw new UsageError(`${source === 'file' ? `${from}: ${name}` : from}: ${reason}`, hint)
  }
}

/** Variables with our prefix that mean nothing: warned about, not refused, for orchestrators inject such names. */
function strangers(environment: Environment): string[] {
  const known = new Set(
    optionNames.flatMap((name) => [environmentTwin(name), `${environmentTwin(name)}_FILE`]),
  )
  const injected = /^SIGHTGLASS_(?:SERVICE_(?:HOST|PORT)|PORT(?:_|$))/
  return Object.keys(environment)
    .filter((name) => name.startsWith('SIGHTGLASS_') && !known.has(name) && !injected.test(name))
    .map((name) => `the environment variable ${name} is not an option and has no effect`)
}

function oidcConfig(values: OptionValues): OidcConfig | null {
  const issuer = values['oidc-issuer']
  const clientId = values['oidc-client-id']
  if (issuer === null && clientId === null) return null
  if (issuer === null || clientId === null)
    throw new UsageError('--oidc-issuer and --oidc-client-id go together; only one is set')
  return { issuer, clientId, clientSecret: values['oidc-client-secret'], name: values['oidc-name'] }
}

/** What `serve` needs, out of the settled values. */
export function serveConfig({ values, warnings }: Invocation): ServeConfig {
  const listen = values.listen
  const ingestListen = values['ingest-listen']
  if (
    ingestListen &&
    (ingestListen.port !== 0 || ingestListen.unix !== undefined) &&
    listenText(ingestListen) === listenText(listen)
  ) {
    throw new UsageError('--listen and --ingest-listen name the same address')
  }
  const email = values['admin-email']
  const password = values['admin-password']
  if ((email === null) !== (password === null)) {
    throw new UsageError('SIGHTGLASS_ADMIN_EMAIL and SIGHTGLASS_ADMIN_PASSWORD go together; only one is set')
  }
  return {
    listen,
    ingestListen,
    dataDir: values['data-dir'],
    publicUrl: values['public-url'],
    basePath: values['base-path'],
    allowedHosts: values['allowed-host'],
    metricsListen: values['metrics-listen'],
    metricsToken: values['metrics-token'],
    trustedProxies: values['trusted-proxy'],
    diskFloorBytes: values['disk-floor'],
    memoryLimitBytes: values['memory-limit'],
    rateLimits: { gateway: values['rate-limit-gateway'], ingest: values['rate-limit-ingest'] },
    tls: tlsFiles(values),
    retention: {
      days: values['retention-days'],
      bytes: values['retention-bytes'],
      auditDays: values['retention-audit-days'],
    },
    backup: {
      dir: backupDirOf(values['data-dir'], values['backup-dir']),
      cron: values['backup-cron'],
      keep: values['backup-keep'],
      passphrase: values['backup-passphrase'],
    },
    webhooks: {
      cron: values['dispatch-cron'],
      backoffMs: values['webhook-backoff'],
      allow: values['webhook-allow'],
      sinkDir: values['sink-dir'],
      caFile: values['webhook-ca'],
      proxy: values['webhook-proxy'],
    },
    oidc: oidcConfig(values),
    logLevel: values['log-level'],
    setupFile: values['setup-file'],
    admin: email !== null && password !== null ? { email, password } : null,
    warnings,
    commandReference,
  }
}

function tlsFiles({ 'tls-cert': certFile, 'tls-key': keyFile }: OptionValues): TlsFiles | null {
  if ((certFile === null) !== (keyFile === null)) {
    throw new UsageError('--tls-cert and --tls-key go together; only one is given')
  }
  return certFile === null || keyFile === null ? null : { certFile, keyFile }
}
