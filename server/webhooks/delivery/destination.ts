/** Reads where a delivery goes: an http(s) URL, a file below the sink folder, or a syslog receiver. */
import { isAbsolute, join, normalize, relative } from 'node:path'
import { AppError } from '../../errors.ts'
import type { Resolve } from './resolve.ts'

export type Target = HttpTarget | FileTarget | SyslogTarget

export interface HttpTarget {
  kind: 'http'
  url: URL
  host: string // a name or an address, without brackets
}

export interface FileTarget {
  kind: 'file'
  path: string // below the sink folder, relative to it
}

export interface SyslogTarget {
  kind: 'syslog'
  transport: 'udp' | 'tcp'
  host: string
  port: number
}

/** Why a URL is refused, in words for the person who gave it. */
export class RefusedUrl extends Error {}

export const urlCharsMax = 2_048

/** `sinkDir` null: file sinks are not switched on. Throws `RefusedUrl`. Addresses are checked elsewhere. */
export function readTarget(text: string, sinkDir: string | null): Target {
  if (text.length > urlCharsMax) throw new RefusedUrl(`it is longer than ${urlCharsMax} characters`)
  // The parser drops line breaks and tabs, so the URL that was checked would not be the text that is stored.
  if (/[\u0000-\u001f\u007f-\u009f]/.test(text)) throw new RefusedUrl('it contains a control character')
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null) throw new RefusedUrl('it is not a URL')
  if (url.username !== '' || url.password !== '') throw new RefusedUrl('it carries a user name or password')
  if (url.hash !== '' || text.includes('#')) throw new RefusedUrl('it carries a fragment')
  switch (url.protocol) {
    case 'http:':
    case 'https:':
      if (url.port === '0') throw new RefusedUrl('its port is 0')
      return { kind: 'http', url, host: withoutBrackets(url.hostname) }
    case 'file:':
      return { kind: 'file', path: filePath(text, url, sinkDir) }
    case 'syslog:':
    case 'syslog+udp:':
      return syslog(url, 'udp', 514)
    case 'syslog+tcp:':
      return syslog(url, 'tcp', 601)
    default:
      throw new RefusedUrl('its scheme is neither http nor https')
  }
}

/**
 * What shares the limit of sends at a time when there is no endpoint: the origin, as one organization sends to it. One
 * lane for everybody would let an organization with a long queue delay the others.
 */
export function laneOf(orgId: string, target: HttpTarget): string {
  return `${orgId} ${target.url.origin}`
}

function withoutBrackets(host: string): string {
  return host.startsWith('[') ? host.slice(1, -1) : host
}

function syslog(url: URL, transport: 'udp' | 'tcp', portDefault: number): SyslogTarget {
  if (url.pathname.replace('/', '') !== '' || url.search !== '')
    throw new RefusedUrl('it has a path or query')
  // Only http URLs have their host brought into one form (0x7f.1, full-width digits, percent escapes).
  const asHttp = `http://${url.hostname}/`
  if (url.hostname === '' || !URL.canParse(asHttp)) throw new RefusedUrl('it names no host')
  const port = url.port === '' ? portDefault : Number(url.port)
  if (port === 0) throw new RefusedUrl('its port is 0')
  return { kind: 'syslog', transport, host: withoutBrackets(new URL(asHttp).hostname), port }
}

const segmentForm = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}$/

/** `file:name.ndjson` lies in the sink folder; an absolute path must lie below it. */
function filePath(text: string, url: URL, sinkDir: string | null): string {
  if (sinkDir === null)
    throw new RefusedUrl('file sinks are off; the operator opens a folder with --sink-dir')
  if (url.hostname !== '' || url.search !== '') throw new RefusedUrl('it names a host or a query')
  const isWhole = /^file:[\\/]/i.test(text)
  const path = isWhole ? relative(normalize(sinkDir), normalize(url.pathname)) : url.pathname.slice(1)
  const segments = path.split('/')
  if (isAbsolute(path) || segments.some((segment) => !segmentForm.test(segment))) {
    throw new RefusedUrl('its path is not plain names below the sink folder')
  }
  if (!path.endsWith('.ndjson') || segments.length > 4) {
    throw new RefusedUrl('its name does not end in .ndjson, or it lies too deep')
  }
  return join(...segments)
}

/** Accepts or refuses the URL somebody gives for a delivery: 400 `url_blocked` for what may never be reached. */
export interface UrlRules {
  resolve: Resolve
  sinkDir: string | null
}

interface CheckedUrl {
  url: string // as it is stored
  target: Target
}

/**
 * Refuses what can never be a receiver: other schemes, forbidden addresses, `localhost`. No name is looked up here.
 * Otherwise the answer, or the time it takes, would say which names of the inside network exist. A name that leads to
 * a forbidden address is accepted and fails at send, exactly as one that does not exist.
 * `httpOnly`: for deliveries without an endpoint.
 */
export function checkUrl(rules: UrlRules, value: unknown, httpOnly: boolean): CheckedUrl {
  if (value === undefined || value === null) throw wrongBody('url', 'required', 'url is required')
  if (typeof value !== 'string') throw wrongBody('url', 'wrong_type', 'url must be a text')
  let target
  try {
    target = readTarget(value, rules.sinkDir)
  } catch (error) {
    if (error instanceof RefusedUrl) throw blocked(error.message)
    throw error
  }
  if (httpOnly && target.kind !== 'http') throw blocked('its scheme is neither http nor https')
  if (target.kind === 'file') return { url: `file:${target.path}`, target }
  const resolution = rules.resolve.known(target.host)
  if (resolution?.kind === 'refused') throw blocked(resolution.why)
  return { url: value, target }
}

function blocked(why: string): AppError {
  return wrongBody('url', 'url_blocked', `deliveries may not go to this URL: ${why}`, {
    hint: 'An operator opens private ranges with --webhook-allow.',
  })
}

export function wrongBody(
  path: string,
  code: string,
  message: string,
  more: { hint?: string } = {},
): AppError {
  return new AppError('invalid_body', message, { issues: [{ path, code, message }], ...more })
}
