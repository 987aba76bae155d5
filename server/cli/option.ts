/**
 * An option: its shape, and the readers that turn its text into a value. Every refusal is one line that says what is
 * accepted.
 */
import { unseenProblem } from '../text/names.ts'
import { nearest } from '../text/text.ts'
import { Cron } from 'croner'
import { isIP } from 'node:net'
import { resolve } from 'node:path'
import { UsageError } from '../errors.ts'
import { waitMs } from '../clock.ts'
import type { ListenAddress } from '../http/address.ts'
import type { RateLimit } from '../http/rate-limit.ts'

export interface Option<T = unknown> {
  read: (text: string) => T
  /** Placeholder of the value in help; null for a switch without a value. */
  value: string | null
  default: string | null
  help: string
  /** Accepted values, for completion in shells; of a list, each of its items. */
  choices?: readonly string[]
  /** The command does not run without it. */
  needed?: true
  /** Another environment variable with the same meaning, for values that begin with this. */
  alias?: { variable: string; prefix: string }
  /** Never printed; may come from a file named by `…_FILE`. */
  secret?: true
  /** A secret on the command line would show in the process list. */
  environmentOnly?: true
  /** Repeats add up; otherwise the last one wins. */
  adds?: true
  /** Names the TOML file itself. */
  notInFile?: true
  /** Neither an environment variable nor a key of the TOML file. */
  flagOnly?: true
}

export type Options = { readonly [name: string]: Option }

export type OptionValue<O extends Option> = O extends { default: string } | { needed: true }
  ? ReturnType<O['read']>
  : ReturnType<O['read']> | null

/** An option without a value: given or not. */
export function toggle(help: string) {
  return { read: flag, value: null, default: 'false', help }
}

/** Any text; null when it is not given. */
export function text(value: string, help: string) {
  return { read: plainText, value, default: null, help }
}

/** One of a few words; null when it is not given. */
export function choice<const W extends string>(choices: readonly W[], help: string) {
  return { ...oneOf(...choices), value: choices.join('|'), default: null, help }
}

/** `--data-dir` is `SIGHTGLASS_DATA_DIR`. */
export function environmentTwin(name: string): string {
  return `SIGHTGLASS_${name.toUpperCase().replaceAll('-', '_')}`
}

/** The longest path of a socket on Linux. */
const socketPathBytesMax = 107

/** `host:port`, IPv6 in brackets, or `unix:PATH`. */
export function listenAddress(text: string): ListenAddress {
  if (text.startsWith('unix:')) return socketAddress(text.slice('unix:'.length))
  const match = /^(?:\[([^\]]+)\]|([^:[\]\s/]+)):(\d{1,5})$/.exec(text)
  if (!match) throw new UsageError(`"${text}" is not host:port (IPv6 in brackets, like [::1]:7400)`)
  const [, v6, name, digits] = match
  const port = Number(digits)
  if (port > 65_535) throw new UsageError(`port ${digits} is above 65535`)
  if (v6 !== undefined && isIP(v6) !== 6) throw new UsageError(`"${v6}" is not an IPv6 address`)
  const host = (v6 ?? name)!
  if (v6 === undefined && isIP(host) === 0 && !hostNamePattern.test(host)) {
    throw new UsageError(`"${host}" is not a host name or an IP address`)
  }
  return { host, port }
}

function socketAddress(text: string): ListenAddress {
  if (text === '' || text.endsWith('/')) throw new UsageError('unix: needs the path of a socket after it')
  const unix = resolve(text)
  if (Buffer.byteLength(unix) > socketPathBytesMax)
    throw new UsageError(`the path of a socket has at most ${socketPathBytesMax} bytes: ${unix}`)
  return { host: 'localhost', port: 0, unix }
}

/** `/sightglass`, or nothing for the whole host. */
export function basePath(text: string): string {
  const path = text.replace(/\/$/, '')
  if (path === '') return ''
  if (/^(?:\/(?!\.{1,2}(?:\/|$))[A-Za-z0-9._~-]+)+$/.test(path)) return path
  throw new UsageError(`"${text}" is not a path such as /sightglass`)
}

const hostNamePattern = /^(?=.{1,253}$)(?!-)[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.?$/i

/** A name that people see. */
export function visibleName(text: string): string {
  const problem = unseenProblem(text)
  if (problem !== null) throw new UsageError(`a name ${problem}`)
  return plainText(text)
}

export function plainText(text: string): string {
  return text
}

export function folderPath(text: string): string {
  if (text.trim() === '') throw new UsageError('a folder needs a name; "." is the one you are in')
  return resolve(text)
}

/** The origin of an http or https address without user, path or query. */
export function origin(text: string): string {
  const { pathname, search, hash, origin } = httpUrl(text)
  if (pathname !== '/' || search || hash) {
    throw new UsageError(`"${text}" must end after host and port, without a path`)
  }
  return origin
}

/** The same, but a base path may follow; without a trailing slash. */
export function applianceAddress(text: string): string {
  const { pathname, search, hash, origin } = httpUrl(text)
  if (search || hash) throw new UsageError(`"${text}" must end after its path`)
  return `${origin}${pathname.replace(/\/+$/, '')}`
}

function httpUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null
  if (!url || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw new UsageError(`"${text}" is not an http or https address like https://traces.example.com`)
  }
  if (url.username || url.password) throw new UsageError(`the address must not carry a user name or password`)
  refuseMangled(text, url)
  return url
}

