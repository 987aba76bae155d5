/**
 * Log formats as GoAccess writes them (`%h %^[%d:%t %^] "%r" %s %b "%R" "%u"`), compiled into one regular expression
 * that reads a line in place.
 *
 * Lines are text in which each character is one byte, so that a position is an offset in the file and lines of any
 * bytes can be read. Fields become UTF-8 after their escapes are undone.
 */
import { UsageError } from '../errors.ts'
import {
  countOf,
  dateTimeMs,
  emptyRequest,
  setRequestLine,
  setTarget,
  statusOf,
  timeMsOf,
  type LogRequest,
} from './log-request.ts'

/** How a server writes characters that would end a field. `plus`: IIS writes a space as `+`. */
export type Escapes = 'backslash' | 'double' | 'percent' | 'plus'

/** Parses the line of `text` from `start`; null when it does not fit. */
export type LineParser = (text: string, start: number, end: number) => LogRequest | null

type Setter = (request: LogRequest, value: string) => void

/** By specifier. A field that occurs twice keeps its first value, as in GoAccess. */
const setters: { readonly [spec: string]: Setter } = {
  h: (to, value) => void (to.address ??= value[0] === '[' ? value.slice(1, -1) : value),
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
  v: (to, value) => void (to.host ??= value),
  D: (to, value) => void (to.durationMs ??= scaled(value, 1e-3)),
  L: (to, value) => void (to.durationMs ??= scaled(value, 1)),
  T: (to, value) => void (to.durationMs ??= scaled(value, 1e3)),
  n: (to, value) => void (to.durationMs ??= scaled(value, 1e-6)),
}

/** Read and dropped: user, cipher, TLS version, media type, cache status. */
const ignored = 'ekKMC'

/** Values without spaces, so that a line of one format does not fit another by accident. */
const words = 'hvmHsbDLTn'

function scaled(value: string, factor: number): number | null {
  const ms = /^\d{1,15}(?:\.\d{1,9})?$/.test(value) ? Number(value) * factor : null
  return ms === null ? null : Math.round(ms * 1e6) / 1e6
}

interface Part {
  spec: string // a specifier, `F` for ~h{…}, `z` for the zone, `_` for skipped text
  pattern: string
}

const datePattern = String.raw`\d{1,2}[/-][A-Za-z]{3}[/-]\d{4}|\d{4}-\d\d-\d\d|\d{4}/\d\d/\d\d|\d{8}|\d\d\.\d\d\.\d{4}`
const timePattern = String.raw`\d\d:\d\d:\d\d(?:[.,]\d{1,9})?`
/** An address, a name, or `unix:`; never the `-` of a missing one. An IPv6 address may be in brackets. */
const addressPattern = String.raw`(?!-)(?:[\w.-]+|\[?[0-9A-Fa-f:.]+\]?(?:%\w+)?|unix:)`
const quoted: { readonly [escapes in Escapes]: string } = {
  backslash: String.raw`[^"\\\n]*(?:\\[^\n][^"\\\n]*)*`,
  double: String.raw`[^"\n]*(?:""[^"\n]*)*`,
  percent: String.raw`[^"\n]*`,
  plus: String.raw`[^"\n]*`,
}

/** Compiles a format. Throws a UsageError that names the part that cannot be read. */
export function compilePattern(format: string, escapes: Escapes = 'backslash'): LineParser {
  const parts = partsOf(format, escapes)
  const captured = parts.filter(({ spec }) => spec !== '_')
  const has = (spec: string): boolean => captured.some((part) => part.spec === spec)
  if (!has('x') && !(has('d') && has('t')))
    throw new UsageError('the format has no time: add %d and %t, or %x')
  const line = new RegExp(
    parts.map(({ spec, pattern }) => (spec === '_' ? pattern : `(${pattern})`)).join(''),
    'y',
  )
  const specs = captured.map(({ spec }) => spec)
  // Paths are percent-encoded by clients, and stay as they were sent.
  const isEncoded = escapes === 'percent' || escapes === 'plus'
  const escapesOf = specs.map((spec) => (isEncoded && !'uR'.includes(spec) ? null : escapes))
  const groupOf = (spec: string): number => specs.indexOf(spec) + 1 // 0: the format has none
  const [date, time, zone, whole] = ['d', 't', 'z', 'x'].map(groupOf) as [number, number, number, number]
  const fields = specs.flatMap((spec, at) =>
    'dtzx'.includes(spec) ? [] : [{ group: at + 1, set: setters[spec]!, escapes: escapesOf[at]! }],
  )
  const last = { date: '', time: '', zone: '', ms: Number.NaN } // lines of one second share their time
  return (text, start) => {
    line.lastIndex = start
    const found = line.exec(text)
    if (found === null) return null
    const request = emptyRequest()
    const isPlain = !special.test(found[0])
    for (const { group, set, escapes: of } of fields) {
      const raw = found[group]!
      if (raw === '-' || raw === '') continue
      set(request, isPlain && (of === null || of === 'backslash') ? raw : unescaped(raw, of))
    }
    const [day, clock] = whole > 0 ? ['', found[whole]!] : [found[date]!, found[time]!]
    const offset = zone > 0 ? found[zone]! : ''
    if (clock !== last.time || day !== last.date || offset !== last.zone) {
      last.date = day
      last.time = clock
      last.zone = offset
      last.ms = whole > 0 ? timeMsOf(clock) : dateTimeMs(day, clock, offset)
    }
    request.timeMs = last.ms
    return Number.isNaN(last.ms) ? null : request
  }
}

