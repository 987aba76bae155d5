/**
 * JSON text: scans it without parsing (where values end, how deep they nest, whether doubles can hold their numbers),
 * and writes it with every number spelled as it was sent.
 */

/** Findings since the scan was created or reset. */
export interface Scan {
  depth: number // deepest nesting
  isExact: boolean // false: a number may lose digits or its minus sign as a double
}

const quote = 34
const backslash = 92

/** The end of the whitespace at `offset`. */
export function skipSpace(text: string, offset: number): number {
  for (;;) {
    const code = text.charCodeAt(offset)
    if (code !== 32 && code !== 10 && code !== 13 && code !== 9) return offset
    offset++
  }
}

/** The end of the string whose opening quote is at `offset`; -1 when it is unterminated. */
export function skipString(text: string, offset: number): number {
  let end = text.indexOf('"', offset + 1)
  while (end > 0 && text.charCodeAt(end - 1) === backslash) {
    let start = end - 1
    while (text.charCodeAt(start - 1) === backslash) start--
    if ((end - start) % 2 === 0) break // the backslashes escape each other, not the quote
    end = text.indexOf('"', end + 1)
  }
  return end + 1 === 0 ? -1 : end + 1
}

/**
 * The end of the value at `offset`; -1 when it is incomplete. Correct for valid JSON; for other text it only balances
 * brackets and validates nothing.
 */
export function skipValue(text: string, offset: number, scan: Scan): number {
  let depth = 0
  while (offset < text.length) {
    const code = text.charCodeAt(offset)
    if (code === quote) {
      offset = skipString(text, offset)
      if (offset < 0) return -1
    } else if (code === 123 || code === 91) {
      if (++depth > scan.depth) scan.depth = depth
      offset++
      continue
    } else if (code === 125 || code === 93) {
      if (--depth < 0) return -1
      offset++
    } else if (code === 45 || (code >= 48 && code <= 57)) {
      offset = skipNumber(text, offset, scan)
    } else if (code >= 97 && code <= 122) {
      offset = skipLetters(text, offset)
    } else {
      offset++ // comma, colon, whitespace
      continue
    }
    if (depth === 0) return offset
  }
  return -1
}

/** Up to 15 digits without an exponent survive a double unchanged; minus zero does not. */
function skipNumber(text: string, offset: number, scan: Scan): number {
  const start = offset
  let isPlain = !(text.charCodeAt(offset) === 45 && text.charCodeAt(offset + 1) === 48)
  for (;;) {
    const code = text.charCodeAt(++offset)
    if ((code >= 48 && code <= 57) || code === 46) continue
    if ((code | 32) !== 101 && code !== 43 && code !== 45) break
    isPlain = false
  }
  if (!isPlain || offset - start > 15) scan.isExact = false
  return offset
}

function skipLetters(text: string, offset: number): number {
  do offset++
  while (text.charCodeAt(offset) >= 97 && text.charCodeAt(offset) <= 122)
  return offset
}

/** Whether the text has more than `max` opening brackets, strings included: a cheap upper bound on nesting. */
export function hasMoreOpeners(text: string, max: number): boolean {
  let count = 0
  for (let index = text.indexOf('{'); index >= 0; index = text.indexOf('{', index + 1))
    if (++count > max) return true
  for (let index = text.indexOf('['); index >= 0; index = text.indexOf('[', index + 1))
    if (++count > max) return true
  return false
}

/**
 * Whether the value of the text nests deeper than `max`. Before a text is parsed, because the parser needs 80 ms for
 * 64,000 brackets.
 */
export function nestsDeeperThan(text: string, max: number): boolean {
  if (!hasMoreOpeners(text, max)) return false
  const scan: Scan = { depth: 0, isExact: true }
  skipValue(text, skipSpace(text, 0), scan)
  return scan.depth > max
}

/** Whether a parsed value nests deeper than `max`. Scalars have depth 0, `{}` and `[]` have depth 1. */
export function isDeeperThan(value: unknown, depthMax: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (depthMax <= 0) return true
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const item: unknown = value[i]
      if (typeof item === 'object' && item !== null && isDeeperThan(item, depthMax - 1)) return true
    }
    return false
  }
  // for-in visits exactly the fields that JSON.parse created, `__proto__` included: all are own and enumerable.
  for (const name in value) {
    const item = (value as { [name: string]: unknown })[name]
    if (typeof item === 'object' && item !== null && isDeeperThan(item, depthMax - 1)) return true
  }
  return false
}

// Missing in TypeScript's library; Bun 1.4.5 has it.
const rawJson = (JSON as unknown as { rawJSON: (text: string) => unknown }).rawJSON

/** The value of `text` as compact JSON: like `JSON.stringify(JSON.parse(text))`, but no number changes. */
export function exactJson(text: string): string {
  return JSON.stringify(JSON.parse(text, asSpelled))
}

function asSpelled(this: unknown, _name: string, value: unknown, context?: { source?: string }): unknown {
  return typeof value === 'number' && context?.source !== undefined ? rawJson(context.source) : value
}

/** Parses `text` so that `JSON.stringify` restores every number's spelling; the numbers are not JavaScript numbers. */
export function parseExact(text: string): unknown {
  return JSON.parse(text, asSpelled)
}

/** The same text for all equal JSON values: fields sorted by name, numbers as JavaScript writes them. */
export function canonicalText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalText).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  const fields = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${fields.map(([name, inner]) => `${JSON.stringify(name)}:${canonicalText(inner)}`).join(',')}}`
}
