/**
 * Log formats as GoAccess writes them (`%h %^[%d:%t %^] "%r" %s %b "%R" "%u"`), compiled into the steps of
 * `line-scanner.ts`.
 *
 * Lines are text in which each character is one byte, so that a position is an offset in the file and lines of any
 * bytes can be read. Fields become UTF-8 after their escapes are undone.
 */
import { readAddressAndPort } from '../../sdk/judge/address.ts'
import { UsageError } from '../errors.ts'
import { unescaped, type Escapes } from './escapes.ts'
import {
  checkPeer,
  checkPeerBeforeHost,
  hasOpenQuote,
  scan,
  type BeforePeer,
  type PeerCheck,
  type Step,
} from './line-scanner.ts'
import {
  countOf,
  dateTimeMs,
  emptyRequest,
  setPeer,
  setRequestLine,
  setTarget,
  statusOf,
  timeMsOf,
  type LogRequest,
} from './log-request.ts'

/** Parses the line of `text` from `start`; null when it does not fit. */
export type LineParser = (text: string, start: number, end: number) => LogRequest | null

type Setter = (request: LogRequest, value: string) => void

/** By specifier; `F` is `~h{…}`, `P` an address with its port. A field that occurs twice keeps its first value. */
const setters: { readonly [spec: string]: Setter } = {
  h: setPeer,
  P: (to, value) => void (to.address ??= readAddressAndPort(value)),
  F: (to, value) => void (to.forwarded ??= value),
  m: (to, value) => void (to.method ??= value),
  U: (to, value) => to.path === null && setTarget(to, value),
  q: (to, value) => void (to.path = `${to.path ?? ''}?${value.replace(/^\?/, '')}`),
  H: (to, value) => void (to.protocol ??= value),
  r: (to, value) => setRequestLine(to, value),
  s: (to, value) => void (to.status ??= statusOf(countOf(value))),
  b: (to, value) => void (to.bytes ??= countOf(value)),
  R: (to, value) => void (to.referrer ??= value),
  u: (to, value) => void (to.userAgent ??= value),
  v: (to, value) => void (to.host ??= isNumber.test(value) ? null : value),
  D: (to, value) => void (to.durationMs ??= scaled(value, 1e-3)),
  L: (to, value) => void (to.durationMs ??= scaled(value, 1)),
  T: (to, value) => void (to.durationMs ??= scaled(value, 1e3)),
  n: (to, value) => void (to.durationMs ??= scaled(value, 1e-6)),
}

/** A size or a duration in the place of the host. */
const isNumber = /^\d+(?:\.\d+)?$/

const givenFields = 'hmUqHrsbRuvDLTn'

/** Read and dropped: user, cipher, TLS version, media type, cache status. */
const ignoredFields = 'ekKMC'

/** Values without spaces, so that a line of one format does not fit another by accident. */
const words = 'hvmHsbDLTn'

/** Another text is of a log that has something else in this place. */
const statusText = /^-?\d{0,4}$/

function scaled(value: string, factor: number): number | null {
  const ms = /^\d{1,15}(?:\.\d{1,9})?$/.test(value) ? Number(value) * factor : null
  return ms === null ? null : Math.round(ms * 1e6) / 1e6
}

export interface PatternOptions {
  escapes?: Escapes
  /** Nothing follows the last field. */
  isWhole?: boolean
  /** Values between quotes may be a minus without them. */
  hasBareMinus?: boolean
}

