/** The texts of a sealed block as columns: each shape once, then the values by member. */
import { openValues, packValues, type ColumnSource } from './value-columns.ts'

/** The text of a field whose code is a hash. */
export type Spilled = [row: number, member: number, text: string]

/** Texts of events, a NUL after each. */
export interface TextFrame {
  firstRow: number
  bytes: Buffer
}

export interface Bodies {
  text(row: number): string
  /** Texts of which one is the row's. */
  frame(row: number): TextFrame
  /** What holds each string of the row's text, and of others, that has this in upper case. */
  near(row: number, upper: string): Buffer[]
  spilled(): Spilled[]
}

/*
 * Senders write the same members again and again, so texts differ in their values only, and values of one member are
 * alike: columns take a seventh to a half of the room of frames. event_body.bodies is the byte `columnsMark`, then in
 * zstd:
 *   u16 rows, u8 shapes - 1, u8 columns, u32 where the texts begin
 *   the shape of each row, u8
 *   for each shape: u8 values, then the column of each, u8
 *   for each column: u8 kind and its bytes (value-columns.ts), one value for each row whose shape has it
 *   texts in UTF-8, a NUL after each: the shapes, those of the columns, and the spilled texts: a JSON list, nothing,
 *   or a list of [field, column] when all of a field's are the values of a column
 */
export const columnsMark = 0xc1
const headBytes = 8
const countMax = 255
/** Level 19 saves another 3 %, but takes ten times as long. */
const level = 9

/** Null when the texts would not come back byte by byte. */
export function packTextColumns(
  texts: readonly string[],
  hashed: readonly Spilled[],
): Uint8Array<ArrayBuffer> | null {
  const spilled = hashed.toSorted(
    ([row, field], [otherRow, otherField]) => row - otherRow || field - otherField,
  )
  if (texts.some((text) => text.includes(valueMark) || text.includes('\0'))) return null
  const names = new Map<string, number>()
  const cuts = texts.map((text) => {
    const cut = cutText(text)
    const fresh = new Set(cut.columns.filter((name) => !names.has(name)))
    const isWide = cut.values.length > countMax || names.size + fresh.size > countMax
    if (isWide) return { shape: text, columns: [], values: [] } // is a shape of its own
    for (const name of fresh) names.set(name, names.size)
    return cut
  })
  const columns = Array.from(names, (): Column => ({ rows: [], values: [] }))
  const shapes = new Map<string, { number: number; columns: number[] }>()
  const shapeOf = cuts.map((cut, row) => {
    const columnNumbers = cut.columns.map((name) => names.get(name)!)
    columnNumbers.forEach((column, index) => {
      columns[column]!.rows.push(row)
      columns[column]!.values.push(cut.values[index]!)
    })
    // Equal shapes may have other columns: an unfinished string may hold what looks like a name.
    const key = `${columnNumbers.join()} ${cut.shape}`
    const shape = shapes.get(key) ?? { number: shapes.size, columns: columnNumbers }
    shapes.set(key, shape)
    return shape.number
  })
  const packed = join(shapeOf, shapes, columns, spilledText(columns, spilled))
  return isSame(packed, texts, spilled) ? packed : null
}

interface Column {
  rows: number[]
  values: string[]
}

function join(
  shapeOf: number[],
  shapes: ReadonlyMap<string, { columns: number[] }>,
  columns: readonly Column[],
  spilled: string,
): Uint8Array<ArrayBuffer> {
  const packed = columns.map(({ values }) => packValues(values))
  const texts = [...shapes.keys()].map((key) => key.slice(key.indexOf(' ') + 1))
  const parts = [
    Uint8Array.from(shapeOf),
    ...Array.from(shapes.values(), (shape) => Uint8Array.of(shape.columns.length, ...shape.columns)),
    ...packed.flatMap(({ kind, bytes }) => [Uint8Array.of(kind), bytes]),
  ]
  const head = Buffer.alloc(headBytes)
  head.writeUInt16LE(shapeOf.length, 0)
  head[2] = shapes.size - 1
  head[3] = columns.length
  head.writeUInt32LE(headBytes + parts.reduce((sum, { length }) => sum + length, 0), 4)
  const allTexts = [...texts, ...packed.flatMap((column) => column.texts), spilled]
  const raw = Buffer.concat([head, ...parts, Buffer.from(allTexts.map((text) => `${text}\0`).join(''))])
  return Buffer.concat([Uint8Array.of(columnsMark), Bun.zstdCompressSync(raw, { level })])
}

