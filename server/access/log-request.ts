/** One request as an access log reports it, and the readers of its fields that all formats share. */
import { readAddress } from '../../sdk/judge/address.ts'
import { isPublicAddress } from '../../sdk/judge/judge.ts'
import { parseTime } from '../clock.ts'

export interface LogRequest {
  timeMs: number
  address: string | null // IP address of the peer, or of the client that the server validated
  peerName: string | null // where the server logged a name in place of the address; proves nothing
  forwarded: string | null // X-Forwarded-For, which anybody can send
  method: string | null
  path: string | null // with its query; null when the request was malformed
  protocol: string | null
  host: string | null
  status: number | null
  bytes: number | null // of the response
  durationMs: number | null
  referrer: string | null
  userAgent: string | null
}

export function emptyRequest(): LogRequest {
  return {
    timeMs: Number.NaN,
    address: null,
    peerName: null,
    forwarded: null,
    method: null,
    path: null,
    protocol: null,
    host: null,
    status: null,
    bytes: null,
    durationMs: null,
    referrer: null,
    userAgent: null,
  }
}

const hostName = /^\w[\w-]*(?:\.[\w-]+)*\.?$/
const hostNameCharsMax = 253

/** Whether a text may be a host name that the server looked up. A number may not. */
export function isHostName(text: string): boolean {
  return text.length <= hostNameCharsMax && /[A-Za-z_]/.test(text) && hostName.test(text)
}

/** nginx writes this for a client of a Unix socket, which can only be a proxy of the machine. */
const socketPeer = 'unix:'
const socketAddress = '127.0.0.1'

/** The address in the field of the peer; null for `-`, a name or any other word. */
export function peerAddress(text: string): string | null {
  return text === socketPeer ? socketAddress : readAddress(text)
}

/**
 * Stores the peer. A list is an X-Forwarded-For header that was logged in its place: the last proxy wrote the last
 * address, and only a trusted proxy vouches for those before it.
 */
export function setPeer(request: LogRequest, text: string): void {
  if (request.address !== null || request.peerName !== null) return
  const comma = text.lastIndexOf(',')
  request.address = peerAddress(comma < 0 ? text : text.slice(comma + 1).trim())
  if (comma >= 0 && request.address !== null) request.forwarded ??= text.slice(0, comma)
  else if (request.address === null && isHostName(text)) request.peerName = text
}

/** Stores the client that a server read from a header, which a proxy of a private network or a trusted one sent. */
export function setClient(request: LogRequest, text: string): void {
  if (peerAddress(text) === request.address) return
  if (request.address === null || isPublicAddress(request.address, words)) {
    request.forwarded ??= text
    return
  }
  request.address = null
  setPeer(request, text)
}

const words = new Uint32Array(4)

const monthNames = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']

/**
 * `2026-11-23`, `2026/11/23`, `20261123`, `23/Nov/2026` or `23.11.2026` as RFC 3339. Null for others: `11/12/2026` is
 * two different days.
 */
function isoDate(text: string): string | null {
  const iso = /^(\d{4})([-/]?)(\d\d)\2(\d\d)$/.exec(text)
  if (iso) return `${iso[1]}-${iso[3]}-${iso[4]}`
  const monthMatch = /^(\d{1,2})[/-]([A-Za-z]{3})[/-](\d{4})$/.exec(text)
  if (monthMatch) {
    const month = monthNames.indexOf(monthMatch[2]!.toLowerCase()) + 1
    return month === 0
      ? null
      : `${monthMatch[3]}-${String(month).padStart(2, '0')}-${monthMatch[1]!.padStart(2, '0')}`
  }
  const dotted = /^(\d\d)\.(\d\d)\.(\d{4})$/.exec(text)
  return dotted ? `${dotted[3]}-${dotted[2]}-${dotted[1]}` : null
}

/** Milliseconds since 1970 UTC of a date, a time and a zone such as `+0200`; NaN when invalid. No zone is UTC. */
export function dateTimeMs(date: string, time: string, zone: string): number {
  if (date !== midnight.date || zone !== midnight.zone)
    midnight = { date, zone, ms: parsedMs(date, '00:00:00', zone) }
  const ms = time.length === 8 ? midnight.ms + secondOfDay(time, 0) * 1_000 : Number.NaN
  return ms >= 0 && ms < timeMsMax ? ms : parsedMs(date, time, zone)
}

/** Lines of a log share their date. */
let midnight = { date: '', zone: '', ms: Number.NaN }