/** Compiles a format. Throws a UsageError that names the part that cannot be read. */
export function compilePattern(format: string, options: PatternOptions = {}): LineParser {
  const { escapes = 'backslash', isWhole = false } = options
  const { steps, specs, before, isHostBehind } = compileSteps(tokensOf(format), options)
  const has = (spec: string): boolean => specs.includes(spec)
  if (!has('x') && !(has('d') && has('t')))
    throw new UsageError('the format has no time: add %d and %t, or %x')
  // Paths are percent-encoded by clients, and stay as they were sent.
  const isEncoded = escapes === 'percent' || escapes === 'plus'
  const fields = specs.flatMap((spec, index) => {
    if ('dtzx'.includes(spec)) return []
    const escapesOfField = isEncoded && !'uRF'.includes(spec) ? null : escapes
    return [{ index, set: setters[spec]!, escapes: escapesOfField }]
  })
  const date = specs.indexOf('d')
  const time = specs.indexOf('t')
  const zone = specs.indexOf('z')
  const whole = specs.indexOf('x')
  const peer = specs.indexOf('h')
  const host = specs.indexOf('v')
  const status = specs.indexOf('s')
  const isHostFirst = host === 0 && (steps[0]!.kind === 'until' || steps[0]!.kind === 'hostAndPort')
  const last = steps.at(-1)
  const endsInQuote = last?.kind === 'literal' && last.text.endsWith('"') && escapes === 'backslash'
  const firstTime = specs.findIndex((spec) => 'dtx'.includes(spec))
  const clockRead = { date: '', time: '', zone: '', ms: Number.NaN } // lines of one second share their time
  const spans = new Int32Array(specs.length * 2)
  return (text, start, end) => {
    const stop = scan(steps, 0, text, start, end, spans)
    if (stop < 0 || (isWhole && text.slice(stop, end).trim() !== '')) return null
    if (endsInQuote && stop < end && hasOpenQuote(text, stop, end)) return null
    const valueOf = (field: number): string => text.slice(spans[field * 2], spans[field * 2 + 1])
    if (status >= 0 && !statusText.test(valueOf(status))) return null
    const hostText = host < 0 ? '' : valueOf(host)
    if (isHostFirst && hostText.startsWith('"')) return null
    let check: PeerCheck = 'right'
    if (isHostBehind) check = checkPeerBeforeHost(valueOf(peer), hostText)
    else if (before !== null) {
      const user = text.slice(spans[peer * 2 + 1], spans[firstTime * 2]! - 1)
      check = checkPeer(valueOf(peer), user, before, hostText)
    }
    if (check === 'wrong') return null
    const hasPeer = check === 'right'
    // Apache writes an identity in this place.
    const hasHost = !isHostBehind || /[.:]/.test(hostText)
    const day = whole >= 0 ? '' : valueOf(date)
    const clock = valueOf(whole >= 0 ? whole : time)
    const offset = zone >= 0 ? valueOf(zone) : ''
    if (clock !== clockRead.time || day !== clockRead.date || offset !== clockRead.zone) {
      clockRead.date = day
      clockRead.time = clock
      clockRead.zone = offset
      clockRead.ms = whole >= 0 ? timeMsOf(clock) : dateTimeMs(day, clock, offset)
    }
    if (Number.isNaN(clockRead.ms)) return null
    const request = emptyRequest()
    request.timeMs = clockRead.ms
    for (const field of fields) {
      if ((field.index === peer && !hasPeer) || (field.index === host && !hasHost)) continue
      const raw = valueOf(field.index)
      if (raw !== '-' && raw !== '') field.set(request, unescaped(raw, field.escapes))
    }
    return request
  }
}

/** A character of the format, or a field of it. `separators`: those in the braces of `~h{…}`. */
type Token = { literal: string } | { spec: string; separators: string }

const isField = (token: Token | undefined): token is { spec: string; separators: string } =>
  token !== undefined && 'spec' in token

/** Behind GoAccess's ~h stand the characters that separate addresses. */
const separatorsKnown = /^[\s,;"+%]*$/

function tokensOf(format: string): Token[] {
  const tokens: Token[] = []
  const text = format.replaceAll('\\t', '\t')
  let offset = 0
  while (offset < text.length) {
    const [forwarded, separators = ''] = /^~h\{([^}]{0,20})\}/.exec(text.slice(offset, offset + 24)) ?? []
    if (forwarded !== undefined) {
      if (!separatorsKnown.test(separators))
        throw new UsageError(
          `${forwarded} has another separator than comma, semicolon, space and quote`,
          'write what stands before and behind the addresses outside of the braces',
        )
      tokens.push({ spec: 'F', separators })
      offset += forwarded.length
    } else if (text[offset] === '%') {
      const spec = text[offset + 1] ?? ''
      const isKnown = spec !== '' && `%~dtx^${givenFields}${ignoredFields}`.includes(spec)
      if (!isKnown)
        throw new UsageError(`%${spec} is not a field of a log format`, 'sightglass help import access')
      tokens.push(spec === '%' ? { literal: '%' } : { spec, separators: '' })
      offset += 2
    } else tokens.push({ literal: text[offset++]! })
  }
  return tokens
}

