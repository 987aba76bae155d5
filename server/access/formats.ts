/** The table of access-log formats, and the parser of a file in one of them. */
import { UsageError } from '../errors.ts'
import { nearest } from '../text/text.ts'
import { compileJson, jsonSets, readJsonFormat, type JsonFields } from './json-line.ts'
import type { LogRequest } from './log-request.ts'
import { compilePattern, type LineParser, type PatternOptions } from './pattern.ts'
import { plainReader, type PlainReader } from './plain-line.ts'
import { pieceTracker, unwrapLine, type WrappedLine } from './wrapped-line.ts'

export interface LogFormat {
  name: string
  hasUserAgent: boolean
  /** Whether it has X-Forwarded-For; null when only the file can tell. */
  hasForwarded: boolean | null
  /** X-Forwarded-For is known by its place alone: other servers may write another value in quotes there. */
  hasUnnamedForwarded: boolean
  /** A kind of common log: its address stands among values that clients choose. */
  isCommonLog: boolean
  /** Starts a parser for one file: W3C logs name their fields in it. */
  open(): FileParser
}

/** `note`: a line that is no request by design, such as a comment. Null: it does not fit. */
export type ParsedLine = LogRequest | 'note' | null
export interface FileParser {
  (text: string, start: number, end: number): ParsedLine
  /** Reads most lines at a lower cost; missing for formats of which it knows nothing. */
  plain?: PlainReader | null
}

/** The time and the request of NCSA logs. */
const ncsa = '%^[%d:%t %^] "%r" %s %b'

const agents = '"%R" "%u"'
const forwarded = '"~h{, }"'

/** lighttpd writes the host that a client asked for in the place of the identity. */
const lighttpd = '%h %v %e [%d:%t %^] "%r" %s %b'

/**
 * Names are those of GoAccess in lower case. Of two that read the same, the first one is right. `host-…` is nginx with
 * `$host` first, or Apache with `%v`.
 */
const patterns: [name: string, pattern: string, options?: PatternOptions][] = [
  // Versions of Traefik write what is missing without quotes (traefik/traefik#2649, #6481).
  ['traefikclf', `%h ${ncsa} ${agents} %^ "%^" "%^" %Lms`, { isWhole: true, hasBareMinus: true }],
  ['vcombined-forwarded', `%v:%^ %h ${ncsa} ${agents} ${forwarded}`],
  ['vcombined', `%v:%^ %h ${ncsa} ${agents}`],
  ['host-combined-forwarded', `%v %h ${ncsa} ${agents} ${forwarded}`],
  ['host-combined', `%v %h ${ncsa} ${agents}`],
  ['combined-forwarded', `%h ${ncsa} ${agents} ${forwarded}`],
  ['combined', `%h ${ncsa} ${agents}`],
  ['lighttpd', `${lighttpd} ${agents}`],
  ['awsalb', '%^ %x %^ %h:%^ %^ %^ %T %^ %s %^ %^ %b "%r" "%u" %k %K %^ "%^" "%v"'],
  ['awselb', '%x %^ %h:%^ %^ %^ %T %^ %s %^ %^ %b "%r" "%u" %k %K'],
  ['awss3', '%^ %v [%d:%t %^] %h %^ %^ %^ %^ "%r" %s %^ %b %^ %L %^ "%R" "%u"'],
  ['cloudstorage', '"%x","%h","%^","%^","%m","%U","%s","%^","%b","%D","%v","%R","%u"', { escapes: 'double' }],
  ['vcommon', `%v:%^ %h ${ncsa}`],
  ['host-common', `%v %h ${ncsa}`],
  ['common', `%h ${ncsa}`],
  [
    'nginx-proxy-manager',
    '[%d:%t %^] %^ %^ %s - %m %^ %v "%U" [Client %h] [Length %b] [Gzip %^] [Sent-to %^] "%u" "%R"',
  ],
  ['nginx-proxy-manager-direct', '[%d:%t %^] %s - %m %^ %v "%U" [Client %h] [Length %b] [Gzip %^] "%u" "%R"'],
  ['squid', '%x %~%L %h %^/%s %b %m %U'],
  ['squid-syslog', '%^ %^ %^ %v %^: %x %~%L %h %^/%s %b %m %U'],
]

