/** One step of following a log: reads one of its files from the stored position to its end. */
import { cutChars } from '../text/text.ts'
import { checkFormat, detectFormat, hasUserAgent, withoutUserAgent, type Guess } from './detect-format.ts'
import {
  checkTail,
  identityOf,
  lineBlocks,
  type LineBlock,
  type LogMember,
  type OpenMember,
} from './log-files.ts'
import { pieceHeading } from './wrapped-line.ts'
import type { LineSums, LogPosition, LogStatus, Sink } from './sink.ts'

/** A file that cannot be followed. The message continues its name. */
export class FileError extends Error {}

export interface Known extends LogPosition {
  source: string
}

/** What following remembers. Nothing of it is needed after a restart. */
export interface Reader {
  format: string // `auto`, a name or a format string
  sink: Sink
  signal: AbortSignal
  now(): number
  known: Map<string, Known> // position by source
  older: Set<string> // identities of files from before the log was followed
  formats: Map<string, FileFormat> // by identity
  lastFormat: string | null
  behindBytes: number
  problems: Map<string, string> // by what has them
  /** Tells the appliance now and then that the reader lives. */
  keepAlive(): Promise<void>
  understood(path: string, guess: Guess): void
  stored(sums: LineSums, bytes: number): void
}

interface FileFormat {
  name: string
  heading: string
}

interface Reading {
  member: LogMember
  file: OpenMember
  head: string
  log: Known
  format: FileFormat
  isWhole: boolean
}

/** A rotated file that did not change for so long is whole: its last line needs no line feed. */
export const settledMs = 60_000

/** Returns whether the file must be read again at once, because it is another one by now. */
export async function readFile(reader: Reader, member: LogMember, file: OpenMember): Promise<boolean> {
  const head = await file.head()
  const identity = identityOf(head)
  if (identity === null || (!member.isCurrent && reader.older.has(identity))) return false
  const log = await locate(reader, member, file, identity)
  if (log === null) return false
  const format = formatOf(reader, member.path, identity, head)
  const isSettled = reader.now() - member.mtimeMs > settledMs
  const isWhole = !member.isCurrent && (file.isCompressed || isSettled)
  const reading = { member, file, head, log, format, isWhole }
  await warm(reader, reading)
  return readOn(reader, reading)
}

/** More files than this with the same first line are no logs. */
const sameStartMax = 100

/**
 * The stored position of a file. Files may share their first line, so the line that ends at the position must be the
 * one that was read. Null for a rotated file that is shorter: it is being copied or compressed.
 */
async function locate(
  reader: Reader,
  { path, isCurrent }: LogMember,
  file: OpenMember,
  identity: string,
): Promise<Known | null> {
  let isShort = false
  for (let count = 1; count <= sameStartMax; count++) {
    const knownPosition = await positionOf(reader, count === 1 ? identity : `${identity}:${count}`, path)
    if (knownPosition.position === 0) return isShort && !isCurrent ? null : knownPosition
    const tailState = await checkTail(file, knownPosition.position, knownPosition.tail)
    if (tailState === 'same') return knownPosition
    if (tailState === 'short') isShort = true
  }
  throw new FileError(`has the first line of ${sameStartMax} others`)
}

const problemCharsMax = 500

/** What the appliance shows of the reader. */
export function statusOf({ behindBytes, problems }: Reader): Pick<LogStatus, 'behindBytes' | 'problem'> {
  const [first = null] = problems.values()
  return { behindBytes, problem: first === null ? null : cutChars(first, problemCharsMax) }
}

export async function positionOf(reader: Reader, source: string, path: string): Promise<Known> {
  const cachedPosition = reader.known.get(source)
  if (cachedPosition !== undefined) return cachedPosition
  const position = { source, ...(await reader.sink.position({ ...statusOf(reader), path, source })) }
  reader.known.set(source, position)
  return position
}

/** Of the file before when it fits; a new log begins with few lines. */
function formatOf(reader: Reader, path: string, identity: string, head: string): FileFormat {
  const cachedFormat = reader.formats.get(identity)
  if (cachedFormat !== undefined) return cachedFormat
  const lines = head.slice(0, head.lastIndexOf('\n') + 1)
  const isGiven = reader.format !== 'auto'
  const expectedFormat = isGiven ? reader.format : reader.lastFormat
  let guess = expectedFormat === null ? null : checkFormat(lines, expectedFormat)
  if (guess === null) {
    if (isGiven) throw new FileError(`does not have the format ${reader.format}`)
    // The message is shown to viewers, and the file may be none that they may read.
    const detection = detectFormat(lines, { quotes: false })
    if ('seen' in detection) throw new FileError(`is not an access log: ${detection.seen}`)
    guess = detection.guess
  }
  if (!hasUserAgent(guess)) throw new FileError(withoutUserAgent(guess))
  const format = { name: isGiven ? reader.format : guess.format.name, heading: '' }
  reader.formats.set(identity, format)
  reader.lastFormat = format.name
  reader.understood(path, guess)
  return format
}

