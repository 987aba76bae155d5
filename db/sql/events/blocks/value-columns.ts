/** Encodes the values of one member in a block's texts, for `text-columns.ts`. Every value comes back as it was. */
import { dayMs } from '../../../contract/units.ts'

/** A value per row that has the member. What is text is stored with all other texts of the block. */
interface ValueColumn {
  kind: number
  bytes: Uint8Array
  texts: string[]
}

/*
 *   constant  text: the value
 *   coded     u8 values - 1, then a code per row; texts: the values by code
 *   plain     texts: the values' common beginning, then the rest of each
 *   integer   u8 width, u8 1 if the numbers are distances to the row before, then a plane per byte of the width;
 *             texts: the lowest number, and for distances the first value
 *   time      as integer, of times as Date.toISOString writes them
 *   numbered  texts: the values' common beginning, then as integer, of what follows it
 *   listed    u8 values - 1, then a code per row, then the values by code as another column
 */
const constant = 0
const coded = 1
const plain = 2
const integer = 3
const time = 4
const numbered = 5
const listed = 6

/** So few values take less room as codes, even when they are numbers. */
const codedMin = 32

export function packValues(values: readonly string[]): ValueColumn {
  const distinct = new Map<string, number>()
  for (const value of values) if (!distinct.has(value)) distinct.set(value, distinct.size)
  if (distinct.size === 1) return { kind: constant, bytes: new Uint8Array(0), texts: [values[0]!] }
  const numbers = distinct.size > codedMin ? numbersOf(values) : null
  if (numbers !== null) return numbers
  if (distinct.size * 4 > values.length * 3) return packNumbered(values) ?? packPlain(values)
  const codes = Uint8Array.of(distinct.size - 1, ...values.map((value) => distinct.get(value)!))
  const list = distinct.size < listedMin ? null : packNumbered([...distinct.keys()])
  if (list === null) return { kind: coded, bytes: codes, texts: [...distinct.keys()] }
  return {
    kind: listed,
    bytes: Buffer.concat([codes, Uint8Array.of(list.kind), list.bytes]),
    texts: list.texts,
  }
}

/** Fewer values take as little room as texts. */
const listedMin = 6

/** Null when what follows the common beginning is not a number in each value. */
function packNumbered(values: readonly string[]): ValueColumn | null {
  const common = commonOf(values).replace(/\d+$/, '')
  const ends = values.map((value) => value.slice(common.length))
  if (!ends.every((end) => integerText.test(end))) return null
  const numbers = packNumbers(numbered, ends.map(Number))
  return numbers && { ...numbers, texts: [common, ...numbers.texts] }
}

function commonOf(values: readonly string[]): string {
  const [first = ''] = values
  let { length } = first
  for (const value of values) {
    let position = 0
    while (position < length && value.charCodeAt(position) === first.charCodeAt(position)) position++
    length = position
  }
  return first.slice(0, length)
}

function packPlain(values: readonly string[]): ValueColumn {
  let common = commonOf(values)
  if (!common.isWellFormed()) common = common.slice(0, -1) // not between the halves of a character
  return {
    kind: plain,
    bytes: new Uint8Array(0),
    texts: [common, ...values.map((value) => value.slice(common.length))],
  }
}

const integerText = /^(?:0|-?[1-9]\d{0,14})$/
const timeText = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

/** Null when not all are integers or times that come back as they are, or when they span too much. */
function numbersOf(values: readonly string[]): ValueColumn | null {
  if (values.every((value) => integerText.test(value))) return packNumbers(integer, values.map(Number))
  if (!values.every((value) => timeText.test(value))) return null
  const times = values.map((value) => Date.parse(value))
  const isExact = times.every((ms, row) => !Number.isNaN(ms) && new Date(ms).toISOString() === values[row])
  return isExact ? packNumbers(time, times) : null
}

function packNumbers(kind: number, values: readonly number[]): ValueColumn | null {
  const distances = values.map((value, row) => (row === 0 ? 0 : value - values[row - 1]!))
  const isDistance = new Set(distances).size < new Set(values).size
  const numbers = isDistance ? distances : values
  const low = numbers.reduce((lowest, value) => Math.min(lowest, value))
  const span = numbers.reduce((highest, value) => Math.max(highest, value)) - low
  if (span >= 2 ** 32) return null
  const width = span === 0 ? 0 : Math.floor(Math.log2(span) / 8) + 1
  const bytes = new Uint8Array(2 + width * numbers.length)
  bytes[0] = width
  bytes[1] = isDistance ? 1 : 0
  for (let plane = 0, offset = 2; plane < width; plane++)
    for (const number of numbers) bytes[offset++] = Math.floor((number - low) / 256 ** plane)
  return { kind, bytes, texts: isDistance ? [String(low), String(values[0])] : [String(low)] }
}

