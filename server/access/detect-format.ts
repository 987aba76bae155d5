/** Recognizes the format of a log by its first lines. */
import { readAddress } from '../../sdk/judge/address.ts'
import { byteOrderMark, formatNamed, logFormats, type LogFormat } from './formats.ts'
import type { LogRequest } from './log-request.ts'

const detectionLinesMax = 100
const samplesMax = 3
/** A format that fits fewer lines is not the format of the file. */
const shareMin = 0.5

const shareTolerance = 0.1

export interface Guess {
  format: LogFormat
  lines: number // examined, without comments
  fits: number
  userAgents: number // of those that fit, how many have one
  fields: number // read from each line that fits
  forwarded: number // of those that fit, how many have X-Forwarded-For
  forwardedLists: number // and how many of these are addresses
  strangeHosts: number // of those that fit, how many have something else in the place of the host
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
  const share = ({ fits, lines: lineCount }: Guess): number => fits / lineCount
  const good = guesses.filter(
    (guess) => share(guess) >= shareMin && hasTrueForwarded(guess) && hasTrueHost(guess),
  )
  // A format with user agents wins over one that fits more lines, because only it can show agents.
  const agentGuesses = good.filter(({ userAgents }) => userAgents > 0)
  const candidates = agentGuesses.length > 0 ? agentGuesses : good
  // What a few clients sent does not decide: among formats that fit nearly alike, the one that reads more is right.
  const minShare = Math.max(0, ...candidates.map(share)) - shareTolerance
  const best = candidates
    .filter((guess) => share(guess) >= minShare)
    .reduce<Guess | null>(
      (current, guess) => (current === null || guess.fields > current.fields ? guess : current),
      null,
    )
  if (best !== null) return { guess: best }
  const binary = binaryKind(head)
  if (binary !== null) return { seen: binary }
  if (lines.every((line) => line.startsWith('#'))) return { seen: 'it has only comments' }
  const maxFits = Math.max(0, ...guesses.map(({ fits }) => fits))
  const first = lines.find((line) => !line.startsWith('#')) ?? ''
  const shown = Buffer.from(first.slice(0, 80), 'latin1').toString()
  const count = maxFits === 0 ? 'no known format fits' : `no known format fits more than ${maxFits} of`
  const isOne = lines.length === 1
  const linesText = isOne ? 'its only line' : `its first ${lines.length} lines`
  if (!quotes) return { seen: `${count} ${linesText}` }
  return { seen: `${count} ${linesText}, which ${isOne ? 'begins' : 'begin'} with ${JSON.stringify(shown)}` }
}

/** Rejects a format whose X-Forwarded-For is another value in quotes, such as the Host header, in most lines. */
function hasTrueForwarded({ format, forwarded, forwardedLists }: Guess): boolean {
  return !format.hasUnnamedForwarded || forwardedLists * 2 >= forwarded
}

/** Rejects a format with the host first where a runtime wrote the time or the name of a container first. */
function hasTrueHost({ fits, strangeHosts }: Guess): boolean {
  return strangeHosts * 2 < fits
}

const notHost = /^(?:\d{4}-\d\d-\d\dT\d\d(?::\d\d:\d\d\.\d{1,9}(?:Z|[+-]\d\d:\d\d))?|\[pod\/[\w./-]+\])$/

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

function fitOf(format: LogFormat, lines: string[]): Guess {
  const parse = format.open()
  const guess: Guess = {
    format,
    lines: 0,
    fits: 0,
    userAgents: 0,
    fields: 0,
    forwarded: 0,
    forwardedLists: 0,
    strangeHosts: 0,
    samples: [],
  }
  for (const line of lines) {
    const parsed = parse(line, 0, line.length)
    if (parsed === 'note') continue
    guess.lines++
    if (parsed === null) continue
    guess.fits++
    if (parsed.userAgent !== null) guess.userAgents++
    if (parsed.forwarded !== null) {
      guess.forwarded++
      if (isAddressList(parsed.forwarded)) guess.forwardedLists++
    }
    if (format.isCommonLog && parsed.host !== null && notHost.test(parsed.host)) guess.strangeHosts++
    guess.fields += Object.values(parsed).filter((value) => value !== null).length
    if (guess.samples.length < samplesMax) guess.samples.push(parsed)
  }
  return guess
}

