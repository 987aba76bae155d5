/**
 * Writes and splits the body of a `trace.batch` message as text, because parsing could change the digits of a number.
 */

const tail = ']}}'

/** A batch with as many of the events (JSON text) as fit in `bytesMax`, and at least one. */
export function writeBatch(
  { sequence, timestamp, bytesMax }: { sequence: number; timestamp: string; bytesMax: number },
  events: string[],
): { body: string; used: number } {
  const head = `{"type":"trace.batch","timestamp":"${timestamp}","data":{"sequence":${sequence},"events":[`
  let bytes = head.length + tail.length
  let used = 0
  for (const event of events) {
    bytes += Buffer.byteLength(event) + 1
    if (used > 0 && bytes > bytesMax) break
    used++
  }
  return { body: `${head}${events.slice(0, used).join(',')}${tail}`, used }
}

/** Matches what `writeBatch` writes before the first event. */
const writtenHead = /^\{"type":"trace\.batch","timestamp":"[^"]*","data":\{"sequence":\d+,"events":\[/

export interface BatchBody {
  head: string // up to and including the opening bracket
  events: string[]
  tail: string
}

/** Null for a message of another type. */
export function splitBatch(body: string): BatchBody | null {
  const head = writtenHead.exec(body)?.[0]
  if (head === undefined) return null
  const events: string[] = []
  let depth = 0
  let start = head.length
  for (let at = start; at < body.length; at++) {
    const char = body[at]
    if (char === '"') at = closingQuote(body, at)
    else if (char === '{' || char === '[') depth++
    else if (depth > 0 && (char === '}' || char === ']')) depth--
    else if (depth === 0 && (char === ',' || char === ']')) {
      if (at > start) events.push(body.slice(start, at))
      start = at + 1
      if (char === ']') return { head, events, tail: body.slice(at) }
    }
  }
  return null
}

/** The lines of a message in a file or in syslog: one per event of a batch, otherwise the message itself. */
export function messageLines(body: string): string[] {
  return splitBatch(body)?.events ?? [body]
}

function closingQuote(body: string, openingQuote: number): number {
  let at = openingQuote + 1
  while (at < body.length && body[at] !== '"') at += body[at] === '\\' ? 2 : 1
  return at
}
