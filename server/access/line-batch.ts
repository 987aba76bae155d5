/** Lines of one log that wait to be stored, as the store takes them: with their events, counts and place in the log. */
import type { AccessLines, EventRecord, OtherKind } from '../../db/contract/store.ts'
import { limits } from '../limits.ts'
import { hourMs } from '../../db/contract/units.ts'

/** What a line counts as: a request by its kind, a comment or blank line, or one that does not fit the format. */
export type LineKind = 'agent' | OtherKind | 'note' | 'bad'

export interface LogIdentity {
  siteId: string
  source: string
  path: string
  format: string
}

export interface BatchedLine {
  number: number // in its file, from 1
  end: number // the offset after the line and its line feed
  kind: LineKind
  timeMs: number // of a request
  bytes: number // of its response
  /** The event of an agent's request comes first. */
  events: readonly EventRecord[]
}

/** A batch to send. `lineOf` has the line of each event. */
export interface SentLines {
  events: EventRecord[]
  lineOf: BatchedLine[]
  access: AccessLines
}

export interface LineBatch {
  readonly lines: number
  add(line: BatchedLine): void
  /** Adds a line without events. */
  count(end: number, kind: LineKind, timeMs: number, bytes: number): void
  /** Whether there are enough lines to send. */
  isFull(): boolean
  /** All lines as one batch; `tail` is the text of the last one, from its start to its end. */
  sent(tail: string): SentLines
  /** Removes the lines before `position`, which the store has. Returns their kinds; null when no line begins there. */
  dropBefore(position: number): LineKind[] | null
}

/** Numbers by line: an import has hundreds of thousands of lines per second, most of them without events. */
interface Columns {
  ends: number[]
  kinds: LineKind[]
  timesMs: number[]
  bytes: number[]
}

const linesMax = 32_768
const logBytesMax = 8 * 1024 * 1024
const eventsOfLineMax = 2
/** So that no sum exceeds what a number holds exactly: nobody sends a larger response. */
const responseBytesMax = 2 ** 40

interface BatchOptions {
  isDrain?: boolean
  /** More would make the other requests of a server wait. */
  eventsMax?: number
}

/** `from` is the offset of the first line. */
export function lineBatch(log: LogIdentity, from: number, options: BatchOptions = {}): LineBatch {
  const { isDrain = false, eventsMax = limits.eventsPerRequestMax } = options
  const columns: Columns = { ends: [], kinds: [], timesMs: [], bytes: [] }
  const { ends, kinds, timesMs, bytes } = columns
  let withEvents: BatchedLine[] = []
  let start = from
  let events = 0
  const count = (end: number, kind: LineKind, timeMs: number, ofResponse: number): void => {
    ends.push(end)
    kinds.push(kind)
    timesMs.push(timeMs)
    bytes.push(Math.min(ofResponse, responseBytesMax))
  }
  return {
    get lines() {
      return ends.length
    },
    add(line) {
      count(line.end, line.kind, line.timeMs, line.bytes)
      if (line.events.length === 0) return
      withEvents.push(line)
      events += line.events.length
    },
    count,
    isFull() {
      const isLong = ends.length >= linesMax || (ends.at(-1) ?? start) - start >= logBytesMax
      return isLong || events > eventsMax - eventsOfLineMax
    },
    sent(tail) {
      const access: AccessLines = {
        ...log,
        from: start,
        to: ends.at(-1) ?? start,
        tail: tailHash(tail),
        requests: [],
        counts: [],
        sums: { lines: ends.length, people: 0, excluded: 0, bad: 0 },
        newestMs: null,
        ...(isDrain ? { isDrain } : {}),
      }
      addCounts(access, columns)
      return withRequests(access, withEvents)
    },
    dropBefore(position) {
      const dropped = ends.indexOf(position) + 1
      if (dropped === 0) return position === start ? [] : null
      const droppedKinds = kinds.slice(0, dropped)
      for (const column of Object.values(columns) as unknown[][]) column.splice(0, dropped)
      withEvents = withEvents.filter(({ end }) => end > position)
      start = position
      events = withEvents.reduce((sum, line) => sum + line.events.length, 0)
      return droppedKinds
    },
  }
}

function withRequests(access: AccessLines, lines: readonly BatchedLine[]): SentLines {
  const sentLines: SentLines = { events: [], lineOf: [], access }
  for (const line of lines)
    for (let index = 0; index < line.events.length; index++) {
      const isRequest = line.kind === 'agent' && index === 0
      sentLines.events.push(line.events[index]!)
      sentLines.lineOf.push(line)
      access.requests.push(isRequest ? Math.min(line.bytes, responseBytesMax) : null)
    }
  return sentLines
}

function addCounts(access: AccessLines, { kinds, timesMs, bytes }: Columns): void {
  const { sums } = access
  const tally = hourTally()
  let newestMs = -Infinity
  for (let line = 0; line < kinds.length; line++) {
    const kind = kinds[line]!
    if (kind === 'bad') sums.bad++
    else if (kind === 'person') sums.people++
    else if (kind !== 'agent') sums.excluded++
    if (kind === 'bad' || kind === 'note') continue
    const timeMs = timesMs[line]!
    if (timeMs > newestMs) newestMs = timeMs
    if (kind !== 'agent') tally.add(kind, timeMs, bytes[line]!)
  }
  access.counts = tally.counts()
  if (newestMs > -Infinity) access.newestMs = newestMs
}

type Count = AccessLines['counts'][number]

/** Adds up requests by hour and kind. The lines of a log are mostly of one hour. */
function hourTally() {
  const hours = new Map<number, { [kind in OtherKind]: Count }>()
  let startMs = 0
  let current: { [kind in OtherKind]: Count } | undefined
  const createCount = (kind: OtherKind): Count => ({ hourMs: startMs, kind, requests: 0, bytes: 0 })
  return {
    add(kind: OtherKind, timeMs: number, bytes: number): void {
      if (current === undefined || timeMs < startMs || timeMs >= startMs + hourMs) {
        startMs = Math.floor(timeMs / hourMs) * hourMs
        current = hours.get(startMs) ?? {
          person: createCount('person'),
          asset: createCount('asset'),
          bot: createCount('bot'),
        }
        hours.set(startMs, current)
      }
      const count = current[kind]
      count.requests++
      count.bytes += bytes
    },
    counts: (): Count[] =>
      [...hours.values()].flatMap((hour) => Object.values(hour)).filter(({ requests }) => requests > 0),
  }
}

/** Of the text of a line from its start to its end, in which each character is a byte. */
export function tailHash(line: string): string {
  return Bun.SHA256.hash(Buffer.from(line, 'latin1'), 'hex').slice(0, 32)
}

/** The line, or its part, that ends at `end` of a text. */
export function lineBefore(text: string, end: number): string {
  return text.slice(end < 2 ? 0 : text.lastIndexOf('\n', end - 2) + 1, end)
}
