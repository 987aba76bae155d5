/** JSON access logs: which names of fields mean what, by server. */
import { nestsDeeperThan } from '../text/json-scan.ts'
import { UsageError } from '../errors.ts'
import {
  countOf,
  emptyRequest,
  epochMs,
  setClient,
  setPeer,
  setRequestLine,
  setTarget,
  statusOf,
  timeMsOf,
  type LogRequest,
} from './log-request.ts'
import type { LineParser } from './pattern.ts'

/** Paths of each field, dots between names; the first one that a line has counts. */
export interface JsonFields {
  time: string[]
  address?: string[]
  /**
   * The client that the server read from X-Forwarded-For, where its own check of the proxy is not to be relied on. It
   * counts behind a proxy: one of a private network, or a trusted one.
   */
  client?: string[]
  forwarded?: string[]
  request?: string[] // `GET /path HTTP/1.1`
  method?: string[]
  path?: string[]
  query?: string[]
  protocol?: string[]
  host?: string[]
  status?: string[]
  bytes?: string[]
  duration?: string[]
  referrer?: string[]
  userAgent?: string[]
  /** Of `duration`, in milliseconds; 1,000 by default. */
  durationMs?: number
}

/** From the most particular names to the names that anybody may choose. */
export const jsonSets: { readonly [name: string]: JsonFields } = {
  caddy: {
    time: ['ts'],
    address: ['request.client_ip', 'request.remote_ip', 'request.remote_addr'],
    forwarded: ['request.headers.X-Forwarded-For'],
    method: ['request.method'],
    path: ['request.uri'],
    protocol: ['request.proto'],
    host: ['request.host'],
    status: ['status'],
    bytes: ['size'],
    duration: ['duration'],
    referrer: ['request.headers.Referer'],
    userAgent: ['request.headers.User-Agent'],
  },
  traefik: {
    time: ['StartUTC', 'time'],
    // ClientHost is X-Forwarded-For whenever a client sends one (traefik/traefik#6567, #13728).
    address: ['ClientAddr', 'ClientHost'],
    client: ['ClientHost'],
    forwarded: ['request_X-Forwarded-For'],
    method: ['RequestMethod'],
    path: ['RequestPath'],
    protocol: ['RequestProtocol'],
    host: ['RequestHost'],
    status: ['DownstreamStatus', 'OriginStatus'],
    bytes: ['DownstreamContentSize'],
    duration: ['Duration'],
    durationMs: 1e-6,
    referrer: ['request_Referer'],
    userAgent: ['request_User-Agent', 'ua'],
  },
  cloudflare: {
    time: ['EdgeStartTimestamp'],
    address: ['ClientIP'],
    method: ['ClientRequestMethod'],
    path: ['ClientRequestURI', 'ClientRequestPath'],
    protocol: ['ClientRequestProtocol'],
    host: ['ClientRequestHost'],
    status: ['EdgeResponseStatus'],
    bytes: ['EdgeResponseBytes'],
    duration: ['EdgeTimeToFirstByteMs'],
    durationMs: 1,
    referrer: ['ClientRequestReferer'],
    userAgent: ['ClientRequestUserAgent'],
  },
  gcp: {
    time: ['timestamp', 'receiveTimestamp'],
    address: ['httpRequest.remoteIp'],
    method: ['httpRequest.requestMethod'],
    path: ['httpRequest.requestUrl'],
    protocol: ['httpRequest.protocol'],
    status: ['httpRequest.status'],
    bytes: ['httpRequest.responseSize'],
    duration: ['httpRequest.latency'],
    referrer: ['httpRequest.referer'],
    userAgent: ['httpRequest.userAgent'],
  },
  vercel: {
    time: ['proxy.timestamp', 'timestamp'],
    address: ['proxy.clientIp'],
    method: ['proxy.method'],
    path: ['proxy.path'],
    host: ['proxy.host'],
    status: ['proxy.statusCode'],
    referrer: ['proxy.referer'],
    userAgent: ['proxy.userAgent'],
  },
  netlify: {
    time: ['timestamp'],
    address: ['client_ip'],
    method: ['method'],
    path: ['url', 'path'],
    host: ['host', 'domain'],
    status: ['status_code'],
    bytes: ['response_size'],
    duration: ['duration'],
    durationMs: 1,
    referrer: ['referrer'],
    userAgent: ['user_agent'],
  },
  // nginx (escape=json), HAProxy and others, whose administrators choose the names.
  json: {
    time: [
      'time_iso8601',
      'msec',
      'time_local',
      '@timestamp',
      'timestamp',
      'time',
      'ts',
      'date',
      'accept_date',
      'start_time',
    ],
    address: [
      'remote_addr',
      'client_ip',
      'clientip',
      'client_addr',
      'remote_ip',
      'downstream_remote_address',
      'client',
      'ip',
      'src',
    ],
    forwarded: ['http_x_forwarded_for', 'x_forwarded_for', 'X-Forwarded-For', 'x-forwarded-for'],
    request: ['request', 'http_request'],
    method: ['request_method', 'http_method', 'method'],
    path: ['request_uri', 'http_uri', 'uri', 'url', 'path'],
    query: ['query_string', 'args'],
    protocol: ['server_protocol', 'http_version', 'protocol'],
    host: ['http_host', 'host', 'authority', 'server_name', 'vhost'],
    status: ['status', 'status_code', 'http_status', 'response_code'],
    bytes: ['body_bytes_sent', 'bytes_sent', 'bytes_read', 'bytes', 'size'],
    duration: ['request_time'],
    referrer: ['http_referer', 'http_referrer', 'referer', 'referrer'],
    userAgent: ['http_user_agent', 'user_agent', 'http_useragent', 'useragent', 'agent', 'ua'],
  },
}

