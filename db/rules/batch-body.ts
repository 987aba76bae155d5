/**
 * Writes and splits the body of a `trace.batch` message as text, because parsing could change the digits of a number.
 */

const betweenLists = '],"records":['
const tail = ']}}'

/** An event of a batch and its record, both as JSON text. */
interface BatchItem {
  event: string
  record: string
}

/** A batch with as many of the events as fit in `bytesMax` with their records, and at least one. */
export function writeBatch(
  { sequence, timestamp, bytesMax }: { sequence: number; timestamp: string; bytesMax: number },
  items: readonly BatchItem[],
): { body: string; used: number } {
  const head = `{"type":"trace.batch","timestamp":"${timestamp}","data":{"sequence":${sequence},"events":[`
  let bytes = head.length + betweenLists.length + tail.length
  let usedBytes = 0
  for (const { event, record } of items) {
    bytes += Buffer.byteLength(event) + Buffer.byteLength(record) + 2
    if (usedBytes > 0 && bytes > bytesMax) break
    usedBytes++
  }
  const fitting = items.slice(0, usedBytes)
  const events = fitting.map(({ event }) => event).join(',')
  const records = fitting.map(({ record }) => record).join(',')
  return { body: `${head}${events}${betweenLists}${records}${tail}`, used: usedBytes }
}

/** Matches what `writeBatch` writes before the first event. */
const writtenHead = /^\{"type":"trace\.batch","timestamp":"[^"]*","data":\{"sequence":\d+,"events":\[/

interface BatchBody {
  head: string // up to and including the opening bracket
  events: string[]
  records: string[] | null // null: written before records were
  tail: string
}

/** Null for a message of another type. */
export function splitBatch(body: string): BatchBody | null {
  const head = writtenHead.exec(body)?.[0]
  if (head === undefined) return null
  const events = listItems(body, head.length)
  if (events === null) return null
  if (!body.startsWith(betweenLists, events.end))
    return { head, events: events.items, records: null, tail: body.slice(events.end) }
  const records = listItems(body, events.end + betweenLists.length)
  if (records === null) return null
  return { head, events: events.items, records: records.items, tail: body.slice(records.end) }
}

/** The items of a list of objects, and where its closing bracket is. `start` is after the opening one. */
function listItems(body: string, start: number): { items: string[]; end: number } | null {
  const items: string[] = []
  let depth = 0
  let itemStart = start
  for (let index = start; index < body.length; index++) {
    const char = body[index]
    if (char === '"') index = closingQuote(body, index)
    else if (char === '{' || char === '[') depth++
    else if (depth > 0 && (char === '}' || char === ']')) depth--
    else if (depth === 0 && (char === ',' || char === ']')) {
      if (index > itemStart) items.push(body.slice(itemStart, index))
      itemStart = index + 1
      if (char === ']') return { items, end: index }
    }
  }
  return null
}

/** The batch without some of its events and their records. */
export function withoutEvents(batch: BatchBody, isRemoved: (event: string) => boolean): BatchBody {
  const isKept = batch.events.map((event) => !isRemoved(event))
  const records = batch.records?.filter((_, index) => isKept[index]) ?? null
  return { ...batch, events: batch.events.filter((_, index) => isKept[index]), records }
}

export function joinBatch({ head, events, records, tail: end }: BatchBody): string {
  const recorded = records === null ? '' : `${betweenLists}${records.join(',')}`
  return `${head}${events.join(',')}${recorded}${end}`
}

/** The lines of a message in a file or in syslog: one per event of a batch, otherwise the message itself. */
export function messageLines(body: string): string[] {
  return splitBatch(body)?.events ?? [body]
}

function closingQuote(body: string, openingQuote: number): number {
  let index = openingQuote + 1
  while (index < body.length && body[index] !== '"') index += body[index] === '\\' ? 2 : 1
  return index
}
