/** Divides the body of a `trace.batch` delivery into its events without parsing it, so that no digit of one changes. */

export interface BatchParts {
  head: string // up to and with the bracket
  events: string[]
  tail: string
}

/** Null for a delivery of another kind. */
export function batchParts(body: string): BatchParts | null {
  const head = /^\{"type":"trace\.batch","timestamp":"[^"]*","data":\{"sequence":\d+,"events":\[/.exec(
    body,
  )?.[0]
  if (head === undefined) return null
  const events: string[] = []
  let depth = 0
  let start = head.length
  for (let at = start; at < body.length; at++) {
    const char = body[at]
    if (char === '"') at = endOfText(body, at)
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

/** Where the closing quote of the text stands that opens at `from`. */
function endOfText(body: string, from: number): number {
  let at = from + 1
  while (at < body.length && body[at] !== '"') at += body[at] === '\\' ? 2 : 1
  return at
}
