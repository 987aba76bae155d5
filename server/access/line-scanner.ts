/**
 * Reads a line by the steps of its format, from left to right. A field ends at the character behind it, and no step is
 * tried twice but the skipped user name of a common log. So a line costs time in proportion to its length, whatever
 * format a caller gives and whatever a client sends (`pattern-cost.test.ts`).
 */
import type { Escapes } from './escapes.ts'
import { readAddress, readAddressAndPort } from '../../sdk/judge/address.ts'
import { isHostName, peerAddress } from './log-request.ts'

/** A part of a format. `field` is the number of the field whose span the step stores; -1: it is skipped. */
export type Step =
  | { kind: 'literal'; text: string }
  | { kind: 'blanks' }
  | { kind: 'date'; field: number }
  | { kind: 'time'; field: number; hasFraction: boolean }
  | { kind: 'quoted'; field: number; escapes: Escapes }
  | { kind: 'quotedOrMinus'; field: number; escapes: Escapes }
  | { kind: 'until'; field: number; delimiter: string; isWord: boolean }
  | { kind: 'rest'; field: number; isWord: boolean }
  | { kind: 'user'; isRetried: boolean }
  | { kind: 'list'; field: number; delimiter: string; mayBeQuoted: boolean }
  | { kind: 'addressAndPort'; field: number; delimiter: string }
  | { kind: 'hostAndPort'; field: number; delimiter: string }
  | { kind: 'peer'; field: number; delimiter: string } // the address, not in quotes

/** Where the fields of a line are: start and end of each. */
export type Spans = Int32Array

const space = 32
const tab = 9
const quote = 34
const minus = 45
const backslash = 92
const bracket = 91
const carriageReturn = 13
const lineFeed = 10

/** The longest user name that is skipped. */
const userCharsMax = 300

const date = /\d{1,2}[/-][A-Za-z]{3}[/-]\d{4}|\d{4}-\d\d-\d\d|\d{4}\/\d\d\/\d\d|\d{8}|\d\d\.\d\d\.\d{4}/y
const wholeSeconds = /\d\d:\d\d:\d\d/y
const seconds = /\d\d:\d\d:\d\d(?:[.,]\d{1,9})?/y

/** Returns where the steps from `index` on end in the line that begins at `position`, or -1. */
export function scan(
  steps: readonly Step[],
  index: number,
  text: string,
  position: number,
  end: number,
  spans: Spans,
): number {
  for (; index < steps.length; index++) {
    const step = steps[index]!
    if (step.kind === 'user')
      return step.isRetried
        ? scanUser(steps, index, text, position, end, spans)
        : scanAt(steps, index, text, firstBracket(text, position, end), end, spans)
    const next = stepEnd(step, text, position, end, spans)
    if (next < 0) return -1
    position = next
  }
  return position
}

function scanAt(
  steps: readonly Step[],
  index: number,
  text: string,
  position: number,
  end: number,
  spans: Spans,
): number {
  return position < 0 ? -1 : scan(steps, index + 1, text, position, end, spans)
}

function firstBracket(text: string, position: number, end: number): number {
  const last = Math.min(end, position + userCharsMax + 1)
  for (let offset = position; offset < last; offset++) if (text.charCodeAt(offset) === bracket) return offset
  return -1
}

/** The brackets before a digit that are tried, so that a line of many costs no more than that. */
const bracketsMax = 8

/** A client chooses its user name, which may contain the bracket before the time: each that may be it is tried. */
function scanUser(
  steps: readonly Step[],
  index: number,
  text: string,
  position: number,
  end: number,
  spans: Spans,
): number {
  const last = Math.min(end, position + userCharsMax + 1)
  let brackets = 0
  for (let offset = position; offset < last && brackets < bracketsMax; offset++) {
    const digit = text.charCodeAt(offset) === bracket ? text.charCodeAt(offset + 1) - 48 : -1
    if (digit < 0 || digit > 9) continue
    brackets++
    const scanEnd = scan(steps, index + 1, text, offset, end, spans)
    if (scanEnd >= 0) return scanEnd
  }
  return -1
}

