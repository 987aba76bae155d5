/**
 * Parses and writes large JSON values in steps: what is small in them in one piece, what is larger part by part. The
 * results are those of `JSON.parse`, `JSON.stringify` and `canonicalText`.
 */
import { canonicalText, exactJson } from './json-scan.ts'
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

interface Parsed<Value> {
  value: Value
  end: number
}

/** The value at `start`, which nests at most as deep as the stack allows. Null when it is not valid JSON. */
export function* parseInSteps(json: Buffer, start: number): Steps<Parsed<unknown> | null> {
  return yield* readInSteps(json, start, valueReader)
}

/**
 * The compact text of each value at most so many levels below the one at `start`, with every number spelled as it was
 * sent. The numbers of a body as objects would occupy the memory of twenty such bodies.
 */
export function* exactInSteps(json: Buffer, start: number, levels: number): Steps<Parsed<unknown> | null> {
  return yield* readInSteps(json, start, textReader(levels))
}

/** What becomes of a piece of text, of a list and of an object. */
interface Reader {
  piece(text: string): unknown
  /** Small members of a list, of the text of that list; texts may be joined. Without it each is read by itself. */
  run?: (text: string) => unknown[]
  list(items: unknown[]): unknown
  object(fields: { [name: string]: unknown }): unknown
  /** Of what is inside. */
  inner(): Reader
  splits: boolean // also small lists and objects
}

const valueReader: Reader = {
  piece: (text) => JSON.parse(text) as unknown,
  run: (text) => JSON.parse(text) as unknown[],
  list: (items) => items,
  object: (fields) => fields,
  inner: () => valueReader,
  splits: false,
}

const wholeText: Reader = {
  piece: exactJson,
  run: (text) => [exactJson(text).slice(1, -1)],
  list: (texts) => `[${texts.join(',')}]`,
  object: (fields) => {
    const texts = Object.entries(fields).map(([name, text]) => `${JSON.stringify(name)}:${String(text)}`)
    return `{${texts.join(',')}}`
  },
  inner: () => wholeText,
  splits: false,
}

function textReader(levels: number): Reader {
  if (levels === 0) return wholeText
  const { list, object } = valueReader
  return { piece: exactJson, list, object, inner: () => textReader(levels - 1), splits: true }
}

function* readInSteps(json: Buffer, start: number, reader: Reader): Steps<Parsed<unknown> | null> {
  const skip = shortValue(json, start) ?? (yield* longValue(json, start))
  if (skip.at < 0) return null
  const isList = json[start] === signs.openBracket
  const isObject = json[start] === signs.openBrace
  if ((isPiece(start, skip) && !reader.splits) || (!isList && !isObject)) {
    const piece = readPiece(json.toString('utf8', start, skip.at), reader.piece)
    yield null
    return piece === undefined ? null : { value: piece, end: skip.at }
  }
  return isList ? yield* readList(json, start, reader) : yield* readObject(json, start, reader)
}

function isPiece(start: number, { at: end, members }: Skip): boolean {
  return members <= pieceMembersMax && end - start <= pieceBytesMax
}

function readPiece<Value>(text: string, read: (text: string) => Value): Value | undefined {
  try {
    return read(text)
  } catch {
    return undefined
  }
}

function* readList(json: Buffer, open: number, reader: Reader): Steps<Parsed<unknown> | null> {
  const items: unknown[] = []
  let offset = yield* past(json, open + 1)
  if (json[offset] === signs.closeBracket) return { value: reader.list(items), end: offset + 1 }
  // Each member of a list whose values stay apart is read by itself.
  const run = reader.splits ? undefined : reader.inner().run
  for (;;) {
    let end = run === undefined ? offset : runEnd(json, offset)
    if (run !== undefined && end > offset) {
      const members = readPiece(`[${json.toString('utf8', offset, end)}]`, run)
      if (members === undefined) return null
      for (const member of members) items.push(member)
      yield null
    } else {
      const item = yield* readInSteps(json, offset, reader.inner())
      if (item === null) return null
      items.push(item.value)
      end = item.end
    }
    offset = yield* past(json, end)
    if (json[offset] === signs.closeBracket) return { value: reader.list(items), end: offset + 1 }
    if (json[offset] !== signs.comma) return null
    offset = yield* past(json, offset + 1)
  }
}

/** The end of the members of a list from `start` that are a piece together; `start` when the first is larger. */
function runEnd(json: Buffer, start: number): number {
  let end = start
  let members = 0
  for (let offset = start; !hasSpace(json, offset); offset++) {
    const skip = shortValue(json, offset)
    if (skip === null || skip.at <= offset || skip.at - start > pieceBytesMax) break
    members += skip.members + 1
    if (members > pieceMembersMax) break
    offset = end = skip.at
    if (json[offset] !== signs.comma) break
  }
  return end
}

function* readObject(json: Buffer, open: number, reader: Reader): Steps<Parsed<unknown> | null> {
  const fields: { [name: string]: unknown } = {}
  let offset = yield* past(json, open + 1)
  if (json[offset] === signs.closeBrace) return { value: reader.object(fields), end: offset + 1 }
  for (;;) {
    if (json[offset] !== signs.quote) return null
    const name = shortValue(json, offset) ?? (yield* longValue(json, offset))
    const nameText =
      name.at < 0 ? undefined : readPiece(json.toString('utf8', offset, name.at), valueReader.piece)
    if (typeof nameText !== 'string') return null
    offset = yield* past(json, name.at)
    if (json[offset] !== signs.colon) return null
    const field = yield* readInSteps(json, yield* past(json, offset + 1), reader.inner())
    if (field === null) return null
    if (nameText === '__proto__') defineField(fields, nameText, field.value)
    else fields[nameText] = field.value
    offset = yield* past(json, field.end)
    if (json[offset] === signs.closeBrace) return { value: reader.object(fields), end: offset + 1 }
    if (json[offset] !== signs.comma) return null
    offset = yield* past(json, offset + 1)
  }
}

function* past(json: Buffer, offset: number): Steps<number> {
  return hasSpace(json, offset) ? yield* pastSpace(json, offset) : offset
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

/** Hashed in one piece, in about a millisecond. */
const hashedBytesMax = 512 * 1024

/** The hash of the value as `canonicalText` writes it, hex. */
export function* digestInSteps(value: unknown): Steps<string> {
  const hash = new Bun.CryptoHasher('sha256')
  const pieces: string[] = []
  yield* writeInSteps(value, 'canonical', (piece) => pieces.push(piece))
  for (const piece of pieces) {
    const bytes = Buffer.from(piece)
    for (let offset = 0; offset < bytes.length; offset += hashedBytesMax) {
      hash.update(bytes.subarray(offset, offset + hashedBytesMax))
      yield null
    }
  }
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