function isAddressList(text: string): boolean {
  return readAddress(text.slice(text.lastIndexOf(',') + 1).trim()) !== null
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
  const signature = signatures.find(([start]) => head.startsWith(start))
  if (signature !== undefined) return signature[1]
  const sample = head.slice(0, 65_536)
  const controls = sample.match(/[\u0000-\u0008\u000e-\u001a\u001c-\u001f]/g)?.length ?? 0
  return controls > sample.length * controlShareMax ? 'it is binary data' : null
}

/** Why `--trusted-proxy` changes nothing for a file; null when it may. */
export function withoutForwarded(guess: Guess): string | null {
  const { format, forwarded } = guess
  if (format.hasForwarded ?? forwarded > 0) return null
  return `--trusted-proxy has no effect: ${format.name} has no X-Forwarded-For`
}

/** Few requests without a user agent may be an accident, unless the format has none. */
const fewRequests = 20

export function hasUserAgent({
  format,
  fits,
  userAgents,
}: Pick<Guess, 'format' | 'fits' | 'userAgents'>): boolean {
  return userAgents > 0 || (format.hasUserAgent && fits < fewRequests)
}

export function withoutUserAgent({ format }: Pick<Guess, 'format'>): string {
  return `has the format ${format.name}, which has no user agents, so agents cannot be recognized`
}

export interface StreamFormat {
  /** Null until lines were recognized. */
  name(): string | null
  /** Why no agent can be recognized; null when agents can be. */
  problem(): string | null
  /** The format of these lines, or what they look like instead. */
  read(head: string): { name: string } | { seen: string }
  /** Lines by their format, each checked. Lines that have none are with the others. */
  divide(lines: readonly string[]): Map<string, string[]>
}

/**
 * The format of lines that arrive in bodies or datagrams: the one that most of the first hundred lines have. A client
 * can send a few lines that look different, also the first ones; they do not change how the others are read.
 */
export function createStreamFormat(): StreamFormat {
  const votes = new Map<string, { fits: number; userAgents: number }>()
  let name: string | null = null
  let lines = 0

  function vote(head: string): void {
    const detection = detectFormat(head)
    if (!('guess' in detection)) return
    const { guess } = detection
    const previousVote = votes.get(guess.format.name) ?? { fits: 0, userAgents: 0 }
    const fits = previousVote.fits + guess.fits
    votes.set(guess.format.name, { fits, userAgents: previousVote.userAgents + guess.userAgents })
    lines += guess.lines
    if (fits > (votes.get(name ?? '')?.fits ?? 0)) name = guess.format.name
  }

  function read(head: string): { name: string } | { seen: string } {
    if (lines < detectionLinesMax) vote(head)
    return formatOf(head)
  }

  function formatOf(head: string): { name: string } | { seen: string } {
    if (name !== null && checkFormat(head, name) !== null) return { name }
    const detection = detectFormat(head)
    if ('seen' in detection) return name === null ? detection : { name }
    const lineFormat = detection.guess.format
    return { name: name === null || isOfOtherServer(lineFormat, name) ? lineFormat.name : name }
  }

  return {
    name: () => name,
    problem() {
      if (name === null) return null
      const format = formatNamed(name)
      return hasUserAgent({ format, ...votes.get(name)! }) ? null : withoutUserAgent({ format })
    },
    read,
    divide(allLines) {
      const main = read(allLines.slice(0, detectionLinesMax).join('\n'))
      const mainName = 'name' in main ? main.name : formatUnknown
      const parse = formatNamed(mainName).open()
      const byFormat = new Map<string, string[]>()
      let attempts = 0
      for (const line of allLines) {
        const fits = parse.plain?.read(line, 0, line.length) === true || parse(line, 0, line.length) !== null
        // What anybody may send costs no more than some lines.
        const format = fits || ++attempts > detectionLinesMax ? main : formatOf(line)
        const formatName = 'name' in format ? format.name : mainName
        const formatLines = byFormat.get(formatName)
        if (formatLines === undefined) byFormat.set(formatName, [line])
        else formatLines.push(line)
      }
      return byFormat
    },
  }
}

/** What lines are stored as, all of them bad, before a format is recognized. */
const formatUnknown = 'combined'

/**
 * Several servers may send to one site. But a line of a common log that does not fit its format may be a forged one,
 * made to fit another format of that kind.
 */
function isOfOtherServer(format: LogFormat, name: string): boolean {
  return !(format.isCommonLog && formatNamed(name).isCommonLog)
}