interface Compiled {
  steps: Step[]
  specs: string[] // of the fields that are stored, in their order
  before: BeforePeer | null // null: no user name follows the address
  isHostBehind: boolean // the host that a client asked for follows the address
}

function compileSteps(tokens: readonly Token[], options: PatternOptions): Compiled {
  const { escapes = 'backslash', hasBareMinus = false } = options
  const specs: string[] = []
  const steps: Step[] = []
  const store = (spec: string): number => specs.push(spec) - 1
  const hasPeer = tokens.some((token) => isField(token) && token.spec === 'h')
  let isRetried = true
  let peerPrefix: BeforePeer | null = null
  let isHostBehind = false
  for (let index = 0; index < tokens.length; index++) {
    const token = tokens[index]!
    if (!isField(token)) {
      const last = steps.at(-1)
      if (last?.kind === 'literal') last.text += token.literal
      else steps.push({ kind: 'literal', text: token.literal })
      continue
    }
    const { spec } = token
    const delimiter = delimiterAfter(tokens, index)
    const isQuoted = literalAt(tokens, index - 1) === '"' && delimiter === '"'
    const isSkipped = isSkippedSpec(spec)
    if (spec === '~') steps.push({ kind: 'blanks' })
    else if (spec === 'd') steps.push({ kind: 'date', field: store('d') })
    else if (spec === 't')
      steps.push({ kind: 'time', field: store('t'), hasFraction: delimiter !== '.' && delimiter !== ',' })
    else if (spec === '^' && isBehindTime(tokens, index))
      steps.push({ kind: 'until', field: store('z'), delimiter: required(tokens, index), isWord: false })
    else if (isQuoted && hasBareMinus) {
      dropLastCharacter(steps)
      steps.push({ kind: 'quotedOrMinus', field: isSkipped ? -1 : store(storedSpec(spec, hasPeer)), escapes })
      index++ // the quote behind the value
    } else if (isQuoted)
      steps.push({ kind: 'quoted', field: isSkipped ? -1 : store(storedSpec(spec, hasPeer)), escapes })
    else if (spec === '^' && delimiter === '[') {
      const next = tokens[index + 2]
      steps.push({ kind: 'user', isRetried: isRetried && isField(next) && 'dtx'.includes(next.spec) })
      isRetried = false
    } else if (spec === 'F') {
      const mayBeQuoted = token.separators.includes('"')
      steps.push({
        kind: 'list',
        field: store(storedSpec(spec, hasPeer)),
        delimiter: required(tokens, index),
        mayBeQuoted,
      })
    } else if (spec === 'v' && isBeforePort(tokens, index) && delimiterAfter(tokens, index + 2) === ' ') {
      steps.push({ kind: 'hostAndPort', field: store('v'), delimiter: ' ' })
      index += 2
    } else if (spec === 'h' && isBeforePort(tokens, index)) {
      steps.push({ kind: 'addressAndPort', field: store('P'), delimiter: required(tokens, index + 2) })
      index += 2
    } else if (spec === 'h') {
      steps.push({
        kind: 'peer',
        field: store('h'),
        delimiter: required(tokens, index),
      })
      peerPrefix ??= isBeforeUser(tokens, index) ? whatIsBefore(tokens, index) : null
      isHostBehind ||= isBeforeHost(tokens, index)
    } else {
      const field = isSkipped ? -1 : store(spec)
      const isWord = words.includes(spec)
      if (required(tokens, index) === '') steps.push({ kind: 'rest', field, isWord: !'uRr'.includes(spec) })
      else steps.push({ kind: 'until', field, delimiter, isWord })
    }
  }
  return { steps, specs, before: peerPrefix, isHostBehind }
}

