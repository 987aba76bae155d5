/** Imports access logs: finds them, recognizes their formats, reads them in order of time and hands events over. */
import { AppError } from '../errors.ts'
import { agentEvents, lineReader, sourceId } from './agent-events.ts'
import type { AccessOptions, AgentReader, ReadLine } from './agent-events.ts'
import { checkFormat, detectFormat, hasUserAgent, withoutUserAgent, type Guess } from './detect-format.ts'
import { byteOrderMark, formatNamed } from './formats.ts'
import { blocksOf, findLogs, lineBytesMax, openLog, reasonOf, textBefore } from './input.ts'
import type { Block, FileProblem, LogFile, OpenLog } from './input.ts'
import { lookUpAgents } from './look-up-agents.ts'
import { addBad, badLinesShown, countAgent, newSums, type Sums } from './import-sums.ts'
import type { FoundSource, NamedSource } from './source-names.ts'
import { lineBatch, lineBefore, tailHash } from './line-batch.ts'
import type { BatchedLine, LineBatch, LogIdentity } from './line-batch.ts'
import type { AccessLines, AccessResult, EventRecord } from '../../db/contract/store.ts'

/** A file to import, with its recognized format. */
export interface PlannedLog {
  file: LogFile
  guess: Guess
  source: string // identity of the file
  log: OpenLog
}

export interface Plan {
  logs: PlannedLog[] // in order of time
  skipped: FileProblem[] // found in folders, but no access logs
  problems: FileProblem[]
}

/** Looks at the first lines of every file. Throws when a file that was named is no access log. */
export async function planLogs(paths: string[], format: string): Promise<Plan> {
  if (format !== 'auto') formatNamed(format)
  const { files, problems } = await findLogs(paths)
  const plan: Plan = { logs: [], skipped: [], problems }
  for (const file of files) {
    try {
      const { head, log } = await openLog(file)
      if (head === '') {
        plan.skipped.push({ path: file.path, message: 'is empty' })
        continue
      }
      const detection = format === 'auto' ? detectFormat(head) : checkNamedFormat(head, format)
      const problem = 'seen' in detection ? `is not an access log: ${detection.seen}` : null
      if (problem !== null && !file.isFound) throw refusal(file.path, problem, formatHint)
      if (problem !== null) plan.skipped.push({ path: file.path, message: problem })
      if (!('guess' in detection)) continue
      const { guess } = detection
      if (hasUserAgent(guess)) plan.logs.push({ file, log, guess, source: sourceId(head) })
      else if (file.isFound) plan.skipped.push({ path: file.path, message: withoutUserAgent(guess) })
      else
        throw refusal(
          file.path,
          withoutUserAgent(guess),
          'configure the server to log in the combined format',
        )
    } catch (error) {
      if (error instanceof AppError) throw error
      problems.push({ path: file.path, message: reasonOf(error) })
    }
  }
  const startMs = ({ guess }: PlannedLog): number => guess.samples[0]?.timeMs ?? 0
  plan.logs.sort(
    (left, right) => startMs(left) - startMs(right) || (left.file.path < right.file.path ? -1 : 1),
  )
  return plan
}

function checkNamedFormat(head: string, format: string): { guess: Guess } | { seen: string } {
  const guess = checkFormat(head, format)
  return guess === null ? { seen: `--format ${format} fits none of its first lines` } : { guess }
}

function refusal(path: string, problem: string, hint: string): AppError {
  return new AppError('unsupported_media_type', `${path} ${problem}.`, { hint })
}

const formatHint = `name its format with --format, such as --format combined or --format '%h %^[%d:%t %^] "%r" %s %b "%R" "%u"'`

/** Where lines are stored. */
export interface LogStore {
  /** Of a batch; by default as many as a request may have. */
  eventsMax?: number
  /** How the store names a log, and how far it was read. */
  find(source: string): Promise<FoundSource>
  /** `issues` are the first of the events that were rejected, with their indexes. */
  append(events: EventRecord[], access: AccessLines): Promise<Appended>
}

