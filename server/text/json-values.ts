/**
 * Parses and writes large JSON values in steps: what is small in them in one piece, what is larger part by part. The
 * results are those of `JSON.parse`, `JSON.stringify` and `canonicalText`.
 */
import { canonicalText, parseExact } from './json-scan.ts'
import {
  hasSpace,
  longValue,
  partBytes,
  pastSpace,
  shortValue,
  signs,
  type Skip,
  type Steps,
} from './json-steps.ts'

/** Values with at most so many brackets and commas are parsed in one piece, within a few milliseconds. */
const pieceMembersMax = 2_000
/** A text is parsed in one piece, whatever its length. */
const pieceBytesMax = partBytes

interface Parsed {
  value: unknown
  end: number
}

/**
 * The value at `start`, which nests at most as deep as the stack allows. With `exact`, `JSON.stringify` restores every
 * number's spelling. Null when it is not valid JSON.
 */
export function* parseInSteps(json: Buffer, start: number, exact: boolean): Steps<Parsed | null> {
  const skip = shortValue(json, start) ?? (yield* longValue(json, start))
  if (skip.at < 0) return null
  const isList = json[start] === signs.openBracket
  const isObject = json[start] === signs.openBrace
  if (isPiece(start, skip) || (!isList && !isObject)) {
    const piece = parsePiece(json.toString('utf8', start, skip.at), exact)
    yield null
    return piece === undefined ? null : { value: piece, end: skip.at }
  }
  return isList ? yield* parseList(json, start, exact) : yield* parseObject(json, start, exact)
}

function isPiece(start: number, { at, members }: Skip): boolean {
  return members <= pieceMembersMax && at - start <= pieceBytesMax
}

function parsePiece(text: string, exact: boolean): unknown {
  try {
    return exact ? parseExact(text) : (JSON.parse(text) as unknown)
  } catch {
    return undefined
  }
}

function* parseList(json: Buffer, open: number, exact: boolean): Steps<Parsed | null> {
  const list: unknown[] = []
  let at = yield* past(json, open + 1)
  if (json[at] === signs.closeBracket) return { value: list, end: at + 1 }
  for (;;) {
    const item = yield* parseInSteps(json, at, exact)
    if (item === null) return null
    list.push(item.value)
    at = yield* past(json, item.end)
    if (json[at] === signs.closeBracket) return { value: list, end: at + 1 }
    if (json[at] !== signs.comma) return null
    at = yield* past(json, at + 1)
  }
}

function* parseObject(json: Buffer, open: number, exact: boolean): Steps<Parsed | null> {
  const fields: { [name: string]: unknown } = {}
  let at = yield* past(json, open + 1)
  if (json[at] === signs.closeBrace) return { value: fields, end: at + 1 }
  for (;;) {
    if (json[at] !== signs.quote) return null
    const name = shortValue(json, at) ?? (yield* longValue(json, at))
    const nameText = name.at < 0 ? undefined : parsePiece(json.toString('utf8', at, name.at), false)
    if (typeof nameText !== 'string') return null
    at = yield* past(json, name.at)
    if (json[at] !== signs.colon) return null
    const field = yield* parseInSteps(json, yield* past(json, at + 1), exact)
    if (field === null) return null
    if (nameText === '__proto__') defineField(fields, nameText, field.value)
    else fields[nameText] = field.value
    at = yield* past(json, field.end)
    if (json[at] === signs.closeBrace) return { value: fields, end: at + 1 }
    if (json[at] !== signs.comma) return null
    at = yield* past(json, at + 1)
  }
}

function* past(json: Buffer, at: number): Steps<number> {
  return hasSpace(json, at) ? yield* pastSpace(json, at) : at
}

function defineField(fields: object, name: string, value: unknown): void {
  Object.defineProperty(fields, name, { value, enumerable: true, configurable: true, writable: true })
}

/** Writes the value as `JSON.stringify` does, or as `canonicalText` does, in pieces. */
function* writeInSteps(
  value: unknown,
  form: 'compact' | 'canonical',
  write: (piece: string) => void,
): Steps<void> {
  if (sizeUpTo(value, pieceMembersMax) <= pieceMembersMax) {
    write(form === 'compact' ? JSON.stringify(value) : canonicalText(value))
    yield null
    return
  }
  if (Array.isArray(value)) {
    write('[')
    for (let index = 0; index < value.length; index++) {
      if (index > 0) write(',')
      yield* writeInSteps(value[index], form, write)
    }
    write(']')
    return
  }
  const fields = value as { [name: string]: unknown }
  const names = Object.keys(fields)
  if (form === 'canonical') names.sort((a, b) => (a < b ? -1 : 1))
  let separator = '{'
  for (const name of names) {
    write(`${separator}${JSON.stringify(name)}:`)
    yield* writeInSteps(fields[name], form, write)
    separator = ','
  }
  write('}')
}

/** The value as `JSON.stringify` writes it. */
export function* textInSteps(value: unknown): Steps<string> {
  const pieces: string[] = []
  yield* writeInSteps(value, 'compact', (piece) => pieces.push(piece))
  return pieces.join('')
}

/** The hash of the value as `canonicalText` writes it, hex. */
export function* digestInSteps(value: unknown): Steps<string> {
  const hash = new Bun.CryptoHasher('sha256')
  yield* writeInSteps(value, 'canonical', (piece) => hash.update(piece))
  return hash.digest('hex')
}

/** The number of values in a value, itself included; above `max` any number that is larger. */
function sizeUpTo(value: unknown, max: number): number {
  if (typeof value !== 'object' || value === null) return 1
  let size = 1
  for (const name in value) {
    size += sizeUpTo((value as { [name: string]: unknown })[name], max - size)
    if (size > max) break
  }
  return size
}
