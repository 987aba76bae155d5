/**
 * Scans JSON in steps, with a pause after each part of it: a scan of 64 MiB in one piece would occupy its thread for a
 * tenth of a second, and so would its conversion to a string, so it reads bytes. Like `json-scan.ts`, it validates
 * nothing.
 */
import type { Scan } from './json-scan.ts'

/** Gives null where others may run. */
export type Steps<Result> = Generator<null, Result>

/** So many bytes are scanned in well below a millisecond. */
export const partBytes = 128 * 1024

export const signs = {
  quote: 34,
  comma: 44,
  colon: 58,
  openBracket: 91,
  closeBracket: 93,
  openBrace: 123,
  closeBrace: 125,
} as const

const { quote } = signs
const backslash = 92

/** A value that is skipped part by part, because no request may occupy its thread for as long as a large one takes. */
export interface Skip extends Scan {
  at: number // the start of the value, and at last its end
  nesting: number
  inside: 'text' | 'word' | null // where the part before ended
  members: number // brackets and commas so far: an upper bound on the values in it, and about what parsing costs
}

function startSkip(offset: number): Skip {
  return { at: offset, nesting: 0, inside: null, members: 0, depth: 0, isExact: true }
}

/** Skips to the end of the value, or to `until`. `broken`: the value is incomplete. */
function skipPart(json: Buffer, skip: Skip, until: number): 'end' | 'more' | 'broken' {
  const stop = Math.min(until, json.length)
  let { at: offset, nesting } = skip
  while (offset < stop) {
    const code = json[offset]!
    if (skip.inside === 'text' || code === quote) {
      offset = skip.inside === 'text' ? textEnd(json, offset, stop) : quotedEnd(json, offset, stop)
      skip.inside = offset < 0 ? 'text' : null
      offset = Math.abs(offset)
      if (skip.inside !== null) break
    } else if (code === 123 || code === 91) {
      if (++nesting > skip.depth) skip.depth = nesting
      skip.members++
      offset++
      continue
    } else if (code === 125 || code === 93) {
      if (--nesting < 0) return 'broken'
      offset++
    } else if (skip.inside === 'word' || isWord(code)) {
      const end = wordEnd(json, offset, stop)
      if (skip.inside === 'word' || (code < 97 && !survives(json, offset, end))) skip.isExact = false
      offset = end
      skip.inside = offset === stop && offset < json.length ? 'word' : null
      if (skip.inside !== null) break
    } else {
      if (code === 44) skip.members++
      offset++
      continue
    }
    if (nesting > 0) continue
    skip.at = offset
    return 'end'
  }
  skip.at = offset
  skip.nesting = nesting
  return offset >= json.length ? 'broken' : 'more'
}

/** Strings up to this length are scanned here: for them a native call takes longer than the loop. */
const shortText = 48

/** The end of the string whose opening quote is at `offset`; negative where it has not ended at `stop`. */
function quotedEnd(json: Buffer, offset: number, stop: number): number {
  const near = Math.min(offset + 1 + shortText, stop)
  for (let index = offset + 1; index < near; index++) {
    const code = json[index]!
    if (code === quote) return index + 1
    if (code === backslash) return textEnd(json, index, stop)
  }
  const end = json.indexOf(quote, near)
  if (end >= 0 && json[end - 1] !== backslash) return end + 1
  return textEnd(json, near, stop)
}

/** The same from a place within a string that is not behind a backslash. */
function textEnd(json: Buffer, start: number, stop: number): number {
  let offset = start
  while (offset < stop) {
    const code = json[offset]!
    if (code === quote) return offset + 1
    offset += code === backslash ? 2 : 1
  }
  return -offset
}

/** Whether numbers and the words `true`, `false` and `null` have this character. */
function isWord(code: number): boolean {
  return (code >= 97 && code <= 122) || (code >= 48 && code <= 57) || code === 45
}

/** Whether a double has the number as it is spelled: up to 15 digits without an exponent, and not minus zero. */
function survives(json: Buffer, start: number, end: number): boolean {
  if (end - start > 15 || (json[start] === 45 && json[start + 1] === 48)) return false
  for (let offset = start; offset < end; offset++) if ((json[offset]! | 32) === 101) return false
  return true
}

function wordEnd(json: Buffer, start: number, stop: number): number {
  let offset = start
  while (offset < stop) {
    const code = json[offset]!
    if (!isWord(code) && code !== 46 && code !== 43 && code !== 69) return offset
    offset++
  }
  return offset
}

/** The value at `start`, with `at` at its end, or -1 when it is incomplete; null when it is long, as few are. */
export function shortValue(json: Buffer, start: number): Skip | null {
  const skip = startSkip(start)
  const state = skipPart(json, skip, start + partBytes)
  if (state === 'broken') skip.at = -1
  return state === 'more' ? null : skip
}

/** The same of any value. */
export function* longValue(json: Buffer, start: number): Steps<Skip> {
  const skip = startSkip(start)
  for (;;) {
    const state = skipPart(json, skip, skip.at + partBytes)
    if (state === 'broken') skip.at = -1
    if (state !== 'more') return skip
    yield null
  }
}

/** Whether whitespace may be at this place. */
export function hasSpace(json: Buffer, offset: number): boolean {
  return json[offset]! <= 32
}

/** The end of the whitespace at `start`. */
export function* pastSpace(json: Buffer, start: number): Steps<number> {
  let offset = start
  let until = offset + partBytes
  while (isSpace(json[offset]!)) {
    if (++offset < until) continue
    until = offset + partBytes
    yield null
  }
  return offset
}

function isSpace(code: number): boolean {
  return code === 32 || code === 10 || code === 13 || code === 9
}