export interface Appended extends AccessResult {
  issues: { index: number; message: string }[]
}

export interface ImportRun {
  sums: Sums
  /** Imports one file. A file that cannot be read to its end is a problem; its lines until there are imported. */
  read(planned: PlannedLog): Promise<FileProblem | null>
}

/** Reads files one after the other. `store` null is a dry run: agents' requests count as stored. */
export function importRun(options: AccessOptions, store: LogStore | null): ImportRun {
  const sums = newSums()
  const eventsOf = agentEvents(options)
  return {
    sums,
    async read(planned) {
      const { path } = planned.file
      const storedLog =
        store === null ? newLog({ name: planned.source, secret: null }) : await findLog(planned, store)
      const log = { siteId: options.siteId, source: storedLog.name, path, format: planned.guess.format.name }
      const sender = store === null ? null : startSender({ log, from: storedLog.position, sums, store })
      const readBlock = blockReader({ planned, found: storedLog, sums, eventsOf, sender })
      const { hostNames } = options
      const early = planned.guess.format.open()
      let problem: FileProblem | null = null
      const chunks = untilProblem(planned.log.chunks(), (message) => (problem = { path, message }))
      try {
        for await (const block of blocksOf(chunks)) {
          if (store !== null && (await beginsOtherLog(block, storedLog.position, store)))
            throw new JoinedLogs()
          if (hostNames) await lookUpAgents(hostNames, block.text, early, eventsOf.unproved)
          await readBlock(block)
        }
        await sender?.end()
      } catch (error) {
        if (!(error instanceof OtherLog || error instanceof JoinedLogs)) throw error
        problem = { path, message: error.message }
      }
      return problem
    },
  }
}

/** What is known of a log before it is read: lines before `position` are stored. */
interface FoundLog extends NamedSource {
  position: number
  tail: string
}

const newLog = ({ name, secret }: NamedSource): FoundLog => ({ name, secret, position: 0, tail: '' })

const sourcesMax = 20

/** Two logs may have the same first line. The second one has another line where the first was read to. */
async function findLog(planned: PlannedLog, store: LogStore): Promise<FoundLog> {
  for (let number = 1; number <= sourcesMax; number++) {
    const source = number === 1 ? planned.source : `${planned.source}:${number}`
    const { known: storedPosition, ...identity } = await store.find(source)
    if (storedPosition === null) return newLog(identity)
    const storedLog = { ...identity, ...storedPosition }
    // What comes through a pipe is compared while it is read.
    if (planned.file.bytes === null || (await hasLineAt(planned, storedLog))) return storedLog
  }
  throw new AppError('conflict', `${planned.file.path}: ${sourcesMax} other logs begin with the same line.`)
}

/** Whether the log is the known one. One that ends before is an older copy of it. */
async function hasLineAt({ file, log }: PlannedLog, { position, tail }: FoundLog): Promise<boolean> {
  const text = await textBefore(file.path, position, lineBytesMax + 2)
  if (text === '') return true
  if (text !== null) return tailHash(lineBefore(text, text.length)) === tail
  for await (const block of blocksOf(untilProblem(log.chunks(), () => {}))) {
    if (block.offset >= position) return false
    if (block.offset + block.text.length < position) continue
    return tailHash(lineBefore(block.text, position - block.offset)) === tail
  }
  return true
}

class OtherLog extends Error {
  constructor() {
    super('begins like a log that was imported, but differs from it: save it as a file, and import that')
  }
}

/** `cat a b`, where both were imported: the lines of `b` have other offsets here, and would be stored again. */
class JoinedLogs extends Error {
  constructor() {
    super(
      'continues with another log that was imported. Its lines are not stored again: import each log by itself',
    )
  }
}