/** Where a block's columns are read: bytes and texts in the order in which they were written. */
export interface ColumnSource {
  bytes: Uint8Array
  at: number
  texts: string[]
  text: number
}

interface OpenValues {
  /** The value of the n-th row that has the member. */
  at(row: number): string
  /** The values that may hold a text in upper case, and that the block's texts do not have as they are. */
  others(upper: string): string[]
}

const noOthers = (): string[] => []

/** Reads the next column, of so many rows. */
export function openValues(source: ColumnSource, rows: number): OpenValues {
  const kind = source.bytes[source.at++]!
  const { texts, text } = source
  if (kind === constant) {
    source.text++
    const value = texts[text]!
    return { at: () => value, others: noOthers }
  }
  if (kind === plain) {
    source.text += rows + 1
    const common = texts[text]!
    const textAt = (row: number): string => common + texts[text + 1 + row]!
    return { at: textAt, others: common === '' ? noOthers : () => allOf(textAt, rows) }
  }
  if (kind === coded) {
    const { bytes, at: offset } = source
    source.text += bytes[offset]! + 1
    source.at += 1 + rows
    const valueAt = (row: number): string => texts[text + bytes[offset + 1 + row]!]!
    return { at: valueAt, others: noOthers }
  }
  if (kind === listed) {
    const { bytes, at: offset } = source
    source.at += 1 + rows
    const list = openValues(source, bytes[offset]! + 1)
    return { ...list, at: (row) => list.at(bytes[offset + 1 + row]!) }
  }
  if (kind === numbered) {
    source.text++
    const common = texts[text]!
    const number = openNumbers(source, rows, false)
    const textAt = (row: number): string => common + number(row)
    // The texts have the beginning.
    return { at: textAt, others: (upper) => (/\d$/.test(upper) ? allOf(textAt, rows) : []) }
  }
  if (kind !== integer && kind !== time) throw new Error(`a column of texts has the kind ${kind}`)
  const numberTextAt = openNumbers(source, rows, kind === time)
  const mayHold = kind === time ? /^[-.:\dTZ]*$/ : /^[-\d]*$/
  return { at: numberTextAt, others: (upper) => (mayHold.test(upper) ? allOf(numberTextAt, rows) : []) }
}

const allOf = (textAt: (row: number) => string, rows: number): string[] =>
  Array.from({ length: rows }, (_, row) => textAt(row))

function openNumbers(source: ColumnSource, rows: number, isTime: boolean): (row: number) => string {
  const { bytes, at: offset, texts, text } = source
  const width = bytes[offset]!
  const isDistance = bytes[offset + 1] === 1
  source.at += 2 + width * rows
  source.text += isDistance ? 2 : 1
  let numbers: Float64Array | null = null
  const read = (): Float64Array => {
    const read = new Float64Array(rows).fill(Number(texts[text]!))
    for (let plane = 0, from = offset + 2; plane < width; plane++)
      for (let row = 0; row < rows; row++) read[row]! += bytes[from++]! * 256 ** plane
    if (!isDistance) return read
    read[0] = Number(texts[text + 1]!)
    for (let row = 1; row < rows; row++) read[row]! += read[row - 1]!
    return read
  }
  return (row) => {
    const number = (numbers ??= read())[row]!
    return isTime ? isoTime(number) : String(number)
  }
}

const hundred = Array.from({ length: 100 }, (_, n) => String(n).padStart(2, '0'))
let cachedDay = { day: NaN, text: '' }

/** As Date.toISOString, but quicker, because times of a block are mostly of one day. */
function isoTime(ms: number): string {
  const day = Math.floor(ms / dayMs)
  if (day !== cachedDay.day) cachedDay = { day, text: new Date(day * dayMs).toISOString().slice(0, -13) }
  const msOfDay = ms - day * dayMs
  const hours = Math.floor(msOfDay / 3_600_000)
  const minutes = Math.floor(msOfDay / 60_000) % 60
  const seconds = `${hundred[Math.floor(msOfDay / 1_000) % 60]}.${String(msOfDay % 1_000).padStart(3, '0')}`
  return `${cachedDay.text}${hundred[hours]}:${hundred[minutes]}:${seconds}Z`
}
