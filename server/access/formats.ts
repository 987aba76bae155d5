/** The table of access-log formats, the parser of a file in one of them, and the recognition of a file's format. */
import { UsageError } from '../errors.ts'
import { nearest } from '../text/text.ts'
import { compileJson, jsonSets, readJsonFormat, type JsonFields } from './json-line.ts'
import type { LogRequest } from './log-request.ts'
import { compilePattern, type Escapes, type LineParser } from './pattern.ts'
import { plainReader, type PlainReader } from './plain-line.ts'

export interface LogFormat {
  name: string
  hasUserAgent: boolean
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

/** Names are those of GoAccess in lower case. Of two that read the same, the first one is right. */
const patterns: [name: string, pattern: string, escapes?: Escapes][] = [
  ['traefikclf', `%h ${ncsa} "%R" "%u" %^ "%^" "%^" %Lms`],
  ['vcombined', `%v:%^ %h ${ncsa} "%R" "%u"`],
  ['combined-forwarded', `%h ${ncsa} "%R" "%u" "~h{, }"`],
  ['combined', `%h ${ncsa} "%R" "%u"`],
  ['awsalb', '%^ %x %^ %h:%^ %^ %^ %T %^ %s %^ %^ %b "%r" "%u" %k %K %^ "%^" "%v"'],
  ['awselb', '%x %^ %h:%^ %^ %^ %T %^ %s %^ %^ %b "%r" "%u" %k %K'],
  ['awss3', '%^ %v [%d:%t %^] %h %^ %^ %^ %^ "%r" %s %^ %b %^ %L %^ "%R" "%u"'],
  ['cloudstorage', '"%x","%h","%^","%^","%m","%U","%s","%^","%b","%D","%v","%R","%u"', 'double'],
  ['vcommon', `%v:%^ %h ${ncsa}`],
  ['common', `%h ${ncsa}`],
  ['squid', '%x %~%L %h %^/%s %b %m %U'],
  ['squid-syslog', '%^ %^ %^ %v %^: %x %~%L %h %^/%s %b %m %U'],
]

/** Fields of the W3C extended format, IIS and CloudFront among them. Others are skipped. */
const w3cFields: { readonly [name: string]: string } = {
  ...{ date: '%d', time: '%t', 'c-ip': '%h', 'cs-method': '%m', 'cs-uri-stem': '%U', 'cs-uri-query': '%q' },
  ...{ 'sc-status': '%s', 'sc-bytes': '%b', 'cs(user-agent)': '%u', 'cs(referer)': '%R', 'cs-version': '%H' },
  ...{ 'x-host-header': '%v', 'cs-host': '%v', 'cs(host)': '%v', 'cs-protocol-version': '%H' },
  'x-forwarded-for': '~h{,% }',
}

/** What GoAccess expects of a file without a `#Fields` line. */
const iisFields =
  'date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent) cs(Referer) sc-status ' +
  'sc-substatus sc-win32-status time-taken'
const cloudFrontFields =
  'date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) cs(User-Agent) ' +
  'cs-uri-query cs(Cookie) x-edge-result-type x-edge-request-id x-host-header cs-protocol cs-bytes time-taken ' +
  'x-forwarded-for ssl-protocol ssl-cipher x-edge-response-result-type cs-protocol-version'

/** The parser of W3C lines with these fields. IIS counts milliseconds, CloudFront (tabs) seconds. */
function w3cParser(fields: string, isCloudFront: boolean): LineParser {
  const names = fields.trim().toLowerCase().split(/\s+/)
  const specs = names.map((name, at) => {
    if (name === 'time-taken') return isCloudFront ? '%T' : '%L'
    // CloudFront has the name of its own host before that of the site.
    if (name === 'cs(host)' && names.indexOf('x-host-header', at) > at) return '%^'
    const spec = w3cFields[name] ?? '%^'
    return spec.startsWith('~') && !isCloudFront ? '%^' : spec
  })
  const parse = compilePattern(specs.join(isCloudFront ? '\t' : ' '), isCloudFront ? 'percent' : 'plus')
  return (text, start, end) => {
    const request = parse(text, start, end)
    if (request?.path?.endsWith('?-')) request.path = request.path.slice(0, -2)
    return request
  }
}

function w3cFormat(name: string, isCloudFront: boolean): LogFormat {
  return {
    name,
    hasUserAgent: true,
    open() {
      let parse = w3cParser(isCloudFront ? cloudFrontFields : iisFields, isCloudFront)
      return (text, start, end) => {
        if (text[start] !== '#') return parse(text, start, end)
        if (!text.startsWith('#Fields:', start)) return 'note'
        try {
          parse = w3cParser(text.slice(start + '#Fields:'.length, end), isCloudFront)
        } catch {
          return null // fields without a time
        }
        return 'note'
      }
    },
  }
}

/** A format without state. Lines that begin with `#` are comments, and Cloud Storage has a heading. */
function plainFormat(
  name: string,
  compile: () => LineParser,
  hasUserAgent: boolean,
  pattern = '',
): LogFormat {
  let compiled: LineParser | null = null
  return {
    name,
    hasUserAgent,
    open() {
      const parse = (compiled ??= compile())
      const read: FileParser = (text, start, end) => {
        const isNote = text[start] === '#' || text.startsWith('"time_micros"', start)
        return isNote ? 'note' : parse(text, start, end)
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
  ...patterns.map(([name, pattern, escapes]) =>
    plainFormat(name, () => compilePattern(pattern, escapes), pattern.includes('%u'), pattern),
  ),
  w3cFormat('cloudfront', true),
  w3cFormat('w3c', false),
  ...Object.entries(jsonSets).map(([name, fields]) => plainFormat(name, () => compileJson(fields), true)),
]

/** Throws a UsageError. */
function patternFormat(pattern: string): LogFormat {
  const parse = compilePattern(pattern)
  return plainFormat('the given format', () => parse, pattern.includes('%u'), pattern)
}

/** Throws a UsageError. */
function jsonFormat(fields: JsonFields): LogFormat {
  const parse = compileJson(fields)
  return plainFormat('the given JSON format', () => parse, fields.userAgent !== undefined)
}

const goAccessNames: { readonly [name: string]: string } = { caddyjson: 'caddy', 'nginx-json': 'json' }

/** A format by name in any letter case, or from a format string. Throws a UsageError. */
export function formatNamed(text: string): LogFormat {
  const name = text.toLowerCase()
  const known = logFormats.find((format) => format.name === (goAccessNames[name] ?? name))
  if (known !== undefined) return known
  if (text.startsWith('{') || name.startsWith('json:')) return jsonFormat(readJsonFormat(text))
  if (text.includes('%')) return patternFormat(text)
  const names = logFormats.map((format) => format.name)
  const near = nearest(name, names)
  throw new UsageError(
    `"${text}" is not a log format; formats: auto, ${names.join(', ')}, or a string such as '%h ${ncsa} "%R" "%u"'`,
    near === null ? undefined : `did you mean ${near}?`,
  )
}

const detectionLinesMax = 100
const samplesMax = 3
/** A format that fits fewer lines is not the format of the file. */
const shareMin = 0.5

export interface Guess {
  format: LogFormat
  lines: number // examined, without comments
  fits: number
  userAgents: number // of those that fit, how many have one
  fields: number // read from each line that fits
  samples: LogRequest[] // the first three
}

export type Detection = { guess: Guess } | { seen: string } // what the file looks like instead

/**
 * Detects from the first bytes of a file, each a character, up to and including its last whole line. `quotes`: whether
 * `seen` may contain a part of the file.
 */
export function detectFormat(head: string, { quotes = true } = {}): Detection {
  const lines = firstLines(head)
  if (lines.length === 0) return { seen: 'it has no lines' }
  const guesses = logFormats.map((format) => fitOf(format, lines)).filter(({ fits }) => fits > 0)
  const share = ({ fits, lines: of }: Guess): number => fits / of
  const good = guesses.filter((guess) => share(guess) >= shareMin)
  // A format with user agents wins over one that fits more lines, because only it can show agents.
  const named = good.filter(({ userAgents }) => userAgents > 0)
  const isBetter = (left: Guess, right: Guess): boolean =>
    share(left) > share(right) || (share(left) === share(right) && left.fields > right.fields)
  const best = (named.length > 0 ? named : good).reduce<Guess | null>(
    (found, guess) => (found === null || isBetter(guess, found) ? guess : found),
    null,
  )
  if (best !== null) return { guess: best }
  const binary = binaryKind(head)
  if (binary !== null) return { seen: binary }
  if (lines.every((line) => line.startsWith('#'))) return { seen: 'it has only comments' }
  const most = Math.max(0, ...guesses.map(({ fits }) => fits))
  const first = lines.find((line) => !line.startsWith('#')) ?? ''
  const shown = Buffer.from(first.slice(0, 80), 'latin1').toString()
  const count = most === 0 ? 'no known format fits' : `no known format fits more than ${most} of`
  const isOne = lines.length === 1
  const those = isOne ? 'its only line' : `its first ${lines.length} lines`
  if (!quotes) return { seen: `${count} ${those}` }
  return { seen: `${count} ${those}, which ${isOne ? 'begins' : 'begin'} with ${JSON.stringify(shown)}` }
}

/** How well a format that was given fits; null when no line does. */
export function checkFormat(head: string, text: string): Guess | null {
  const guess = fitOf(formatNamed(text), firstLines(head))
  return guess.fits === 0 ? null : guess
}

function firstLines(head: string): string[] {
  return head
    .slice(head.startsWith(byteOrderMark) ? byteOrderMark.length : 0)
    .split('\n')
    .map((line) => (line.endsWith('\r') ? line.slice(0, -1) : line))
    .filter((line) => line !== '')
    .slice(0, detectionLinesMax)
}

/** Of UTF-8, as bytes. */
export const byteOrderMark = '\u00ef\u00bb\u00bf'

function fitOf(format: LogFormat, lines: string[]): Guess {
  const parse = format.open()
  const guess: Guess = { format, lines: 0, fits: 0, userAgents: 0, fields: 0, samples: [] }
  for (const line of lines) {
    const parsed = parse(line, 0, line.length)
    if (parsed === 'note') continue
    guess.lines++
    if (parsed === null) continue
    guess.fits++
    if (parsed.userAgent !== null) guess.userAgents++
    guess.fields += Object.values(parsed).filter((value) => value !== null).length
    if (guess.samples.length < samplesMax) guess.samples.push(parsed)
  }
  return guess
}

const signatures: [start: string, kind: string][] = [
  ['\u007fELF', 'it is a program'],
  ['\u0089PNG', 'it is an image'],
  ['PK\u0003\u0004', 'it is a zip archive; unpack it first'],
  ['\u00fd7zXZ\u0000', 'it is compressed with xz; use: xzcat FILE | sightglass import access -'],
  ['BZh', 'it is compressed with bzip2: install bzip2 to read it'],
  ['\u00ff\u00fe', 'it is UTF-16; convert it to UTF-8 first'],
  ['\u00fe\u00ff', 'it is UTF-16; convert it to UTF-8 first'],
]

const controlShareMax = 0.1

/** The kind of a binary file, or null. Servers escape control characters, so a file with many of them is not a log. */
function binaryKind(head: string): string | null {
  const known = signatures.find(([start]) => head.startsWith(start))
  if (known !== undefined) return known[1]
  const sample = head.slice(0, 65_536)
  const controls = sample.match(/[\u0000-\u0008\u000e-\u001a\u001c-\u001f]/g)?.length ?? 0
  return controls > sample.length * controlShareMax ? 'it is binary data' : null
}