/** Whether the first line that is not stored is the first one of a log that is. */
async function beginsOtherLog({ text, offset }: Block, position: number, store: LogStore): Promise<boolean> {
  const start = position - offset
  if (position === 0 || start < 0 || start >= text.length) return false
  const isLineStart = start === 0 || text[start - 1] === '\n'
  if (!isLineStart) return false
  const { known: storedPosition } = await store.find(sourceId(text.slice(start)))
  return storedPosition !== null
}

interface SenderOptions {
  log: LogIdentity
  from: number
  sums: Sums
  store: LogStore
}

interface Sender {
  /** Adds a line of a block, from its start to its end in the log. */
  add(line: ReadLine, number: number, block: Block, start: number, end: number): void
  /** Whether the lines must be sent before the next one is added. */
  isFull(): boolean
  flush(): Promise<void>
  /** Adds a line above the limit, whose end is where the next one starts. */
  addCut(start: number): void
  end(): Promise<void>
}

function account(sums: Sums, answer: Appended, lineOf: BatchedLine[], path: string): void {
  sums.stored += answer.stored
  sums.deduped += answer.deduped
  sums.bad += answer.rejected
  for (const { index, message } of answer.issues) {
    const line = lineOf[index]!
    const isRequest = lineOf[index - 1] !== line // and not the start of a session
    if (isRequest && line.kind === 'agent' && sums.badLines.length < badLinesShown)
      sums.badLines.push({ path, line: line.number, message })
  }
}

/** While the disk is waited for, the next batch is under way and another one is being read. */
const sendingMax = 2

/** Sends batches of lines in their order, while the next one is read. */
function startSender({ log, from, sums, store }: SenderOptions): Sender {
  const { eventsMax } = store
  const options = eventsMax === undefined ? {} : { eventsMax }
  let batch = lineBatch(log, from, options)
  let cuts: number[] = [] // ends of lines above the limit, never the last lines of a batch
  const last = { block: { text: '', offset: from, isCut: false } as Block, end: from }
  const sending: Promise<void>[] = []
  let failed: unknown = null

  /** `previousBatches`: the batches before are stored, and counted. */
  async function send(lines: LineBatch, tail: string, previousBatches: Promise<void>): Promise<void> {
    let isRepeated = false
    while (lines.lines > 0) {
      const { events, lineOf, access } = lines.sent(tail)
      const answer = await store.append(events, access)
      await previousBatches
      if (failed !== null) return
      if (answer.state !== 'behind') return account(sums, answer, lineOf, log.path)
      // Another import of this log was first. When the batch before had to be sent again, this one has to be as well.
      const lacksLines: boolean = answer.position < access.from && !isRepeated
      isRepeated = lacksLines
      if (lacksLines) continue
      const droppedKinds = lines.dropBefore(answer.position)
      if (droppedKinds === null)
        throw new AppError('conflict', `${log.path} is being imported in another process. Repeat this.`)
      sums.deduped += droppedKinds.filter((kind) => kind === 'agent').length
    }
  }

  async function flush(): Promise<void> {
    const lines = batch
    const tail = lineBefore(last.block.text, last.end - last.block.offset)
    batch = lineBatch(log, last.end, options)
    await settled(sendingMax - 1)
    const previousBatch = sending.at(-1) ?? Promise.resolve()
    sending.push(send(lines, tail, previousBatch).catch((error: unknown) => void (failed ??= error)))
  }

  /** Waits until at most `left` batches are under way. */
  async function settled(pendingMax: number): Promise<void> {
    while (sending.length > pendingMax) await sending.shift()
    if (failed !== null) throw failed
  }

  function addCuts(start: number): void {
    cuts[cuts.length - 1] = start
    for (const end of cuts) batch.count(end, 'bad', 0, 0)
    cuts = []
  }

  return {
    add({ kind, timeMs, bytes, events }, number, block, start, end) {
      if (cuts.length > 0) addCuts(start)
      if (events.length === 0) batch.count(end, kind, timeMs, bytes)
      else batch.add({ number, end, kind, timeMs, bytes, events })
      last.block = block
      last.end = end
    },
    isFull: () => batch.isFull(),
    flush,
    addCut(start) {
      if (cuts.length > 0) cuts[cuts.length - 1] = start
      cuts.push(start)
    },
    async end() {
      if (batch.lines > 0) await flush()
      await settled(0)
    },
  }
}

