/**
 * Finds the line of a web server inside of what a container runtime or journald stores: behind a prefix, or in a JSON
 * object.
 *
 * Runtimes cut a long line into pieces. A client can choose where the cut is, so that the second piece begins like a
 * line of its own with another address. No piece is therefore read: its line is bad, and counted.
 */
import { prefixEnd } from './line-prefix.ts'
import { hasOpenQuote } from './line-scanner.ts'

/** The line, each character a byte, and how it was cut. */
export interface WrappedLine {
  text: string
  start: number
  end: number
  /** Which of the lines that are mixed in one log this one belongs to; null where lines are never cut. */
  stream: string | null
  isPiece: boolean // marked as a piece, also the last one
  isLast: boolean // nothing of this line follows
}

/** The line inside of `text`; null when nothing known is around it. */
export function unwrapLine(text: string, start: number, end: number): WrappedLine | null {
  if (text[start] === '{') return lineInJson(text.slice(start, end))
  const inner = prefixEnd(text, start, end)
  if (inner === start) return null
  // A line between quotes ends with one that is not its own.
  if (text[start] === '"' && text[end - 1] === '"' && hasOpenQuote(text, inner, end)) end--
  const [, stream = null, mark = 'F'] = criMark.exec(text.slice(start, inner)) ?? []
  const isLast = mark === 'F'
  return { text, start: inner, end, stream, isPiece: !isLast, isLast }
}

const criMark = / (stdout|stderr) ([FP])(?::[\w:]*)? $/

interface Wrapper {
  [name: string]: unknown
}

function lineInJson(json: string): WrappedLine | null {
  if (!names.test(json)) return null
  let wrapper: unknown
  try {
    wrapper = JSON.parse(Buffer.from(json, 'latin1').toString())
  } catch {
    return null
  }
  if (wrapper === null || typeof wrapper !== 'object' || Array.isArray(wrapper)) return null
  return dockerLine(wrapper as Wrapper) ?? journalLine(wrapper as Wrapper) ?? shippedLine(wrapper as Wrapper)
}

const names = /"(?:log|MESSAGE|message)":/

/** Docker's driver json-file. What it stores of a long line has no line feed at its end. */
function dockerLine({ log, stream }: Wrapper): WrappedLine | null {
  if (typeof log !== 'string' || (stream !== 'stdout' && stream !== 'stderr')) return null
  const isLast = log.endsWith('\n')
  return lineOf(log, { stream, isPiece: !isLast, isLast })
}

/** `journalctl -o json`, also of Docker's driver journald. Text that is not printable is an array of bytes. */
function journalLine(entry: Wrapper): WrappedLine | null {
  const { MESSAGE: message, __REALTIME_TIMESTAMP: time } = entry
  if (time === undefined) return null
  const text = Array.isArray(message) ? Buffer.from(message as number[]).toString() : message
  if (typeof text !== 'string') return null
  const isDockerPiece = entry['CONTAINER_PARTIAL_MESSAGE'] === 'true'
  const isCut = entry['_LINE_BREAK'] === 'line-max' || isDockerPiece
  const stream = String(entry['CONTAINER_ID'] ?? entry['_STREAM_ID'] ?? entry['_PID'] ?? '')
  const isLast = !isCut || entry['CONTAINER_PARTIAL_LAST'] === 'true'
  return lineOf(text, { stream, isPiece: isCut, isLast })
}

/** Filebeat, Vector and Fluent Bit, where they send nothing of the request but its line. */
function shippedLine(record: Wrapper): WrappedLine | null {
  const line = record['message'] ?? record['log']
  const hasTime = ['@timestamp', 'timestamp', 'date', 'time'].some((name) => record[name] !== undefined)
  if (typeof line !== 'string' || !hasTime) return null
  return lineOf(line, { stream: null, isPiece: false, isLast: true })
}

function lineOf(line: string, cut: Pick<WrappedLine, 'stream' | 'isPiece' | 'isLast'>): WrappedLine {
  // A line feed inside would make a second line, which a client could then forge.
  const text = Buffer.from(line.replaceAll(/[\r\n]/g, ' ').trimEnd()).toString('latin1')
  return { text, start: 0, end: text.length, ...cut }
}

/**
 * A line that stands for the last one of a text, when that is a piece of which more follows: whoever reads on must know
 * of it. Null otherwise.
 */
export function pieceHeading(text: string): string | null {
  const end = text.endsWith('\n') ? text.length - 1 : text.length
  const start = text.lastIndexOf('\n', end - 1) + 1
  const line = start < end ? unwrapLine(text, start, end) : null
  if (line === null || line.isLast || line.stream === null) return null
  if (text[start] !== '{') return text.slice(start, line.start)
  const { stream } = line
  if (stream === 'stdout' || stream === 'stderr') return JSON.stringify({ log: '', stream })
  const cut = { CONTAINER_PARTIAL_MESSAGE: 'true', CONTAINER_ID: stream }
  return JSON.stringify({ MESSAGE: '', __REALTIME_TIMESTAMP: '0', ...cut })
}

/** Says of each line of a log whether it is whole. */
export function pieceTracker(): (line: WrappedLine) => boolean {
  const cut = new Set<string>() // streams whose last line is not at its end
  return ({ stream, isPiece, isLast }) => {
    if (stream === null) return true
    const continues = cut.has(stream)
    if (isLast) cut.delete(stream)
    else if (cut.size < streamsMax) cut.add(stream)
    return !continues && !isPiece
  }
}

const streamsMax = 10_000