/** The address of an identity provider: https with any path, or http on this machine. */
export function issuerAddress(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null
  const isLocal = url !== null && /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(url.hostname)
  if (!url || (url.protocol !== 'https:' && !(url.protocol === 'http:' && isLocal)))
    throw new UsageError(`"${text}" is not an https address like https://id.example.com`)
  if (url.username || url.password || url.search || url.hash)
    throw new UsageError('the address of a provider has no user name, query or fragment')
  refuseMangled(text, url)
  return text
}

/** The parser drops line breaks without a word, and nothing listens on port 0. */
function refuseMangled(text: string, { port }: URL): void {
  if (port === '0') throw new UsageError('the port of an address is from 1 to 65535')
  if (/[\u0000-\u001f\u007f-\u009f]/.test(text))
    throw new UsageError('an address contains no control character')
}

function splitList(text: string): string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
}

export function textList(text: string): string[] {
  return splitList(text)
}

export function hostNameList(text: string): string[] {
  return splitList(text).map((name) => {
    if (!hostNamePattern.test(name)) {
      throw new UsageError(`"${name}" is not a host name (no scheme, port or path: traces.example.com)`)
    }
    return name.toLowerCase().replace(/\.$/, '')
  })
}

/** Addresses and CIDR ranges, e.g. `10.0.0.0/8,fd00::/8,127.0.0.1`. */
export function addressRangeList(text: string): string[] {
  return splitList(text).map((range) => {
    const [address = '', bits, extra] = range.split('/')
    const family = isIP(address)
    const bitsMax = family === 6 ? 128 : 32
    const bitsFine = bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= bitsMax)
    if (family === 0 || !bitsFine || extra !== undefined) {
      throw new UsageError(`"${range}" is not an IP address or a range like 10.0.0.0/8`)
    }
    return range
  })
}

const unitBytes: Record<string, number> = {
  '': 1,
  b: 1,
  kb: 1e3,
  mb: 1e6,
  gb: 1e9,
  tb: 1e12,
  kib: 2 ** 10,
  mib: 2 ** 20,
  gib: 2 ** 30,
  tib: 2 ** 40,
}

/** A size such as `256MiB` (1024-based), `1.5GB` (1000-based) or a plain count of bytes. */
export function sizeBytes(text: string): number {
  const match = /^(\d+(?:\.\d+)?)\s*([a-z]*)$/i.exec(text.trim())
  const unit = match ? unitBytes[match[2]!.toLowerCase()] : undefined
  if (!match || unit === undefined) throw new UsageError(`"${text}" is not a size like 256MiB, 1.5GB or 0`)
  const bytes = Math.floor(Number(match[1]) * unit)
  if (!Number.isSafeInteger(bytes)) throw new UsageError(`${text} is too large a size`)
  return bytes
}

/** One of a few words. */
function oneOf<const W extends string>(
  ...choices: W[]
): { read: (text: string) => W; choices: readonly W[] } {
  const read = (text: string): W => {
    const match = choices.find((word) => word === text)
    if (match !== undefined) return match
    const near = nearest(text, choices)
    const hint = near === null ? undefined : `did you mean ${near}?`
    throw new UsageError(`"${text}" is not one of ${choices.join(', ')}`, hint)
  }
  return { read, choices }
}

/** A whole number between two bounds. */
export function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
    if (!(value >= min && value <= max)) {
      throw new UsageError(`"${text}" is not a whole number from ${min} to ${max}`)
    }
    return value
  }
}

/** A rate such as `5/s`, `120/m` or `1000/h`, as events per second. */
/** Null for `off`. */
export function secondsOrOff(text: string): number | null {
  return text === 'off' ? null : wholeNumber(0, 86_400)(text)
}

export function ratePerSecond(text: string): number {
  const match = /^(\d{1,6}(?:\.\d{1,3})?)\/([smh])$/.exec(text)
  const perSecond = match ? Number(match[1]) / { s: 1, m: 60, h: 3600 }[match[2] as 's' | 'm' | 'h'] : 0
  if (!(perSecond > 0)) throw new UsageError(`"${text}" is not a rate like 5/s, 120/m or 1000/h`)
  return perSecond
}