/** The last `#Fields` line of a text that ends with a line feed. */
function headingIn(text: string): string | null {
  const headingStart = text.startsWith(fieldsMark) ? 0 : text.lastIndexOf(`\n${fieldsMark}`) + 1
  const last = Math.max(headingStart, text.lastIndexOf(`\n${fieldsMark}`) + 1)
  if (!text.startsWith(fieldsMark, last)) return null
  return text.slice(last, text.indexOf('\n', last)).slice(0, headingCharsMax).trimEnd()
}

/** What the lines after this text must know: the fields of a W3C log, or that the last line was cut. */
function headingAfter(text: string, heading: string): string {
  const piece = pieceHeading(text)
  if (piece !== null) return piece
  return headingIn(text) ?? (heading.startsWith(fieldsMark) ? heading : '')
}

const fieldsMark = '#Fields:'
const headingCharsMax = 2_000

const warmBytes = 64 * 1024 * 1024
const sessionMs = 30 * 60_000

/** Sessions are in the memory of the appliance. After its restart they go on when it reads the newest lines again. */
async function warm(reader: Reader, { member, file, log, format, head }: Reading): Promise<void> {
  format.heading = headingIn(head.slice(0, log.position)) ?? format.heading
  const isQuiet = reader.now() - member.mtimeMs > sessionMs
  if (log.isWarm || log.position === 0 || isQuiet || file.isCompressed) return
  const from = Math.max(0, log.position - warmBytes)
  const blocks = lineBlocks(ending(file.chunks(from), log.position - from), from)
  let isFirst = from > 0 // it begins inside of a line
  for await (const block of blocks) {
    if (reader.signal.aborted) return
    format.heading = headingAfter(block.text, format.heading)
    if (!isFirst && block.cutTail === null)
      await reader.sink.warm({ ...describeLog(log, member, format), ...block })
    isFirst = false
  }
  log.isWarm = true
}

async function* ending(chunks: AsyncGenerator<Uint8Array>, bytes: number): AsyncGenerator<Uint8Array> {
  let remainingBytes = bytes
  for await (const chunk of chunks) {
    yield chunk.subarray(0, remainingBytes)
    remainingBytes -= chunk.length
    if (remainingBytes <= 0) return
  }
}

function describeLog({ source, epoch }: Known, { path }: LogMember, { name, heading }: FileFormat) {
  return { source, epoch, path, format: name, heading }
}

/** Hands over block by block, each when the one before is stored: the appliance sets the pace. */
async function readOn(reader: Reader, reading: Reading): Promise<boolean> {
  const { file, log, format, member, isWhole } = reading
  const blocks = lineBlocks(file.chunks(log.position), log.position)
  try {
    for (;;) {
      const { value: block, done } = await blocks.next()
      if (reader.signal.aborted) return false
      if (done === true) {
        reader.behindBytes = member.isCurrent ? block.to - block.from : 0
        if (block.to === block.from || !isWhole) return false
      }
      if (!file.isCompressed && !(await isUnchanged(reading, block.to))) return true
      if (!(await storeBlock(reader, reading, block))) return true
      format.heading = headingAfter(block.text, format.heading)
      if (done === true) return false
    }
  } finally {
    await blocks.return(undefined as never)
  }
}

const startBytes = 1024

/** Checked after each read: a log may be truncated at any moment, and grow again beyond the position. */
async function isUnchanged({ file, head }: Reading, end: number): Promise<boolean> {
  const start = await file.head(startBytes)
  const { bytes } = await file.facts()
  return bytes >= end && start.startsWith(head.slice(0, startBytes))
}

/** False when the appliance has another position: somebody else read this file too, or a backup was restored. */
async function storeBlock(
  reader: Reader,
  { log, member, file, format }: Reading,
  block: LineBlock,
): Promise<boolean> {
  const answer = await reader.sink.store({ ...describeLog(log, member, format), ...block })
  log.position = answer.position
  log.tail = answer.tail
  if (answer.state === 'behind') return false
  if (!file.isCompressed) reader.behindBytes = Math.max(0, member.bytes - block.to)
  reader.stored(answer.sums, block.to - block.from)
  await reader.keepAlive()
  return answer.position === block.to
}