type Json = unknown

/** Servers nest a few levels. The parser needs 80 ms for a line of brackets. */
const lineDepthMax = 100

/** Parses lines with these names. A line needs a time, and a status or a request. */
export function compileJson(fields: JsonFields): LineParser {
  const paths = Object.fromEntries(
    Object.entries(fields).map(([name, keyPaths]) => [
      name,
      Array.isArray(keyPaths) ? keyPaths.map((path: string) => ({ key: path, names: path.split('.') })) : [],
    ]),
  ) as { [name in keyof JsonFields]?: Path[] }
  const unitMs = fields.durationMs ?? 1_000
  return (text, start, end) => {
    if (!/[{\s]/.test(text[start] ?? '')) return null
    const raw = text.slice(start, end)
    if (nestsDeeperThan(raw, lineDepthMax)) return null
    const line = parsedLine(raw) ?? (raw.includes('\\x') ? parsedLine(withJsonEscapes(raw)) : null)
    if (line === null || typeof line !== 'object') return null
    const textOf = (name: keyof JsonFields): string | null => textAt(line, paths[name] ?? [])
    const request = emptyRequest()
    request.timeMs = timeOf(valueAt(line, paths.time ?? []))
    setPeer(request, textOf('address') ?? '')
    request.forwarded ??= listAt(line, paths.forwarded ?? [])
    const client = textOf('client')
    if (client !== null) setClient(request, client)
    request.host = textOf('host')
    request.method = textOf('method')
    request.protocol = textOf('protocol')
    const path = textOf('path')
    const whole = textOf('request')
    if (whole !== null) setRequestLine(request, whole)
    if (path !== null) setTarget(request, path)
    const query = textOf('query')
    if (query !== null && request.path?.includes('?') === false)
      request.path += `?${query.replace(/^\?/, '')}`
    const status = textOf('status')
    request.status = statusOf(status === null ? null : countOf(status))
    request.bytes = countOf(textOf('bytes') ?? '')
    request.durationMs = durationOf(textOf('duration'), unitMs)
    request.referrer = textOf('referrer')
    request.userAgent = textOf('userAgent')
    if (Number.isNaN(request.timeMs) || (status === null && request.path === null)) return null
    return request
  }
}

/** Null for a text that is no JSON. */
function parsedLine(raw: string): Json {
  try {
    return JSON.parse(utf8(raw))
  } catch {
    return null
  }
}

/**
 * nginx without `escape=json` writes a quote as `\x22`, a backslash as `\x5C` and other bytes in the same way, which
 * JSON does not know. Clients cannot write a backslash there.
 */
function withJsonEscapes(raw: string): string {
  return raw.replaceAll(/\\x([0-9A-Fa-f]{2})/g, (_, hex: string) => {
    const code = Number.parseInt(hex, 16)
    return code < 0x80 ? `\\u00${hex}` : String.fromCharCode(code)
  })
}

const beyondAscii = /[\u0080-\u00ff]/

function utf8(bytes: string): string {
  return beyondAscii.test(bytes) ? Buffer.from(bytes, 'latin1').toString() : bytes
}

/** Names of a field from outside to inside, and the same as one key with dots, which counts first. */
interface Path {
  key: string
  names: string[]
}

const isPresent = (value: Json): boolean =>
  value !== undefined && value !== null && value !== '' && value !== '-'

function memberAt(line: Json, { key, names }: Path): Json {
  if (names.length > 1 && Object.hasOwn(line as object, key)) return (line as { [name: string]: Json })[key]
  let value: Json = line
  for (const name of names) {
    if (value === null || typeof value !== 'object' || !Object.hasOwn(value, name)) return undefined
    value = (value as { [name: string]: Json })[name]
  }
  return value
}

function valueAt(line: Json, paths: readonly Path[]): Json {
  for (const path of paths) {
    const value = memberAt(line, path)
    const first: Json = Array.isArray(value) ? value[0] : value // values of a header
    if (isPresent(first)) return first
  }
  return undefined
}

/** All values of a header that was sent several times. A client chooses the first ones, proxies add the others. */
function listAt(line: Json, paths: readonly Path[]): string | null {
  for (const path of paths) {
    const value = memberAt(line, path)
    if (!isPresent(value)) continue
    const values: Json[] = Array.isArray(value) ? value : [value]
    const texts = values.filter((text) => typeof text === 'string' && isPresent(text))
    if (texts.length > 0) return texts.join(', ').toWellFormed()
  }
  return null
}

function textAt(line: Json, paths: readonly Path[]): string | null {
  const value = valueAt(line, paths)
  if (typeof value === 'number') return String(value)
  if (typeof value !== 'string') return null
  return value.isWellFormed() ? value : value.toWellFormed()
}

function timeOf(value: Json): number {
  if (typeof value === 'number') return epochMs(value)
  return typeof value === 'string' ? timeMsOf(value) : Number.NaN
}

/** `0.123` in the unit of the log, or `0.123s` and `5ms` as Go and Google write it. */
function durationOf(text: string | null, unitMs: number): number | null {
  const [, digits, unit] = /^(\d{1,15}(?:\.\d{1,12})?(?:e-\d{1,2})?)(ns|us|µs|ms|s)?$/.exec(text ?? '') ?? []
  if (digits === undefined) return null
  const ms = Number(digits) * (unit === undefined ? unitMs : (units[unit] ?? 1))
  return Math.round(ms * 1e6) / 1e6
}

const units: { readonly [unit: string]: number } = { ns: 1e-6, us: 1e-3, µs: 1e-3, ms: 1, s: 1_000 }

type FieldName = Exclude<keyof JsonFields, 'durationMs'>
type GivenFields = { [name in FieldName]?: string[] } & { durationMs?: number }

/** By specifier of a format string. */
const namesOfSpecs: { readonly [spec: string]: FieldName } = {
  x: 'time',
  h: 'address',
  m: 'method',
  U: 'path',
  q: 'query',
  H: 'protocol',
  v: 'host',
  s: 'status',
  b: 'bytes',
  R: 'referrer',
  u: 'userAgent',
  T: 'duration',
  L: 'duration',
  D: 'duration',
  n: 'duration',
  r: 'request',
}

const unitOfSpec: { readonly [spec: string]: number } = { T: 1_000, L: 1, D: 1e-3, n: 1e-6 }

/**
 * Names from `json:time=ts,ip=client`, or from a JSON format of GoAccess such as `{"ts":"%x.%^","ip":"%h"}`. Throws a
 * UsageError.
 */
export function readJsonFormat(format: string): JsonFields {
  const fields: GivenFields = {}
  if (format.startsWith('json:')) {
    for (const pair of format.slice('json:'.length).split(',')) {
      const [name = '', path = ''] = pair.split('=').map((part) => part.trim())
      const field = shortNames[name] ?? (name as FieldName)
      if (path === '' || !fieldNames.includes(field))
        throw new UsageError(`"${pair}" is not a field of a JSON log`, `names: ${fieldNames.join(', ')}`)
      fields[field] = [...(fields[field] ?? []), path]
    }
  } else collect(parsed(format), [], fields)
  if (fields.time === undefined) throw new UsageError('the format has no time', 'add time=NAME, or %x')
  return { ...fields, time: fields.time }
}

const fieldNames: readonly string[] = [...new Set(Object.values(namesOfSpecs)), 'forwarded']
const shortNames: { readonly [name: string]: FieldName } = { ip: 'address', ua: 'userAgent' }

function parsed(format: string): Json {
  try {
    return JSON.parse(format)
  } catch {
    throw new UsageError('the format begins with { but is not JSON')
  }
}

function collect(value: Json, path: string[], fields: GivenFields): void {
  if (typeof value === 'string') {
    const spec = /^%([a-zA-Z])/.exec(value)?.[1] ?? ''
    const field = namesOfSpecs[spec]
    if (field === undefined) return
    fields[field] = [...(fields[field] ?? []), path.join('.')]
    if (unitOfSpec[spec] !== undefined) fields.durationMs = unitOfSpec[spec]
  } else if (Array.isArray(value)) collect(value[0], path, fields)
  else if (value !== null && typeof value === 'object')
    for (const [name, inner] of Object.entries(value)) collect(inner, [...path, name], fields)
}
