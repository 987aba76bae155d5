/** Locates each event in the text of a request, for size limits, excerpts and numbers that parsing would round. */
import { limits } from '../limits.ts'
import { type Scan, skipSpace, skipString, skipValue } from '../text/json-scan.ts'

export type OverLimit = 'too_deep' | 'too_large'

/** One value in the text. */
export interface Slice {
  start: number
  end: number
  isExact: boolean // false: parsing may change its numbers
  over: OverLimit | null
}

export interface Outline {
  events: Slice[] // of the last field named `events`; at most one more than a request may contain
  over: Slice[] // events and other values that exceed the limits of an event, in text order
}

/** The outline of a JSON request body, or null when its brackets show that it is not a JSON object. */
export function outlineBody(text: string): Outline | null {
  const outline: Outline = { events: [], over: [] }
  let at = skipSpace(text, 0)
  if (text[at] !== '{') return null
  at = skipSpace(text, at + 1)
  while (text[at] === '"') {
    const nameEnd = skipString(text, at)
    const colon = nameEnd < 0 ? -1 : skipSpace(text, nameEnd)
    if (text[colon] !== ':') return null
    const isEvents = isNamedEvents(text.slice(at, nameEnd))
    const start = skipSpace(text, colon + 1)
    if (isEvents) outline.events = []
    at =
      isEvents && text[start] === '['
        ? outlineEvents(text, start, outline)
        : outlineOther(text, start, outline)
    if (at < 0) return null
    at = skipSpace(text, at)
    if (text[at] === ',') at = skipSpace(text, at + 1)
  }
  return text[at] === '}' && skipSpace(text, at + 1) === text.length ? outline : null
}

/** The value at `start`, checked against the limits of one event; null when it is incomplete. */
export function sliceAt(text: string, start: number): Slice | null {
  const scan: Scan = { depth: 0, isExact: true }
  const end = skipValue(text, start, scan)
  if (end < 0) return null
  const isDeep = scan.depth > limits.eventDepthMax
  return { start, end, isExact: scan.isExact, over: isDeep ? 'too_deep' : sizeOver(text, start, end) }
}

/** Whether the text from `start` to `end` has more UTF-8 bytes than an event may. */
export function sizeOver(text: string, start: number, end: number): OverLimit | null {
  const units = end - start
  if (units * 3 <= limits.eventBytesMax) return null // a UTF-16 unit is at most three bytes
  const isLarge =
    units > limits.eventBytesMax || Buffer.byteLength(text.slice(start, end)) > limits.eventBytesMax
  return isLarge ? 'too_large' : null
}

/** The name may contain escapes. */
function isNamedEvents(name: string): boolean {
  if (!name.includes('\\')) return name === '"events"'
  try {
    return JSON.parse(name) === 'events'
  } catch {
    return false
  }
}

function outlineEvents(text: string, open: number, outline: Outline): number {
  let at = skipSpace(text, open + 1)
  if (text[at] === ']') return at + 1
  for (;;) {
    const slice = sliceAt(text, at)
    if (slice === null) return -1
    if (outline.events.length <= limits.eventsPerRequestMax) {
      outline.events.push(slice)
      if (slice.over !== null) outline.over.push(slice)
    }
    at = skipSpace(text, slice.end)
    if (text[at] === ']') return at + 1
    if (text[at] !== ',') return -1
    at = skipSpace(text, at + 1)
  }
}

function outlineOther(text: string, start: number, outline: Outline): number {
  const slice = sliceAt(text, start)
  if (slice === null) return -1
  if (slice.over !== null) outline.over.push(slice)
  return slice.end
}