interface Reading {
  planned: PlannedLog
  found: FoundLog
  sums: Sums
  eventsOf: AgentReader
  sender: Sender | null
}

/** Reads blocks of lines: counts each line, and passes the new ones on. */
function blockReader({
  planned,
  found: storedLog,
  sums,
  eventsOf,
  sender,
}: Reading): (block: Block) => Promise<void> {
  const { path } = planned.file
  const { format } = planned.guess
  const read = lineReader(format.open(), eventsOf, storedLog)
  let number = 0

  function count({ kind, events }: ReadLine, isNew: boolean): void {
    for (const { type } of events) {
      if (type === 'agent.detected') sums.sessions++
      else if (type === 'agent.referred') sums.referrals++
    }
    if (kind === 'person') sums.people++
    else if (kind !== 'agent') sums.excluded++
    else {
      countAgent(sums, events[0]!)
      if (sender === null) sums.stored++
      else if (!isNew) sums.deduped++
    }
  }

  /** Whether these bytes are stored already. A line that was stored before it was complete is bad. */
  function isKnown(text: string, offset: number, next: number): boolean | 'in part' {
    const stop = storedLog.position - offset // in the text
    if (stop > next) return true
    const start = next - lineBefore(text, next).length
    if (stop <= start) return false
    if (tailHash(text.slice(start, stop)) !== storedLog.tail) throw new OtherLog()
    return /^\r?\n?$/.test(text.slice(stop, next)) ? true : 'in part'
  }

  /** Reads one line, and returns where the next one starts. */
  function readOne(block: Block, start: number): number {
    const { text, offset, isCut } = block
    const feed = text.indexOf('\n', start)
    const next = feed < 0 ? text.length : feed + 1
    const stop = feed < 0 ? text.length : feed
    const end = stop > start && text.charCodeAt(stop - 1) === carriageReturn ? stop - 1 : stop
    sums.lines++
    number++
    const knownState = storedLog.position > offset + start && isKnown(text, offset, next)
    const problem = problemOf(knownState, isCut || end - start > lineBytesMax)
    const line = problem === null ? read(text, start, end, offset + start) : badLine
    const reason = problem ?? line.problem
    if (line.kind === 'bad') addBad(sums, path, number, reason ?? `does not fit ${format.name}`)
    else count(line, knownState === false)
    if (sender === null || knownState === true) return next
    if (isCut) sender.addCut(offset + start)
    // A line without an end may grow until the next import.
    else if (feed >= 0 || isRequest(line)) sender.add(line, number, block, offset + start, offset + next)
    return next
  }

  return async (block) => {
    const { text, offset } = block
    let position = offset === 0 && text.startsWith(byteOrderMark) ? byteOrderMark.length : 0
    while (position < text.length) {
      while (position < text.length && sender?.isFull() !== true) position = readOne(block, position)
      if (sender?.isFull() === true) await sender.flush()
    }
  }
}

const badLine: ReadLine = { kind: 'bad', timeMs: 0, bytes: 0, events: [], problem: null }

function problemOf(knownState: boolean | 'in part', isLong: boolean): string | null {
  if (knownState === 'in part') return 'was imported before it was complete'
  return isLong ? 'is longer than 64 KiB' : null
}

const isRequest = ({ kind }: ReadLine): boolean => kind !== 'note' && kind !== 'bad'

const carriageReturn = 13

/** The chunks before a file vanishes or turns out to be damaged. Errors of the store are not caught here. */
async function* untilProblem(
  chunks: AsyncIterable<Uint8Array>,
  report: (message: string) => void,
): AsyncGenerator<Uint8Array> {
  try {
    yield* chunks
  } catch (error) {
    report(reasonOf(error))
  }
}
