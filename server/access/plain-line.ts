/**
 * Reads lines of the combined format in place, field by field, where nothing in them is escaped or unusual: a tenth of
 * what the steps of `pattern.ts` cost, because a field becomes text only when somebody asks for it.
 *
 * It declines every line that it is not sure of, and `pattern.ts` reads that one. A line that it does read has the
 * fields that `pattern.ts` finds (`plain-line.test.ts`).
 */
import { isAscii } from 'node:buffer'
import { readAddress } from '../../sdk/judge/address.ts'
import { hasOpenQuote } from './line-scanner.ts'
import { dateTimeMs, secondOfDay, timeMsMax, type LogRequest } from './log-request.ts'

/** The line that was read last. Positions are in `text`. */
export interface PlainLine {
  text: string
  timeMs: number
  status: number
  bytes: number | null
  hostStart: number
  hostEnd: number // hostStart: the format has no host
  addressStart: number
  addressEnd: number
  methodStart: number
  pathStart: number
  pageEnd: number // at the query or the fragment
  pathEnd: number
  hasPairs: boolean // a `=` in the path, as parameters have
  protocolEnd: number
  referrerStart: number
  referrerEnd: number
  agentStart: number
  agentEnd: number
  forwardedStart: number
  forwardedEnd: number
}

export interface PlainReader {
  line: PlainLine
  /** Whether the line from `start` to `end` is plain. */
  read(text: string, start: number, end: number): boolean
  /** All fields of the line. */
  request(): LogRequest
}

const combined = /^(%v:%\^ )?%h %\^\[%d:%t %\^\] "%r" %s %b "%R" "%u"( "~h\{, \}")?$/

/** A reader of lines in this format; null for a format that it does not know. */
export function plainReader(format: string): PlainReader | null {
  const [whole, host, forwarded] = combined.exec(format) ?? []
  if (whole === undefined) return null
  const line = emptyLine()
  const unusual = unusualFinder()
  const timeAt = timeReader()
  return {
    line,
    read(text, start, end) {
      line.text = text
      if (unusual(text, start) < end) return false
      const addressStart = host === undefined ? noHost(line, start) : readHost(line, start, end)
      const open = readPeer(line, addressStart, end, host !== undefined)
      if (open < 0 || open + stampChars > end) return false
      const ms = timeAt(text, open)
      if (!(ms >= 0)) return false
      line.timeMs = ms
      const agentEnd = readReferrerAndAgent(
        line,
        readNumbers(line, readRequest(line, open + stampChars, end)),
        end,
      )
      if (agentEnd < 0) return false
      const fieldsEnd = forwarded === undefined ? agentEnd : readForwarded(line, agentEnd, end)
      return fieldsEnd >= 0 && (fieldsEnd >= end || !hasOpenQuote(text, fieldsEnd, end))
    },
    request: () => requestOf(line, host !== undefined, forwarded !== undefined),
  }
}

function emptyLine(): PlainLine {
  return {
    text: '',
    timeMs: 0,
    status: 0,
    bytes: 0,
    hostStart: 0,
    hostEnd: 0,
    addressStart: 0,
    addressEnd: 0,
    methodStart: 0,
    pathStart: 0,
    pageEnd: 0,
    pathEnd: 0,
    hasPairs: false,
    protocolEnd: 0,
    referrerStart: 0,
    referrerEnd: 0,
    agentStart: 0,
    agentEnd: 0,
    forwardedStart: 0,
    forwardedEnd: 0,
  }
}

/** Where the next backslash or byte above 127 is; each text is searched once. */
function unusualFinder(): (text: string, from: number) => number {
  const beyondAscii = /[\u0080-\u00ff]/g
  let current = ''
  let backslash = 0
  let beyond = 0
  return (text, from) => {
    if (text !== current) {
      current = text
      backslash = -1
      beyond = isAscii(Buffer.from(text, 'latin1')) ? text.length : -1
    }
    if (backslash < from) backslash = orEnd(text, text.indexOf('\\', from))
    if (beyond < from) {
      beyondAscii.lastIndex = from
      beyond = orEnd(text, beyondAscii.exec(text)?.index ?? -1)
    }
    return Math.min(backslash, beyond)
  }
}

const orEnd = (text: string, index: number): number => (index < 0 ? text.length : index)

const space = 32
const quote = 34
const minus = 45
const slash = 47
const colon = 58
const bracket = 91

