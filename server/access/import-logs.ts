/** Imports access logs: finds them, recognizes their formats, reads them in order of time and hands events over. */
import { AppError } from '../errors.ts'
import { limits } from '../limits.ts'
import { agentEvents, sourceId } from './agent-events.ts'
import type { AccessEvent, AccessOptions, LineEvents } from './agent-events.ts'
import { byteOrderMark, checkFormat, detectFormat, formatNamed } from './formats.ts'
import type { FileParser, Guess } from './formats.ts'
import { blocksOf, findLogs, lineBytesMax, openLog, reasonOf } from './input.ts'
import type { FileProblem, LogFile, OpenLog } from './input.ts'

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
      const found = format === 'auto' ? detectFormat(head) : given(head, format)
      const problem = 'seen' in found ? `is not an access log: ${found.seen}` : null
      if (problem !== null && !file.isFound) throw refusal(file.path, problem, formatHint)
      if (problem !== null) plan.skipped.push({ path: file.path, message: problem })
      if (!('guess' in found)) continue
      const { guess } = found
      if (hasUserAgent(guess)) plan.logs.push({ file, log, guess, source: sourceId(head) })
      else if (file.isFound) plan.skipped.push({ path: file.path, message: withoutUserAgent(guess) })
      else throw refusal(file.path, withoutUserAgent(guess), 'let the server log in the combined format')
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

function given(head: string, format: string): { guess: Guess } | { seen: string } {
  const guess = checkFormat(head, format)
  return guess === null ? { seen: `--format ${format} fits none of its first lines` } : { guess }
}

function refusal(path: string, problem: string, hint: string): AppError {
  return new AppError('unsupported_media_type', `${path} ${problem}.`, { hint })
}

const formatHint = `name its format with --format, such as --format combined or --format '%h %^[%d:%t %^] "%r" %s %b "%R" "%u"'`

/** Few requests without a user agent may be an accident, unless the format has none. */
const fewRequests = 20

function hasUserAgent({ format, fits, userAgents }: Guess): boolean {
  return userAgents > 0 || (format.hasUserAgent && fits < fewRequests)
}

function withoutUserAgent({ format }: Guess): string {
  return `has the format ${format.name}, which has no user agents, so agents cannot be recognized`
}

/** Counts of an import. lines = stored + deduped + people + excluded + bad. */
export interface Sums {
  lines: number
  stored: number
  deduped: number
  people: number
  excluded: number // assets of people, other bots and programs, comments, blank lines
  bad: number
  sessions: number // of agents, that started in these lines
  referrals: number // people whom an assistant sent
  badLines: { path: string; line: number; message: string }[] // the first 20
}

/** Stores a batch of events. `issues` are the first of the rejected ones, with their indexes. */
export type Append = (events: AccessEvent[]) => Promise<{
  accepted: number
  deduped: number
  rejected: number
  issues: { index: number; message: string }[]
}>

const badLinesShown = 20
const batchBytesMax = limits.bodyBytesMax / 4

function newSums(): Sums {
  return {
    ...{ lines: 0, stored: 0, deduped: 0, people: 0, excluded: 0, bad: 0, sessions: 0, referrals: 0 },
    badLines: [],
  }
}

function addBad(sums: Sums, path: string, line: number, message: string): void {
  sums.bad++
  if (sums.badLines.length < badLinesShown) sums.badLines.push({ path, line, message })
}

/** Events that wait for the next batch. */
function startBatch(sums: Sums, append: Append | null) {
  let requests: { event: AccessEvent; path: string; line: number }[] = []
  let more: AccessEvent[] = []
  let bytes = 0
  return {
    /** Adds the events of a line of this many bytes. */
    add(path: string, line: number, lineBytes: number, events: LineEvents): void {
      if (events.request === null && events.more.length === 0) return
      if (events.request !== null) requests.push({ event: events.request, path, line })
      more.push(...events.more)
      bytes += lineBytes + 1_000
    },
    isFull: () => requests.length >= limits.eventsPerRequestMax || bytes > batchBytesMax,
    async flush(): Promise<void> {
      const [lines, others] = [requests, more]
      requests = []
      more = []
      bytes = 0
      if (append === null) sums.stored += lines.length
      if (append === null) return
      if (lines.length > 0) {
        const { accepted, deduped, rejected, issues } = await append(lines.map(({ event }) => event))
        sums.stored += accepted
        sums.deduped += deduped
        for (const { index, message } of issues) addBad(sums, lines[index]!.path, lines[index]!.line, message)
        sums.bad += rejected - issues.length
      }
      // After the requests: an import that was killed in between stores them when it is repeated.
      for (let at = 0; at < others.length; at += limits.eventsPerRequestMax)
        await append(others.slice(at, at + limits.eventsPerRequestMax))
    },
  }
}

export interface ImportRun {
  sums: Sums
  /** Imports one file. A file that cannot be read to its end is a problem; its lines until there are imported. */
  read(planned: PlannedLog): Promise<FileProblem | null>
  /** Stores the events that wait. */
  end(): Promise<void>
}

/** Reads files one after the other. `append` null is a dry run: agents' requests count as stored. */
export function importRun(options: AccessOptions, append: Append | null): ImportRun {
  const sums = newSums()
  const eventsOf = agentEvents(options)
  const batch = startBatch(sums, append)
  const readLine = (planned: PlannedLog, parse: FileParser, line: Line): void => {
    const { text, start, end, number, offset } = line
    const { path } = planned.file
    const parsed = end > start ? parse(text, start, end) : 'note'
    if (parsed === 'note') {
      sums.excluded++
      return
    }
    if (parsed === null) return addBad(sums, path, number, `does not fit ${planned.guess.format.name}`)
    const events = eventsOf(parsed, { id: planned.source, offset, line: text.slice(start, end) })
    if (events.kind === 'person') sums.people++
    if (events.kind === 'excluded') sums.excluded++
    for (const { type } of events.more) {
      if (type === 'agent.detected') sums.sessions++
      else sums.referrals++
    }
    batch.add(path, number, end - start, events)
  }
  return {
    sums,
    async read(planned) {
      const { path } = planned.file
      const parse = planned.guess.format.open()
      let number = 0
      let problem: FileProblem | null = null
      const chunks = untilProblem(planned.log.chunks(), (message) => (problem = { path, message }))
      for await (const { text, offset, isCut } of blocksOf(chunks)) {
        let start = offset === 0 && text.startsWith(byteOrderMark) ? byteOrderMark.length : 0
        while (start < text.length) {
          const feed = text.indexOf('\n', start)
          const stop = feed < 0 ? text.length : feed
          const end = stop > start && text.charCodeAt(stop - 1) === carriageReturn ? stop - 1 : stop
          sums.lines++
          number++
          if (isCut || end - start > lineBytesMax) addBad(sums, path, number, 'is longer than 64 KiB')
          else readLine(planned, parse, { text, start, end, number, offset: offset + start })
          if (batch.isFull()) await batch.flush()
          start = isCut ? text.length : stop + 1
        }
      }
      return problem
    },
    end: () => batch.flush(),
  }
}

const carriageReturn = 13

interface Line {
  text: string
  start: number
  end: number
  number: number // in its file, from 1
  offset: number
}

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