/** Of `HH:MM:SS` at a position; NaN for anything else and for leap seconds. */
export function secondOfDay(text: string, offset: number): number {
  const hour = twoDigits(text, offset)
  const minute = twoDigits(text, offset + 3)
  const second = twoDigits(text, offset + 6)
  const isTime = hour <= 23 && minute <= 59 && second <= 59
  const isSplit = text.charCodeAt(offset + 2) === colon && text.charCodeAt(offset + 5) === colon
  return isTime && isSplit ? hour * 3_600 + minute * 60 + second : Number.NaN
}

const colon = 58

function twoDigits(text: string, offset: number): number {
  const tens = text.charCodeAt(offset) - 48
  const unit = text.charCodeAt(offset + 1) - 48
  return tens >= 0 && tens <= 9 && unit >= 0 && unit <= 9 ? tens * 10 + unit : Number.NaN
}

function parsedMs(date: string, time: string, zone: string): number {
  const day = isoDate(date)
  if (day === null) return Number.NaN
  const offset = /^([+-]\d\d):?(\d\d)$/.exec(zone)
  return (
    parseTime(`${day}T${time.replace(',', '.')}${offset ? `${offset[1]}:${offset[2]}` : 'Z'}`) ?? Number.NaN
  )
}

/**
 * Milliseconds since 1970 UTC of a whole time: an epoch in s, ms, µs or ns (decided by its size), RFC 3339, or the
 * time of a common log. NaN when invalid.
 */
export function timeMsOf(text: string): number {
  if (/^\d{1,19}(?:\.\d{1,9})?$/.test(text)) return epochMs(Number(text))
  const [, date = '', time = '', zone = ''] =
    /^([\dA-Za-z./-]{8,11})[T :](\d\d:\d\d:\d\d(?:[.,]\d{1,9})?) ?(Z|[+-]\d\d:?\d\d)?$/i.exec(text) ?? []
  return dateTimeMs(date, time, zone)
}

/** The size tells the unit: 1e11 s is the year 5138, 1e11 ms is 1973. */
export function epochMs(value: number): number {
  if (!(value > 0)) return Number.NaN
  const ms = value < 1e11 ? value * 1e3 : value < 1e14 ? value : value < 1e17 ? value / 1e3 : value / 1e6
  return ms < timeMsMax ? Math.floor(ms) : Number.NaN
}

export const timeMsMax = Date.UTC(2201, 0, 1)

/** A whole number as logs write it; null for `-` and anything else. */
export function countOf(text: string): number | null {
  if (text.length === 0 || text.length > 15) return null
  let value = 0
  for (let index = 0; index < text.length; index++) {
    const digit = text.charCodeAt(index) - 48
    if (!(digit >= 0 && digit <= 9)) return null
    value = value * 10 + digit
  }
  return value
}

/** A status from 100 to 599; null for others, such as the 000 of a request that got no response. */
export function statusOf(value: number | null): number | null {
  return value !== null && value >= 100 && value <= 599 ? value : null
}

const schemeAndHost = /^(?:https?|wss?):\/\/([^/?#]*)/i

/** Stores the target of a request. A proxy or a load balancer logs the whole URL: its host is the request's. */
export function setTarget(request: LogRequest, target: string): void {
  const match = target.charCodeAt(0) === slash ? null : schemeAndHost.exec(target)
  if (match === null) {
    request.path = target
    return
  }
  const path = target.slice(match[0].length)
  request.path = path.startsWith('/') ? path : `/${path}`
  request.host ??= match[1]!
}

const slash = 47

const isDigit = (text: string, offset: number): boolean => {
  const digit = text.charCodeAt(offset) - 48
  return digit >= 0 && digit <= 9
}

/** Splits `GET /path HTTP/1.1`. Whatever else a client sent has no method and no path. */
export function setRequestLine(request: LogRequest, line: string): void {
  const first = line.indexOf(' ')
  const method = line.slice(0, Math.max(0, first))
  if (method !== 'GET' && method !== 'POST' && !/^[A-Z][A-Z-]{0,31}$/.test(method)) return
  const last = line.lastIndexOf(' ')
  const hasProtocol = last > first && line.startsWith('HTTP/', last + 1) && isDigit(line, last + 6)
  if (line[first + 1] === ' ' || last === first + 1) return
  request.method ??= method
  if (hasProtocol) request.protocol ??= line.slice(last + 1)
  if (request.path === null)
    setTarget(request, hasProtocol ? line.slice(first + 1, last) : line.slice(first + 1))
}