/** Fields of the W3C extended format, IIS and CloudFront among them. Others are skipped. */
const w3cFields: { readonly [name: string]: string } = {
  date: '%d',
  time: '%t',
  'c-ip': '%h',
  'cs-method': '%m',
  'cs-uri-stem': '%U',
  'cs-uri-query': '%q',
  'sc-status': '%s',
  'sc-bytes': '%b',
  'cs(user-agent)': '%u',
  'cs(referer)': '%R',
  'cs-version': '%H',
  'x-host-header': '%v',
  'cs-host': '%v',
  'cs(host)': '%v',
  'cs-protocol-version': '%H',
  'x-forwarded-for': '~h{,}',
  'cs(x-forwarded-for)': '~h{,}',
}

/** What GoAccess expects of a file without a `#Fields` line. */
const iisFields =
  'date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent) cs(Referer) sc-status ' +
  'sc-substatus sc-win32-status time-taken'
const cloudFrontFields =
  'date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) cs(User-Agent) ' +
  'cs-uri-query cs(Cookie) x-edge-result-type x-edge-request-id x-host-header cs-protocol cs-bytes time-taken ' +
  'x-forwarded-for ssl-protocol ssl-cipher x-edge-response-result-type cs-protocol-version'

/** More fields than any server has. */
const w3cFieldsMax = 200

/** The parser of W3C lines with these fields. IIS counts milliseconds, CloudFront (tabs) seconds. */
function w3cParser(fields: string, isCloudFront: boolean, isWhole: boolean): LineParser {
  const names = fields
    .trim()
    .toLowerCase()
    .split(/\s+/, w3cFieldsMax + 1)
  if (names.length > w3cFieldsMax) throw new UsageError(`a log has at most ${w3cFieldsMax} fields`)
  const specs = names.map((name, index) => {
    if (name === 'time-taken') return isCloudFront ? '%T' : '%L'
    // CloudFront has the name of its own host before that of the site.
    if (name === 'cs(host)' && names.indexOf('x-host-header', index) > index) return '%^'
    // Without an address, nobody could tell whether a trusted proxy sent the header.
    const spec = w3cFields[name] ?? '%^'
    return spec.startsWith('~') && !names.includes('c-ip') ? '%^' : spec
  })
  const escapes = isCloudFront ? 'percent' : 'plus'
  const parse = compilePattern(specs.join(isCloudFront ? '\t' : ' '), { escapes, isWhole })
  const quotedParsers = new Map<string, LineParser>()
  return (text, start, end) => {
    let request = parse(text, start, end)
    if (request === null && isWhole && !isCloudFront) {
      const format = quotedFormat(text.slice(start, end), names, specs)
      if (format === null) return null
      let quotedParser = quotedParsers.get(format)
      if (quotedParser === undefined) {
        quotedParser = compilePattern(format, { escapes: 'double', isWhole })
        if (quotedParsers.size >= quotedParsersMax) quotedParsers.clear()
        quotedParsers.set(format, quotedParser)
      }
      request = quotedParser(text, start, end)
    }
    if (request?.path?.endsWith('?-')) request.path = request.path.slice(0, -2)
    return request
  }
}

/**
 * The format of a line some of whose headers are between quotes, with their spaces, as Tomcat and others write them;
 * null for a line without any. A quote in another field begins nothing.
 */