/** Hashed texts are values of the events, so usually it is enough to name their columns. */
function spilledText(columns: readonly Column[], spilled: readonly Spilled[]): string {
  if (spilled.length === 0) return ''
  const fields = [...new Set(spilled.map(([, field]) => field))].sort((a, b) => a - b)
  const pairs = fields.map((field) => {
    const fieldSpills = spilled.filter(([, spilledField]) => spilledField === field)
    const isOf = ({ rows, values }: Column): boolean =>
      rows.length === fieldSpills.length &&
      fieldSpills.every(([row, , text], index) => rows[index] === row && inside(text) === values[index])
    return [field, columns.findIndex(isOf)]
  })
  return JSON.stringify(pairs.every(([, column]) => column! >= 0) ? pairs : spilled)
}

const inside = (text: string): string => JSON.stringify(text).slice(1, -1)

function isSame(packed: Uint8Array, texts: readonly string[], spilled: readonly Spilled[]): boolean {
  const bodies = openTextColumns(packed)
  const again = bodies.spilled()
  return (
    texts.every((text, row) => bodies.text(row) === text) && JSON.stringify(again) === JSON.stringify(spilled)
  )
}

/** Rows read singly before the values of all rows are located at once. */
const singlesMax = 8

export function openTextColumns(blob: Uint8Array): Bodies {
  const block = openRaw(blob)
  const { rows, shapeOf, shapes, columns } = block
  let reads = 0
  let ranks: Uint8Array[] | null = null
  let frame: Buffer | null = null
  const joined = (): string => Array.from({ length: rows }, (_, row) => `${text(row)}\0`).join('')

  function text(row: number): string {
    const shape = shapes[shapeOf[row]!]
    if (shape === undefined) return ''
    if (++reads > singlesMax) ranks ??= allRanks(block)
    const shapeCounts = ranks === null ? shapesBefore(block, row) : null
    const parts = (shape.parts ??= shape.text.split(valueMark))
    const pieces = Array<string>(2 * shape.columns.length + 1)
    pieces[0] = parts[0]!
    for (let index = 0; index < shape.columns.length; index++) {
      const column = shape.columns[index]!
      const rank = shapeCounts === null ? ranks![column]![row]! : rankOf(block, shapeCounts, column)
      pieces[2 * index + 1] = columns[column]!.at(rank)
      pieces[2 * index + 2] = parts[index + 1]!
    }
    return pieces.join('') // in one piece, unlike the result of +, which callers would copy
  }

  return {
    text,
    frame: () => ({ firstRow: 0, bytes: (frame ??= Buffer.from(joined())) }),
    near: (_, upper) => [block.stored, ...valuesOf(block, upper)],
    spilled: () => openSpilled(block),
  }
}

/** The values that are stored in another way than as texts, if any may hold this. */
function valuesOf({ columns }: RawBlock, upper: string): Buffer[] {
  const values = columns.flatMap(({ others: otherTexts }) => otherTexts(upper))
  return values.length === 0 ? [] : [Buffer.from(values.join('\0'))]
}

interface Shape {
  text: string
  columns: Uint8Array
  parts: string[] | null
}

type RawBlock = ReturnType<typeof openRaw>

function openRaw(blob: Uint8Array) {
  const raw = Bun.zstdDecompressSync(blob.subarray(1) as Uint8Array<ArrayBuffer>)
  const view = new DataView(raw.buffer, raw.byteOffset, raw.byteLength)
  const rows = view.getUint16(0, true)
  const stored = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength).subarray(view.getUint32(4, true))
  const texts = stored.toString('utf8').split('\0')
  const shapeOf = raw.subarray(headBytes, headBytes + rows)
  const source: ColumnSource = { bytes: raw, at: headBytes + rows, texts, text: raw[2]! + 1 }
  const shapes = texts.slice(0, source.text).map((text): Shape => {
    const columns = raw.subarray(source.at + 1, source.at + 1 + raw[source.at]!)
    source.at += 1 + columns.length
    return { text, columns, parts: null }
  })
  const counts = countsOf(shapesBefore({ shapeOf, shapes }, rows), shapes, raw[3]!)
  const columns = Array.from(counts, (count) => openValues(source, count))
  return { rows, stored, texts, shapeOf, shapes, columns }
}

