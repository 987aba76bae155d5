/**
 * The logs that the server itself reads: `serve --watch SITE=PATH`, `[[watch]]` of the configuration file, and what
 * arrives at `--listen-syslog`.
 */
import { resolve } from 'node:path'
import type { Store } from '../../db/contract/store.ts'
import type { Clock } from '../clock.ts'
import { AppError, UsageError } from '../errors.ts'
import { importKeyId } from '../ids.ts'
import { limits } from '../limits.ts'
import type { Log } from '../log.ts'
import { optionTables, type OptionTable } from '../text/option-tables.ts'
import type { LogOptions } from './agent-events.ts'
import { followLog } from './follow.ts'
import { trustReader } from '../http/address.ts'
import { withoutForwarded } from './detect-format.ts'
import { formatNamed } from './formats.ts'
import { watchedPath, type ProtectedFiles } from '../system/watched-path.ts'
import type { AccessReceiver, Sender } from './receiver.ts'
import type { Sink } from './sink.ts'
import { defaultOrg, listenSyslog, type SyslogListener, type SyslogRule } from './syslog.ts'

export interface WatchRule {
  org: string // slug or id
  path: string // absolute
  format: string
  options: LogOptions
}

const rulesMax = 100
const fields = ['site', 'path', 'format', 'org', 'keep-query', 'keep-addresses', 'trusted-proxy']

/** `SITE=PATH,SITE=PATH` of the flag, or the tables of the file as JSON. */
export function watchRules(text: string): WatchRule[] {
  const rules = optionTables(text, 'watch', fields)?.map(ruleOf) ?? pairsOf(text)
  if (rules.length > rulesMax) throw new UsageError(`at most ${rulesMax} logs can be watched`)
  return rules
}

function pairsOf(text: string): WatchRule[] {
  const pairs = text.split(',').filter((pair) => pair.trim() !== '')
  return pairs.map((pair) => {
    const equalsIndex = pair.indexOf('=')
    if (equalsIndex <= 0 || equalsIndex === pair.length - 1)
      throw new UsageError(`"${pair}" is not SITE=PATH, such as shop=/var/log/nginx/access.log`)
    const fieldValues: Record<string, string> = {
      site: pair.slice(0, equalsIndex).trim(),
      path: pair.slice(equalsIndex + 1).trim(),
    }
    return ruleOf({
      text: (field, byDefault = '') => fieldValues[field] ?? byDefault,
      optional: (field) => fieldValues[field] ?? null,
      texts: () => [],
      flag: () => false,
    })
  })
}

function ruleOf(optionTable: OptionTable): WatchRule {
  const siteId = optionTable.text('site')
  if (siteId.length > limits.idCharsMax)
    throw new UsageError(`a site has at most ${limits.idCharsMax} characters`)
  const format = optionTable.text('format', 'auto')
  if (format !== 'auto') formatNamed(format)
  const options: LogOptions = {
    siteId,
    keepQuery: optionTable.texts('keep-query'),
    keepAddresses: optionTable.flag('keep-addresses'),
    trustedProxies: optionTable.texts('trusted-proxy'),
  }
  trustReader(options.trustedProxies)
  return {
    org: optionTable.text('org', defaultOrg),
    path: resolve(optionTable.text('path')),
    format,
    options,
  }
}

export interface LogInputServices {
  store: Pick<Store, 'orgs'>
  clock: Clock
  log: Pick<Log, 'info' | 'warn'>
  accessReceiver: AccessReceiver
  syslogListeners: SyslogListener[]
  protectedFiles: ProtectedFiles
}

/** Reads all of them until `stop`, which waits for the lines in flight. Rejects when an address cannot be used. */
export async function startLogInputs(
  services: LogInputServices,
  { watches, syslog }: { watches: readonly WatchRule[]; syslog: readonly SyslogRule[] },
): Promise<{ stop(): Promise<void> }> {
  const { syslogListeners } = services
  const senderOf = syslogSender(services)
  for (const rule of syslog) syslogListeners.push(await listenSyslog({ ...services, senderOf }, rule))
  const ending = new AbortController()
  const running = watches.map((rule) => follow(services, rule, ending.signal))
  return {
    async stop() {
      ending.abort()
      await Promise.all([...running, ...syslogListeners.map((listener) => listener.stop())])
    },
  }
}

function syslogSender({ store }: LogInputServices): (rule: SyslogRule) => Promise<Sender> {
  return async ({ siteId, org, trustedProxies }) => {
    const options = { siteId, keepQuery: [], keepAddresses: false, trustedProxies }
    return { orgId: await orgIdOf(store, org), keyId: importKeyId, door: 'syslog', options, reader: null }
  }
}

/** It may be created later, by the setup of the first owner or by a person. */
async function orgIdOf(store: LogInputServices['store'], org: string): Promise<string> {
  const organization = await store.orgs.find(org)
  if (organization !== null) return organization.id
  throw new AppError('unavailable', `There is no organization "${org}".`)
}

async function follow(services: LogInputServices, rule: WatchRule, signal: AbortSignal): Promise<void> {
  const { store, clock, log, accessReceiver } = services
  const { path, format, options, org } = rule
  const site = options.siteId
  const watched = watchedPath(path, services.protectedFiles)
  const sink = receiverSink(accessReceiver, async () => {
    const orgId = await orgIdOf(store, org)
    return { orgId, keyId: importKeyId, door: 'access-log', options, reader: `server:${path}` }
  })
  while (!signal.aborted) {
    try {
      await followLog({
        path,
        watched,
        format,
        sink,
        signal,
        now: clock.now,
        understood: (file, guess) => {
          const { format, fits, lines } = guess
          log.info('access_log_understood', { file, site, format: format.name, fits, lines })
          const warning = options.trustedProxies.length > 0 ? withoutForwarded(guess) : null
          if (warning !== null) log.warn('access_log_problem', { path, site, message: warning })
        },
        stored: () => undefined,
        problem: (message) =>
          message === null
            ? log.info('access_log_read_again', { path, site })
            : log.warn('access_log_problem', { path, site, message }),
      })
    } catch (error) {
      // Another process reads the log: it is followed as soon as that one ends.
      const message = error instanceof Error ? error.message : String(error)
      log.warn('access_log_problem', { path, site, message })
      await untilRetry(signal)
    }
  }
}

const retryMs = 15_000

function untilRetry(signal: AbortSignal): Promise<void> {
  return new Promise((go) => {
    const timer = setTimeout(go, retryMs)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      go()
    })
  })
}

/** The appliance in this process. */
export function receiverSink(receiver: AccessReceiver, senderOf: () => Promise<Sender>): Sink {
  return {
    position: async (status) => receiver.position(await senderOf(), status),
    store: async (lines) => receiver.store(await senderOf(), lines),
    warm: async (lines) => receiver.warm(await senderOf(), lines),
  }
}