/** `[23/Nov/2026:07:32:28 +0000] "` */
const stampChars = 30
const stamp = /\[(\d\d\/[A-Za-z]{3}\/\d{4}:)(\d\d:\d\d:\d\d)( [+-]\d{4}\] ")/y

/** The time at an opening bracket, NaN for another spelling. Lines share their date and zone. */
function timeReader(): (text: string, offset: number) => number {
  let day = ''
  let zone = ''
  let midnightMs = Number.NaN
  return (text, offset) => {
    if (day === '' || !text.startsWith(day, offset + 1) || !text.startsWith(zone, offset + 21)) {
      stamp.lastIndex = offset
      const match = stamp.exec(text)
      if (match === null) return Number.NaN
      day = Buffer.from(match[1]!).toString() // a copy: a part of a block would hold all of it
      zone = Buffer.from(match[3]!).toString()
      midnightMs = dateTimeMs(day.slice(0, -1), '00:00:00', zone.slice(1, 6))
    }
    const ms = midnightMs + secondOfDay(text, offset + 13) * 1_000
    return ms < timeMsMax ? ms : Number.NaN
  }
}

function noHost(line: PlainLine, start: number): number {
  line.hostStart = line.hostEnd = start
  return start
}

const portCharsMax = 5

/** `shop.example:443 ` */
function readHost(line: PlainLine, start: number, end: number): number {
  const { text } = line
  let offset = start
  while (text.charCodeAt(offset) > space && text.charCodeAt(offset) !== colon) offset++
  if (text.charCodeAt(offset) !== colon) return end
  line.hostStart = start
  line.hostEnd = offset
  offset++
  while (isDigit(text.charCodeAt(offset))) offset++
  return text.charCodeAt(offset) === space &&
    offset > line.hostEnd + 1 &&
    offset <= line.hostEnd + portCharsMax + 1
    ? offset + 1
    : end
}

/** The longest user name that `pattern.ts` skips. */
const userCharsMax = 300

/** Returns where the bracket before the time is, or -1. `hasHost`: a client chose what stands before the address. */
function readPeer(line: PlainLine, start: number, end: number, hasHost: boolean): number {
  const { text } = line
  const next = addressEnd(text, start)
  // Nearly every identity is a minus. Others may be the address of a log with another field first.
  if (next < 0 || next + 3 > end || !text.startsWith(' - ', next)) return -1
  line.addressStart = start
  line.addressEnd = next
  const last = Math.min(end, next + userCharsMax + 2)
  for (let offset = next + 3; offset < last; offset++) {
    const code = text.charCodeAt(offset)
    if (code === bracket) return offset
    if (hasHost && code === space && text.charCodeAt(offset + 1) !== bracket) return -1
  }
  return -1
}

/** Where an address ends, or -1. Names, ports, brackets, zones and mapped addresses are left to `pattern.ts`. */
function addressEnd(text: string, start: number): number {
  let offset = start
  let octet = -1
  let dots = 0
  for (; ; offset++) {
    const digit = text.charCodeAt(offset) - 48
    if (digit >= 0 && digit <= 9) {
      if (octet === 0) return -1 // leading zeros are octal to some programs
      octet = octet < 0 ? digit : octet * 10 + digit
      if (octet > 255) return addressEndIPv6(text, start)
    } else if (digit === dot) {
      if (octet < 0 || ++dots > 3) return -1
      octet = -1
    } else break
  }
  if (dots === 3 && octet >= 0) return offset
  return dots === 0 ? addressEndIPv6(text, start) : -1
}

/** Relative to the digit 0. */
const dot = -2

const groupsMax = 8
const groupCharsMax = 4

function addressEndIPv6(text: string, start: number): number {
  let offset = start
  let groups = 0
  let chars = 0
  let hasGap = false
  for (; ; offset++) {
    const code = text.charCodeAt(offset)
    const isHex = isDigit(code) || ((code | 32) >= 97 && (code | 32) <= 102)
    if (isHex) {
      if (++chars > groupCharsMax) return -1
      if (chars === 1) groups++
    } else if (code === colon) {
      const isGap = text.charCodeAt(offset + 1) === colon
      if (isGap && hasGap) return -1
      if (!isGap && chars === 0) return -1
      if (isGap) {
        hasGap = true
        offset++
      }
      chars = 0
    } else break
  }
  const endsInColon = text.charCodeAt(offset - 1) === colon && text.charCodeAt(offset - 2) !== colon
  const isAddress = hasGap ? groups < groupsMax : groups === groupsMax
  return isAddress && !endsInColon ? offset : -1
}

const methodCharsMax = 32
const protocolCharsMax = 12

/** `GET /path HTTP/1.1"`; returns where the quote is, or -1. */
function readRequest(line: PlainLine, start: number, end: number): number {
  const { text } = line
  const close = text.indexOf('"', start)
  if (close < 0 || close >= end) return -1
  let offset = start
  while (isUpper(text.charCodeAt(offset)) || (text.charCodeAt(offset) === minus && offset > start)) offset++
  const isMethod = offset > start && offset - start <= methodCharsMax && text.charCodeAt(offset) === space
  if (!isMethod || text.charCodeAt(offset + 1) !== slash) return -1
  let last = close - 1
  const lowerBound = Math.max(offset + 1, close - protocolCharsMax)
  while (last > lowerBound && text.charCodeAt(last) !== space) last--
  if (last <= lowerBound || last + 6 >= close || !text.startsWith('HTTP/', last + 1)) return -1
  if (!isDigit(text.charCodeAt(last + 6))) return -1
  line.methodStart = start
  line.pathStart = offset + 1
  line.pathEnd = last
  line.protocolEnd = close
  findPage(line)
  return close
}

const isUpper = (code: number): boolean => code >= 65 && code <= 90
const isDigit = (code: number): boolean => code >= 48 && code <= 57

const question = 63
const hash = 35
const equals = 61

function findPage(line: PlainLine): void {
  const { text, pathEnd } = line
  let offset = line.pathStart
  let hasPairs = false
  for (; offset < pathEnd; offset++) {
    const code = text.charCodeAt(offset)
    if (code === question || code === hash) break
    if (code === equals) hasPairs = true
  }
  line.pageEnd = offset
  line.hasPairs = hasPairs || offset < pathEnd
}

const countCharsMax = 15

/** `" 200 1234 "`; returns where the referrer starts, or -1. */
function readNumbers(line: PlainLine, close: number): number {
  if (close < 0) return -1
  const { text } = line
  const status = digitAt(text, close + 2) * 100 + digitAt(text, close + 3) * 10 + digitAt(text, close + 4)
  const isStatus = status >= 100 && status <= 599
  if (!isStatus || text.charCodeAt(close + 1) !== space || text.charCodeAt(close + 5) !== space) return -1
  const start = close + 6
  let offset = start
  let bytes: number | null = null
  if (text.charCodeAt(offset) === minus) offset++
  else {
    bytes = 0
    while (isDigit(text.charCodeAt(offset))) bytes = bytes * 10 + text.charCodeAt(offset++) - 48
    if (offset === start || offset - start > countCharsMax) return -1
  }
  if (text.charCodeAt(offset) !== space || text.charCodeAt(offset + 1) !== quote) return -1
  line.status = status
  line.bytes = bytes
  return offset + 2
}

/** NaN for other characters. */
function digitAt(text: string, offset: number): number {
  const digit = text.charCodeAt(offset) - 48
  return digit >= 0 && digit <= 9 ? digit : Number.NaN
}

/** `https://shop.example/" "Mozilla/5.0"`; returns the position after it, or -1. */
function readReferrerAndAgent(line: PlainLine, start: number, end: number): number {
  if (start < 0) return -1
  const { text } = line
  const referrerEnd = text.indexOf('"', start)
  if (referrerEnd < 0 || referrerEnd + 3 > end) return -1
  if (text.charCodeAt(referrerEnd + 1) !== space || text.charCodeAt(referrerEnd + 2) !== quote) return -1
  const agentEnd = text.indexOf('"', referrerEnd + 3)
  if (agentEnd < 0 || agentEnd >= end) return -1
  line.referrerStart = start
  line.referrerEnd = referrerEnd
  line.agentStart = referrerEnd + 3
  line.agentEnd = agentEnd
  return agentEnd + 1
}

/** ` "203.0.113.9, 192.0.2.1"`; returns the position after it, or -1. */
function readForwarded(line: PlainLine, start: number, end: number): number {
  const { text } = line
  if (start + 2 > end || text.charCodeAt(start) !== space || text.charCodeAt(start + 1) !== quote) return -1
  let offset = start + 2
  line.forwardedStart = offset
  if (text.charCodeAt(offset) === minus) offset++
  else while (offset < end && isOfForwarded(text.charCodeAt(offset))) offset++
  line.forwardedEnd = offset
  return offset < end && text.charCodeAt(offset) === quote ? offset + 1 : -1
}

/** Digits, letters, colon, dot, comma and space. */
function isOfForwarded(code: number): boolean {
  const lower = code | 32
  return (
    (code >= 48 && code <= 58) ||
    (lower >= 97 && lower <= 122) ||
    code === 46 ||
    code === 44 ||
    code === space
  )
}

function requestOf(line: PlainLine, hasHost: boolean, hasForwarded: boolean): LogRequest {
  const { text, timeMs, status, bytes, pathStart, pathEnd, protocolEnd } = line
  return {
    timeMs,
    address: readAddress(text.slice(line.addressStart, line.addressEnd)),
    peerName: null,
    forwarded: hasForwarded ? valueOf(text, line.forwardedStart, line.forwardedEnd) : null,
    method: text.slice(line.methodStart, pathStart - 1),
    path: text.slice(pathStart, pathEnd),
    protocol: text.slice(pathEnd + 1, protocolEnd),
    host: hasHost ? valueOf(text, line.hostStart, line.hostEnd) : null,
    status,
    bytes,
    durationMs: null,
    referrer: valueOf(text, line.referrerStart, line.referrerEnd),
    userAgent: valueOf(text, line.agentStart, line.agentEnd),
  }
}

/** Null for an empty field, which servers also write as `-`. */
function valueOf(text: string, start: number, end: number): string | null {
  if (start === end || (end === start + 1 && text.charCodeAt(start) === minus)) return null
  return text.slice(start, end)
}