function quotedFormat(line: string, names: readonly string[], specs: readonly string[]): string | null {
  let position = 0
  let hasQuoted = false
  const format = names.map((name, index) => {
    const isQuoted = line[position] === '"' && /^[cs]{2}\(/.test(name)
    const close = isQuoted ? closingQuote(line, position + 1) : position
    const blank = line.indexOf(' ', close)
    position = blank < 0 ? line.length : blank + 1
    hasQuoted ||= isQuoted
    return isQuoted ? `"${specs[index]}"` : specs[index]
  })
  return hasQuoted ? format.join(' ') : null
}

/** A quote inside is doubled. */
function closingQuote(line: string, from: number): number {
  let position = line.indexOf('"', from)
  while (position >= 0 && line[position + 1] === '"') position = line.indexOf('"', position + 2)
  return position < 0 ? line.length : position
}

/** One for each set of headers that a line has. */
const quotedParsersMax = 64

const headingsMax = 50

/** Readers of files, and each batch of lines that comes with its heading, share what a heading means. */
function w3cParsers(isCloudFront: boolean): (heading: string) => LineParser | null {
  const parsers = new Map<string, LineParser | null>()
  return (heading) => {
    const cachedParser = parsers.get(heading)
    if (cachedParser !== undefined) return cachedParser
    let parser: LineParser | null = null
    try {
      parser = w3cParser(heading, isCloudFront, true)
    } catch {
      // Fields without a time.
    }
    if (parsers.size >= headingsMax) parsers.clear()
    parsers.set(Buffer.from(heading, 'latin1').toString('latin1'), parser) // a part of a block would hold all of it
    return parser
  }
}

function w3cFormat(name: string, isCloudFront: boolean): LogFormat {
  const parserOf = w3cParsers(isCloudFront)
  let usual: LineParser | null = null
  return {
    name,
    hasUserAgent: true,
    hasForwarded: null,
    hasUnnamedForwarded: false,
    isCommonLog: false,
    open() {
      let parse = (usual ??= w3cParser(isCloudFront ? cloudFrontFields : iisFields, isCloudFront, false))
      return (text, start, end) => {
        if (text[start] !== '#') return parse(text, start, end)
        if (!text.startsWith('#Fields:', start)) return 'note'
        const parser = parserOf(text.slice(start + '#Fields:'.length, end))
        if (parser === null) return null
        parse = parser
        return 'note'
      }
    },
  }
}

/**
 * A format whose lines do not depend on each other. Other lines that begin with `#` are comments, and Cloud Storage has
 * a heading. Syslog and container runtimes wrap lines, and may cut them.
 */
function plainFormat(facts: FormatFacts, compile: () => LineParser, pattern = ''): LogFormat {
  let compiled: LineParser | null = null
  // A client may ask for a host that begins so.
  const hasComments = !pattern.startsWith('%v')
  return {
    ...facts,
    open() {
      const parse = (compiled ??= compile())
      const isWhole = pieceTracker()
      const read: FileParser = (text, start, end) => {
        const request = parse(text, start, end)
        if (request !== null) return request
        if (hasComments && text[start] === '#') return 'note'
        if (text.startsWith('"time_micros"', start)) return 'note'
        let line: WrappedLine | null = { text, start, end, stream: null, isPiece: false, isLast: true }
        for (let depth = 0; depth < wrappersMax; depth++) {
          line = unwrapLine(line.text, line.start, line.end)
          if (line === null || !isWhole(line)) return null
          const inner = parse(line.text, line.start, line.end)
          if (inner !== null) return inner
          if (line.start === line.end || (hasComments && line.text[line.start] === '#')) return 'note'
        }
        return null
      }
      return Object.assign(read, { plain: plainReader(pattern) })
    },
  }
}

/**
 * All formats, in the order in which detection prefers them. Each is compiled for its first file, because every command
 * loads this table.
 */
export const logFormats: readonly LogFormat[] = [
  ...patterns.map(([name, pattern, options]) =>
    plainFormat(factsOf(name, pattern), () => compileWithTimes(pattern, options), pattern),
  ),
  w3cFormat('cloudfront', true),
  w3cFormat('w3c', false),
  ...Object.entries(jsonSets).map(([name, fields]) =>
    plainFormat(factsOfJson(name, fields), () => compileJson(fields)),
  ),
]

/** Compose writes a name before the time that Docker wrote, and syslog may carry the JSON of a runtime. */
const wrappersMax = 3

/** Reads the time of a common log in its usual form, and in any other form that Apache or nginx is set to write. */
function compileWithTimes(pattern: string, options: PatternOptions = {}): LineParser {
  const parse = compilePattern(pattern, options)
  if (!pattern.includes(commonTime)) return parse
  let parseOther: LineParser | null = null
  return (text, start, end) => {
    const request = parse(text, start, end)
    if (request !== null) return request
    if (!otherTime.test(text.slice(start, Math.min(end, start + otherTimeCharsMax)))) return null
    parseOther ??= compilePattern(pattern.replace(commonTime, '[%x]'), options)
    return parseOther(text, start, end)
  }
}

const commonTime = '[%d:%t %^]'
/** `$time_iso8601`, `%{%FT%T%z}t` or `$msec`. */
const otherTime = /\[(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[^\]]{0,20}|\d{10}(?:\.\d{1,9})?)\]/
const otherTimeCharsMax = 1_024

