/** What tabs and the shared worker that holds the stream say to each other; `n` numbers the streams of a tab. */
import type { EventFilter } from '../api/event-shapes.ts'

export type ToWorker =
  | { kind: 'open'; n: number; base: string; reader: string; filter: EventFilter; after: string }
  | { kind: 'close'; n: number }
  | { kind: 'here' } // the tab still is; a port that went says nothing
  | { kind: 'gone' }

export type ToTab =
  | { kind: 'begin'; n: number }
  | { kind: 'text'; n: number; text: string }
  | { kind: 'end'; n: number }
  | { kind: 'refused'; n: number; status: number; headers: [string, string][]; body: string }
  | { kind: 'unreachable'; n: number }

/** How often a tab says that it is there; a tab in the background may come to it but once a minute. */
export const hereEveryMs = 20_000
export const hereMsMax = 150_000
