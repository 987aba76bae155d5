/** Lines of one log that wait to be stored, as the store takes them: with their events, counts and place in the log. */
import type { AccessLines, OtherKind } from '../../db/contract/store.ts'
import { limits } from '../limits.ts'
import type { AccessEvent } from './agent-events.ts'

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
  events: readonly AccessEvent[]
}

/** A batch to send. `lineOf` has the line of each event. */
export interface SentLines {
  events: AccessEvent[]
  lineOf: BatchedLine[]
  access: AccessLines
}

export interface LineBatch {
  readonly lines: number
  add(line: BatchedLine): void
  /** Whether there are enough lines to send. */
  isFull(): boolean
  /** All lines as one batch; `tail` is the text of the last one, from its start to its end. */
  sent(tail: string): SentLines
  /** Removes the lines before `position`, which the store has, and returns them. Null when no line begins there. */
  dropBefore(position: number): BatchedLine[] | null
}

const linesMax = 32_768
const logBytesMax = 8 * 1024 * 1024
const eventsOfLineMax = 2
/** So that no sum exceeds what a number holds exactly: nobody sends a larger response. */
const responseBytesMax = 2 ** 40
const hourMs = 3_600_000

interface BatchOptions {
  isDrain?: boolean
  /** More would make the other requests of a server wait. */
  eventsMax?: number
}

/** `from` is the offset of the first line. */
export function lineBatch(log: LogIdentity, from: number, options: BatchOptions = {}): LineBatch {
  const { isDrain = false, eventsMax = limits.eventsPerRequestMax } = options
  let lines: BatchedLine[] = []
  let start = from
  let events = 0
  return {
    get lines() {
      return lines.length
    },
    add(line) {
      lines.push(line)
      events += line.events.length
    },
    isFull() {
      const bytes = (lines.at(-1)?.end ?? start) - start
      const isLong = lines.length >= linesMax || bytes >= logBytesMax
      return isLong || events > eventsMax - eventsOfLineMax
    },
    sent(tail) {
      const batch: SentLines = {
        ...{ events: [], lineOf: [] },
        access: {
          ...log,
          ...{ from: start, to: lines.at(-1)?.end ?? start, tail: tailHash(tail), requests: [], counts: [] },
          ...{ sums: { lines: lines.length, people: 0, excluded: 0, bad: 0 }, newestMs: null },
          ...(isDrain ? { isDrain } : {}),
        },
      }
      addLines(batch, lines)
      return batch
    },
    dropBefore(position) {
      const dropped = lines.findIndex(({ end }) => end === position) + 1
      if (dropped === 0) return position === start ? [] : null
      const gone = lines.slice(0, dropped)
      lines = lines.slice(dropped)
      start = position
      events = lines.reduce((sum, line) => sum + line.events.length, 0)
      return gone
    },
  }
}

function addLines({ events, lineOf, access }: SentLines, lines: readonly BatchedLine[]): void {
  const { sums, requests } = access
  const tally = hourTally()
  let newestMs = -Infinity
  for (const line of lines) {
    const { kind, timeMs } = line
    const bytes = Math.min(line.bytes, responseBytesMax)
    for (let index = 0; index < line.events.length; index++) {
      events.push(line.events[index]!)
      lineOf.push(line)
      requests.push(kind === 'agent' && index === 0 ? bytes : null)
    }
    if (kind === 'bad') sums.bad++
    else if (kind === 'person') sums.people++
    else if (kind !== 'agent') sums.excluded++
    if (kind === 'bad' || kind === 'note') continue
    if (timeMs > newestMs) newestMs = timeMs
    if (kind !== 'agent') tally.add(kind, timeMs, bytes)
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
  const of = (kind: OtherKind): Count => ({ hourMs: startMs, kind, requests: 0, bytes: 0 })
  return {
    add(kind: OtherKind, timeMs: number, bytes: number): void {
      if (current === undefined || timeMs < startMs || timeMs >= startMs + hourMs) {
        startMs = Math.floor(timeMs / hourMs) * hourMs
        current = hours.get(startMs) ?? { person: of('person'), asset: of('asset'), bot: of('bot') }
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