/** A secret that a scraper sends in a header. */
export function metricsToken(text: string): string {
  if (!/^[\x21-\x7e]{1,200}$/.test(text))
    throw new UsageError('a token has 1 to 200 visible ASCII characters')
  return text
}

/** A limit such as `1200/m`, or `off` as null. */
export function rateLimit(text: string): RateLimit | null {
  if (text === 'off') return null
  const match = /^([1-9]\d{0,8})\/([smh])$/.exec(text)
  if (!match) throw new UsageError(`"${text}" is not a limit like 50/s, 1200/m or 10000/h, or off`)
  return {
    count: Number(match[1]),
    windowMs: { s: 1_000, m: 60_000, h: 3_600_000 }[match[2] as 's' | 'm' | 'h'],
  }
}

function flag(text: string): boolean {
  if (/^(?:true|yes|on|1)$/i.test(text)) return true
  if (/^(?:false|no|off|0)$/i.test(text)) return false
  throw new UsageError(`"${text}" is not true or false`)
}

/** A cron pattern of five fields, or six with seconds first. */
export function cronPattern(text: string): string {
  const fields = text.trim().split(/\s+/)
  let next: Date | null = null
  try {
    const isPattern = fields.length === 5 || fields.length === 6
    next = isPattern ? new Cron(text, { paused: true, utcOffset: 0 }).nextRun() : null
  } catch {
    // croner's message names its own syntax; ours says what is accepted.
  }
  if (next === null)
    throw new UsageError(`"${text}" is not a cron pattern like "* * * * *" that ever matches a time`)
  return text
}

/** A cron pattern, or null for `off`. */
export function cronOrOff(text: string): string | null {
  return text === 'off' ? null : cronPattern(text)
}

/** A number of days, or null for `off`. */
export function daysOrOff(text: string): number | null {
  return text === 'off' ? null : wholeNumber(1, 36_500)(text)
}

/** A size, or null for `off`. */
export function sizeOrOff(text: string): number | null {
  return text === 'off' ? null : sizeBytes(text)
}

/** Three waits such as `60s,300s,1800s`, one before each retry. */
export function retrySteps(text: string): number[] {
  const steps = splitList(text).map(waitMs)
  if (steps.length !== 3 || steps.some((ms) => !(ms <= 24 * 3_600_000))) {
    throw new UsageError(`"${text}" is not three waits like 60s,300s,1800s of at most 24h each`)
  }
  return steps
}

/** `postgres://…`, returned as given: the engine reads its parameters. */
export function databaseUrl(text: string): string {
  // The engine reads the rest, and names what it cannot use.
  if (/^postgres(?:ql)?:\/\//.test(text)) return text
  throw new UsageError('the URL of a database is postgres://USER:PASSWORD@HOST:PORT/DATABASE')
}

/** `http://[user:password@]host:port`, returned as given. */
export function proxyAddress(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null || url.protocol !== 'http:' || url.hostname === '')
    throw new UsageError(
      'a proxy is http://HOST:PORT, optionally with user:password@ before the host, such as http://proxy.example.com:3128',
    )
  if (url.pathname !== '/' || url.search !== '' || url.hash !== '')
    throw new UsageError('the address of a proxy ends after host and port')
  return text
}

const spanMs: Record<string, number> = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 7 * 86_400_000 }
const expiryYearsMax = 100

/** `90d` or `12h` in milliseconds, or null. */
export function readSpan(text: string): number | null {
  const match = /^(\d{1,6})([mhdw])$/.exec(text)
  return match ? Number(match[1]) * spanMs[match[2]!]! : null
}

/** When a key expires: `90d`, `12h`, `2027-01-31` (midnight UTC) or `2027-01-31T18:00:00Z`. */
export function readExpiry(text: string, nowMs: number): number {
  const span = readSpan(text)
  const atMs = span === null ? readDate(text) : nowMs + span
  if (atMs === null)
    throw new UsageError(`"${text}" is not a time such as 90d, 12h, 2027-01-31 or 2027-01-31T18:00:00Z`)
  if (atMs <= nowMs) throw new UsageError(`${text} is not in the future`)
  if (atMs > nowMs + expiryYearsMax * 366 * 86_400_000)
    throw new UsageError(`${text} is more than ${expiryYearsMax} years away`)
  return atMs
}

function readDate(text: string): number | null {
  const match = /^(\d{4})-(\d{2})-(\d{2})(?:T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:Z|[+-]\d{2}:\d{2}))?$/.exec(
    text,
  )
  if (!match) return null
  const [, year, month, day] = match
  // Date.parse reads 31 February as 3 March; here a day that does not exist is a typing error.
  const daysInMonth = new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate()
  const atMs = Date.parse(text)
  return Number(day) <= daysInMonth && !Number.isNaN(atMs) ? atMs : null
}