type FormatFacts = Omit<LogFormat, 'open'>

function factsOf(name: string, pattern: string, isGiven = false): FormatFacts {
  const hasForwarded = pattern.includes('~h{')
  return {
    name,
    hasUserAgent: pattern.includes('%u'),
    hasForwarded,
    hasUnnamedForwarded: hasForwarded && !isGiven,
    isCommonLog: pattern.includes(`%h ${ncsa}`) || pattern.startsWith(lighttpd),
  }
}

function factsOfJson(name: string, { userAgent, forwarded: names }: JsonFields): FormatFacts {
  return {
    name,
    hasUserAgent: userAgent !== undefined,
    hasForwarded: names !== undefined,
    hasUnnamedForwarded: false,
    isCommonLog: false,
  }
}

/** Throws a UsageError. */
function patternFormat(pattern: string): LogFormat {
  const parse = compilePattern(pattern)
  return plainFormat(factsOf('the given format', pattern, true), () => parse, pattern)
}

/** Throws a UsageError. */
function jsonFormat(fields: JsonFields): LogFormat {
  const parse = compileJson(fields)
  return plainFormat(factsOfJson('the given JSON format', fields), () => parse)
}

/** Each request names its format again. */
const givenFormats = new Map<string, LogFormat>()
const givenFormatsMax = 100

function givenFormat(text: string): LogFormat {
  const cachedFormat = givenFormats.get(text)
  if (cachedFormat !== undefined) return cachedFormat
  const isJson = text.startsWith('{') || text.toLowerCase().startsWith('json:')
  const format = isJson ? jsonFormat(readJsonFormat(text)) : patternFormat(text)
  if (givenFormats.size >= givenFormatsMax) givenFormats.clear()
  givenFormats.set(text, format)
  return format
}

const goAccessNames: { readonly [name: string]: string } = { caddyjson: 'caddy', 'nginx-json': 'json' }

/** A format by name in any letter case, or from a format string. Throws a UsageError. */
export function formatNamed(text: string): LogFormat {
  const name = text.toLowerCase()
  const knownFormat = logFormats.find((format) => format.name === (goAccessNames[name] ?? name))
  if (knownFormat !== undefined) return knownFormat
  if (text.startsWith('{') || name.startsWith('json:') || text.includes('%')) return givenFormat(text)
  const names = logFormats.map((format) => format.name)
  const near = nearest(name, names)
  throw new UsageError(
    `"${text}" is not a log format; formats: auto, ${names.join(', ')}, or a string such as '%h ${ncsa} "%R" "%u"'`,
    near === null ? undefined : `did you mean ${near}?`,
  )
}

/** The byte order mark of UTF-8, a character per byte. */
export const byteOrderMark = '\u00ef\u00bb\u00bf'