function partsOf(format: string, escapes: Escapes): Part[] {
  const parts: Part[] = []
  const text = format.replaceAll('\\t', '\t')
  let at = 0
  while (at < text.length) {
    const forwarded = /^~h\{([^}]*)\}/.exec(text.slice(at))
    if (forwarded !== null) {
      const extra = forwarded[1]!.replace(/[\\\]^-]/g, '\\$&').replace('"', '')
      parts.push({ spec: 'F', pattern: `-|[0-9A-Za-z:.${extra}]*` })
      at += forwarded[0].length
    } else if (text[at] === '%') {
      const spec = text[at + 1] ?? ''
      parts.push(partOf(spec, text[at - 1] ?? '', text[at + 2] ?? '', escapes, parts))
      at += 2
    } else parts.push({ spec: '_', pattern: RegExp.escape(text[at++]!) })
  }
  return parts
}

/** One specifier between two characters of the format. */
function partOf(spec: string, before: string, next: string, escapes: Escapes, parts: Part[]): Part {
  if (spec === '%') return { spec: '_', pattern: '%' }
  if (spec === '~') return { spec: '_', pattern: '[ \\t]*' }
  if (spec === 'd') return { spec, pattern: datePattern }
  if (spec === 't') return { spec, pattern: timePattern }
  const isSkipped = spec === '^' || ignored.includes(spec)
  if (spec === '' || !(isSkipped || spec === 'x' || Object.hasOwn(setters, spec)) || spec === 'F')
    throw new UsageError(`%${spec} is not a field of a log format`, 'sightglass help import access')
  if (spec === '^' && before === ' ' && parts.at(-2)?.spec === 't')
    return { spec: 'z', pattern: `[+-]\\d\\d:?\\d\\d|${until(next)}*` }
  const name = isSkipped ? '_' : spec
  if (before === '"' && next === '"') return { spec: name, pattern: quoted[escapes] }
  // A client chooses the user name of a common log, which may contain the next delimiter: try every one of them.
  if (spec === '^' && next === '[') return { spec: name, pattern: '[^\\n]{0,300}?' }
  if (spec === 'h') return { spec: name, pattern: addressPattern }
  if (next === '') return { spec: name, pattern: 'uRr'.includes(spec) ? '[^\\r\\n]*' : '[^\\s]*' }
  return { spec: name, pattern: `${until(next, words.includes(spec) ? ' ' : '')}*` }
}

/** Any characters of a line but the next delimiter. */
function until(delimiter: string, more = ''): string {
  return `[^\\r\\n${delimiter.replace(/[\\\]^-]/, '\\$&')}${more}]`
}

const special = /[\\\u0080-\u00ff]/
const control: { readonly [letter: string]: string } = {
  n: '\n',
  t: '\t',
  r: '\r',
  b: '\b',
  f: '\f',
  v: '\v',
}

/** Undoes the server's escapes and decodes UTF-8; invalid bytes become U+FFFD. */
function unescaped(raw: string, escapes: Escapes | null): string {
  if (escapes === null) return decoded(raw)
  if (escapes === 'double') return decoded(raw.includes('""') ? raw.replaceAll('""', '"') : raw)
  if (escapes === 'plus') return decoded(percentDecoded(raw.replaceAll('+', ' ')))
  // CloudFront encodes twice: a space is %2520.
  if (escapes === 'percent') return decoded(percentDecoded(percentDecoded(raw)))
  if (!special.test(raw)) return raw
  if (!raw.includes('\\')) return decoded(raw)
  return decoded(
    raw.replace(
      /\\(?:x([0-9A-Fa-f]{2})|([^x]))/g,
      (whole, hex: string | undefined, other: string | undefined) => {
        if (hex !== undefined) return String.fromCharCode(Number.parseInt(hex, 16))
        return other === undefined ? whole : (control[other] ?? other)
      },
    ),
  )
}

function percentDecoded(raw: string): string {
  if (!raw.includes('%')) return raw
  return raw.replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
}

function decoded(bytes: string): string {
  return special.test(bytes) ? Buffer.from(bytes, 'latin1').toString() : bytes
}