/** Where a step ends, or -1 when the line does not fit. */
function stepEnd(
  step: Exclude<Step, { kind: 'user' }>,
  text: string,
  from: number,
  end: number,
  spans: Spans,
): number {
  switch (step.kind) {
    case 'literal': {
      const next = from + step.text.length
      return next <= end && text.startsWith(step.text, from) ? next : -1
    }
    case 'blanks':
      return blanksEnd(text, from, end)
    case 'date':
      return stored(spans, step.field, from, matchEnd(date, text, from, end))
    case 'time':
      return stored(
        spans,
        step.field,
        from,
        matchEnd(step.hasFraction ? seconds : wholeSeconds, text, from, end),
      )
    case 'quoted':
      return stored(spans, step.field, from, quotedEnd(text, from, end, step.escapes))
    case 'quotedOrMinus':
      return quotedOrMinusEnd(step, text, from, end, spans)
    case 'until':
      return stored(spans, step.field, from, untilEnd(text, from, end, step.delimiter, step.isWord))
    case 'rest':
      return stored(spans, step.field, from, restEnd(text, from, end, step.isWord))
    case 'list':
      return scanList(step, text, from, end, spans)
    case 'addressAndPort':
      return stored(spans, step.field, from, addressAndPortEnd(text, from, end, step.delimiter))
    case 'hostAndPort':
      return hostAndPortEnd(step, text, from, end, spans)
    case 'peer':
      return stored(spans, step.field, from, peerEnd(text, from, end, step.delimiter))
  }
}

function stored(spans: Spans, field: number, start: number, end: number): number {
  if (field >= 0 && end >= 0) {
    spans[field * 2] = start
    spans[field * 2 + 1] = end
  }
  return end
}

function blanksEnd(text: string, from: number, end: number): number {
  let offset = from
  while (offset < end && (text.charCodeAt(offset) === space || text.charCodeAt(offset) === tab)) offset++
  return offset
}

function matchEnd(expression: RegExp, text: string, from: number, end: number): number {
  expression.lastIndex = from
  return expression.test(text) && expression.lastIndex <= end ? expression.lastIndex : -1
}

/** Where the quote behind a value is. An escaped one does not end it. */
function quotedEnd(text: string, from: number, end: number, escapes: Escapes): number {
  for (let offset = from; offset < end; offset++) {
    const code = text.charCodeAt(offset)
    if (code === backslash && escapes === 'backslash') offset++
    else if (code === quote) {
      if (escapes !== 'double' || offset + 1 >= end || text.charCodeAt(offset + 1) !== quote) return offset
      offset++
    }
  }
  return -1
}

/** A value between quotes, or a minus without them. */
function quotedOrMinusEnd(
  { field, escapes }: Extract<Step, { kind: 'quotedOrMinus' }>,
  text: string,
  from: number,
  end: number,
  spans: Spans,
): number {
  const code = text.charCodeAt(from)
  if (code === minus) return stored(spans, field, from, from + 1)
  if (code !== quote) return -1
  const close = stored(spans, field, from + 1, quotedEnd(text, from + 1, end, escapes))
  return close < 0 ? -1 : close + 1
}

/**
 * Whether a quote is left open behind the fields that were read: their last one had a quote that its server did not
 * escape, so that the value goes on behind it.
 */
export function hasOpenQuote(text: string, from: number, end: number): boolean {
  let isOpen = false
  for (let index = from; index < end; index++) {
    const code = text.charCodeAt(index)
    if (code === backslash) index++
    else if (code === quote) isOpen = !isOpen
  }
  return isOpen
}

/** Where the delimiter is. A word has no space. */
function untilEnd(text: string, from: number, end: number, delimiter: string, isWord: boolean): number {
  const stop = delimiter.charCodeAt(0)
  let offset = from
  for (; offset < end; offset++) {
    const code = text.charCodeAt(offset)
    if (code === stop || code === carriageReturn || (isWord && code === space)) return offset
    if (stop === space && code === tab && delimiter.length > 1) return offset
  }
  return offset
}

/** The last field of a format. */
function restEnd(text: string, from: number, end: number, isWord: boolean): number {
  let offset = from
  for (; offset < end; offset++) {
    const code = text.charCodeAt(offset)
    if (code === carriageReturn || code === lineFeed) return offset
    if (isWord && (code === space || (code >= tab && code <= carriageReturn))) return offset
  }
  return offset
}

/** A value without blanks. */
function tokenEnd(text: string, from: number, end: number, delimiter: string): number {
  const stop = delimiter === '' ? space : delimiter.charCodeAt(0)
  let offset = from
  for (; offset < end; offset++) {
    const code = text.charCodeAt(offset)
    if (code === stop || code === space || code === tab || code === carriageReturn) return offset
  }
  return offset
}

function addressAndPortEnd(text: string, from: number, end: number, delimiter: string): number {
  const next = tokenEnd(text, from, end, delimiter)
  return readAddressAndPort(text.slice(from, next)) === null ? -1 : next
}