/** The quote before a value belongs to the step of the value. */
function dropLastCharacter(steps: Step[]): void {
  const last = steps.at(-1)
  if (last?.kind !== 'literal') return
  last.text = last.text.slice(0, -1)
  if (last.text === '') steps.pop()
}

/** Where a format has no other address, the forwarded one is that of the client, as in GoAccess. */
const storedSpec = (spec: string, hasPeer: boolean): string => (spec === 'F' && !hasPeer ? 'h' : spec)

function literalAt(tokens: readonly Token[], index: number): string {
  const token = tokens[index]
  return token === undefined || isField(token) ? '' : token.literal
}

/** Either of the characters ends a field before `%~`. */
const blanks = ' \t'

/** The character behind a field; '' at the end of the format and before another field. */
function delimiterAfter(tokens: readonly Token[], index: number): string {
  const next = tokens[index + 1]
  return isField(next) && next.spec === '~' ? blanks : literalAt(tokens, index + 1)
}

/** Without a character between them, nobody could tell where one field ends and the next one begins. */
function required(tokens: readonly Token[], index: number): string {
  const delimiter = delimiterAfter(tokens, index)
  const next = tokens[index + 1]
  if (delimiter !== '' || !isField(next)) return delimiter
  const token = tokens[index] as { spec: string }
  throw new UsageError(
    `${nameOf(token.spec)} is followed by ${nameOf(next.spec)} with no character between them`,
    'write the character that separates the two fields',
  )
}

const nameOf = (spec: string): string => (spec === 'F' ? '~h{…}' : `%${spec}`)

function specAt(tokens: readonly Token[], index: number): string {
  const token = tokens[index]
  return isField(token) ? token.spec : ''
}

/** `%t %^` is a time and its zone. */
function isBehindTime(tokens: readonly Token[], index: number): boolean {
  return literalAt(tokens, index - 1) === ' ' && specAt(tokens, index - 2) === 't'
}

/** `%h:%^ ` as AWS writes it, and `%v:%^ `: an IPv6 address has colons itself. */
function isBeforePort(tokens: readonly Token[], index: number): boolean {
  return literalAt(tokens, index + 1) === ':' && specAt(tokens, index + 2) === '^'
}

/** `%h %^[`, `%h %^ %^[` and `%h %^ %e [`: an identity and a user name follow, as in a common log. */
function isBeforeUser(tokens: readonly Token[], index: number): boolean {
  let next = index + 1
  while (literalAt(tokens, next) === ' ' && isSkippedSpec(specAt(tokens, next + 1))) {
    const isBeforeBracket = literalAt(tokens, next + 2) === ' ' && literalAt(tokens, next + 3) === '['
    if (isBeforeBracket || literalAt(tokens, next + 2) === '[') return true
    next += 2
  }
  return false
}

/** `%h %v %e [`, as lighttpd writes: the host and one word up to the time. */
function isBeforeHost(tokens: readonly Token[], index: number): boolean {
  const isHost = literalAt(tokens, index + 1) === ' ' && specAt(tokens, index + 2) === 'v'
  const isUser = literalAt(tokens, index + 3) === ' ' && isSkippedSpec(specAt(tokens, index + 4))
  return isHost && isUser && literalAt(tokens, index + 5) === ' ' && literalAt(tokens, index + 6) === '['
}

const isSkippedSpec = (spec: string): boolean => spec !== '' && `^${ignoredFields}`.includes(spec)

/** Clients choose the host, the forwarded addresses and whatever else is skipped before the address. */
function whatIsBefore(tokens: readonly Token[], index: number): BeforePeer {
  const isChosen = tokens.slice(0, index).some(isField)
  if (!isChosen) return 'nothing'
  const isHostAlone = literalAt(tokens, index - 1) === ' ' && specAt(tokens, index - 2) !== '^'
  return isHostAlone ? 'client and space' : 'client'
}