/** The rows of each column. */
function countsOf(rows: Uint16Array, shapes: readonly Shape[], columns: number): Uint16Array {
  const counts = new Uint16Array(columns)
  rows.forEach((count, shape) => {
    for (const column of shapes[shape]!.columns) counts[column]! += count
  })
  return counts
}

/** How many rows before a row have each shape. */
function shapesBefore({ shapeOf, shapes }: Pick<RawBlock, 'shapeOf' | 'shapes'>, row: number): Uint16Array {
  const shapeCounts = new Uint16Array(shapes.length)
  for (let index = 0; index < row; index++) shapeCounts[shapeOf[index]!]!++
  return shapeCounts
}

/** How many of these rows have a column. */
function rankOf({ shapes }: RawBlock, shapeCounts: Uint16Array, column: number): number {
  let rank = 0
  for (let shape = 0; shape < shapeCounts.length; shape++)
    if (shapeCounts[shape]! > 0 && shapes[shape]!.columns.includes(column)) rank += shapeCounts[shape]!
  return rank
}

/** The same of every row, by column. */
function allRanks({ shapeOf, shapes, columns }: RawBlock): Uint8Array[] {
  const next = new Uint16Array(columns.length)
  const ranks = columns.map(() => new Uint8Array(shapeOf.length))
  for (let row = 0; row < shapeOf.length; row++)
    for (const column of shapes[shapeOf[row]!]!.columns) ranks[column]![row] = next[column]!++
  return ranks
}

function openSpilled(block: RawBlock): Spilled[] {
  const { texts, shapeOf, shapes, columns } = block
  const list = JSON.parse(texts.at(-2) || '[]') as Spilled[] | [field: number, column: number][]
  if (list[0] === undefined || list[0].length === 3) return list as Spilled[]
  const pairs = list as [number, number][]
  const ranks = allRanks(block)
  const textOf = (row: number, column: number): string =>
    JSON.parse(`"${columns[column]!.at(ranks[column]![row]!)}"`) as string
  return Array.from(shapeOf).flatMap((shape, row) =>
    pairs
      .filter(([, column]) => shapes[shape]!.columns.includes(column))
      .map(([field, column]): Spilled => [row, field, textOf(row, column)]),
  )
}

interface Cut {
  /** The text with `valueMark` in place of each value. */
  shape: string
  /** Of each value: the member's name before it, and how many values of this name precede it. */
  columns: string[]
  values: string[]
}

/** A control character, which cannot occur in valid JSON. */
export const valueMark = '\x01'

const quote = 34
const colon = 58
const backslash = 92

/**
 * Values are the contents of strings, and numbers, true, false and null. Any text works, also one that is not JSON, but
 * it must not contain the mark.
 */
export function cutText(text: string): Cut {
  const cut: Cut = { shape: '', columns: [], values: [] }
  const nameCounts = new Map<string, number>()
  let name = ''
  let from = 0
  const add = (start: number, end: number): void => {
    cut.shape += text.slice(from, start) + valueMark
    cut.values.push(text.slice(start, end))
    const precedingCount = nameCounts.get(name) ?? 0
    nameCounts.set(name, precedingCount + 1)
    cut.columns.push(precedingCount === 0 ? name : `${name}${precedingCount}`)
    from = end
  }
  for (let position = 0; position < text.length;) {
    const char = text.charCodeAt(position)
    if (char === quote) {
      const end = stringEnd(text, position + 1)
      if (text.charCodeAt(end + 1) === colon) {
        name = text.slice(position, end + 1)
        position = end + 2
      } else {
        add(position + 1, end)
        position = end + 1
      }
    } else if (isWord(char)) {
      const start = position
      while (position < text.length && isWord(text.charCodeAt(position))) position++
      add(start, position)
    } else position++
  }
  cut.shape += text.slice(from)
  return cut
}

/** The closing quote of a string, or the end of the text. */
function stringEnd(text: string, from: number): number {
  for (let position = from; ;) {
    const end = text.indexOf('"', position)
    if (end < 0) return text.length
    let slashes = 0
    while (end - 1 - slashes >= from && text.charCodeAt(end - 1 - slashes) === backslash) slashes++
    if (slashes % 2 === 0) return end
    position = end + 1
  }
}

/** Whether a character belongs to a number, or to true, false or null. */
function isWord(char: number): boolean {
  if (char >= 97) return char <= 122 // a to z
  if (char >= 48) return char <= 57 || char === 69 // digits, E
  return char === 43 || char === 45 || char === 46 // + - .
}