/** `shop.example:443`; an IPv6 address alone is no host with a port, but the peer of another format. */
function hostAndPortEnd(
  { field, delimiter }: Extract<Step, { kind: 'hostAndPort' }>,
  text: string,
  from: number,
  end: number,
  spans: Spans,
): number {
  const next = tokenEnd(text, from, end, delimiter)
  const value = text.slice(from, next)
  const port = value.lastIndexOf(':')
  if (port < 0 || !isPort.test(value.slice(port + 1))) return -1
  if (value.indexOf(':') < port && !value.startsWith('[') && readAddress(value) !== null) return -1
  stored(spans, field, from, from + port)
  return next
}

const isPort = /^\d{1,5}$/

const comma = 44

/** A value whose parts may be separated by a comma and a space. */
function listEnd(text: string, from: number, end: number, delimiter: string): number {
  let offset = tokenEnd(text, from, end, delimiter)
  if (delimiter === ',') return offset
  while (offset > from && text.charCodeAt(offset - 1) === comma && text.charCodeAt(offset) === space)
    offset = tokenEnd(text, offset + 1, end, delimiter)
  return offset
}

function scanList(
  { field, delimiter, mayBeQuoted }: Extract<Step, { kind: 'list' }>,
  text: string,
  from: number,
  end: number,
  spans: Spans,
): number {
  if (!mayBeQuoted || text.charCodeAt(from) !== quote)
    return stored(spans, field, from, listEnd(text, from, end, delimiter))
  const close = stored(spans, field, from + 1, quotedEnd(text, from + 1, end, 'backslash'))
  return close < 0 ? -1 : close + 1
}

/** An address, a list of them, a name that the server looked up, or a minus. */
function peerEnd(text: string, from: number, end: number, delimiter: string): number {
  const next = listEnd(text, from, end, delimiter)
  const value = text.slice(from, next)
  return value === '-' || hasAddress(value) || isHostName(value) ? next : -1
}

/** The longest header that servers accept by default. */
const listCharsMax = 8_192

function hasAddress(value: string): boolean {
  if (value.length > listCharsMax) return false
  if (!value.includes(',')) return peerAddress(value) !== null
  return value.split(',').some((hop) => peerAddress(hop.trim()) !== null)
}

/** What stands before the address of a common log. A client chooses its host. `space`: nothing else separates it. */
export type BeforePeer = 'nothing' | 'client' | 'client and space'

export type PeerCheck = 'right' | 'wrong' | 'ambiguous'

/**
 * Whether a value is the address, from the identity and the user name behind it up to the time. Logs of other formats
 * have the same shape, so that a value that the client chose may stand in the place of its address. `ambiguous`: it may
 * be the end of a Host header with spaces, which old servers accept.
 */
export function checkPeer(value: string, user: string, peerPrefix: BeforePeer, host: string): PeerCheck {
  if (user === usualUser && peerPrefix === 'nothing') return 'right'
  const tokens = user.split(/[ \t]+/).filter((token) => token !== '')
  const [identity = ''] = tokens
  if (/[.:]/.test(identity)) return 'wrong' // no identity is an address or a name, but in other formats both follow
  if (hasAddress(value)) {
    // Without an identity before the user name, lighttpd has the address first and the host behind it.
    const mayBeHost = peerPrefix === 'client and space' && (tokens.length === 1 || identity !== '-')
    if (mayBeHost && peerAddress(host) !== null) return 'ambiguous'
    return peerPrefix !== 'nothing' && hasOtherPeer(tokens) ? 'ambiguous' : 'right'
  }
  // What a client chose may be followed by a minus: in another format, that minus is the identity.
  if (peerPrefix === 'client and space' || (peerPrefix === 'client' && value === '-')) return 'wrong'
  return tokens.some((token) => peerAddress(token) !== null) ? 'wrong' : 'right'
}

/**
 * Whether a value is the address before the host that a client asked for, as lighttpd writes them. A log with the host
 * first looks the same where a client asked for an address.
 */
export function checkPeerBeforeHost(value: string, host: string): PeerCheck {
  if (peerAddress(value) === null) return 'wrong'
  return peerAddress(host) === null ? 'right' : 'ambiguous'
}

const usualUser = ' - - '

/** Another address with its identity. */
function hasOtherPeer(tokens: readonly string[]): boolean {
  return tokens.some((token, index) => index > 0 && tokens[index + 1] === '-' && peerAddress(token) !== null)
}
