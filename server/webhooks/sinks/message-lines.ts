/** The lines that a message makes in a file or syslog: one for each event of a batch, else the message itself. */
import { skipValue } from '../../text/json-scan.ts'

/** Batches are written by us in exactly this form, so their events can be cut out without touching a number. */
const batchHead = /^\{"type":"trace\.batch","timestamp":"[^"]*","data":\{"sequence":\d+,"events":\[/

export function messageLines(body: string): string[] {
  const head = batchHead.exec(body)
  if (head === null) return [body]
  const lines: string[] = []
  let at = head[0].length
  while (body[at] === '{') {
    const end = skipValue(body, at, { depth: 0, isExact: true })
    if (end < 0) throw new Error('invariant: a batch holds whole events')
    lines.push(body.slice(at, end))
    at = end + 1 // the comma, or the bracket that ends the list
  }
  return lines
}
