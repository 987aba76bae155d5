/**
 * Reads the texts of one column of a Parquet file page by page. Every size and count of the file is checked before
 * memory is taken for it, because a few bytes can claim gigabytes.
 */
import { snappyUncompress, type AsyncBuffer, type ColumnMetaData, type PageHeader } from 'hyparquet'
import { parquetHeader } from 'hyparquet/src/column.js'
import { deltaBinaryUnpack } from 'hyparquet/src/delta.js'
import { gunzipSync, zstdDecompressSync } from 'node:zlib'
import { limits } from '../limits.ts'

/** Ours have at most 1 MiB and one event. DuckDB writes up to 100 MB. */
const pageBytesMax = 128 * 1024 * 1024
const pageValuesMax = 4 * 1024 * 1024
/** Smaller ones may share the memory of others. */
const releasedBytesMin = 1024 * 1024
/** A header may have the smallest and the largest value of its page. */
const headerBytes = [16 * 1024, 4 * 1024 * 1024]

const notTexts = 'it has values that are not strings'

/** `isOptional`: the column may have missing values, which are refused like anything else that is no text. */
export async function* columnTexts(
  file: AsyncBuffer,
  chunk: ColumnMetaData,
  isOptional: boolean,
): AsyncGenerator<string> {
  if (chunk.type !== 'BYTE_ARRAY') throw new Error(notTexts)
  const { start, end } = rangeOf(chunk, file.byteLength)
  let dictionary = dictionaryOf(noBytes, 0)
  let remainingValues = Number(chunk.num_values)
  for (let offset = start; remainingValues > 0;) {
    if (offset >= end) throw new Error('it ends before its last value')
    const { header, length } = await headerAt(file, offset, end)
    const { compressed_page_size: size } = header
    requireSize('a page', size)
    requireSize('a page', header.uncompressed_page_size)
    if (offset + length + size > end) throw new Error('a page is larger than its column')
    const packed = new Uint8Array(await file.slice(offset + length, offset + length + size))
    offset += length + size
    if (header.type === 'DICTIONARY_PAGE') {
      const count = requireCount(header.dictionary_page_header?.num_values)
      dictionary = dictionaryOf(unpacked(packed, header.uncompressed_page_size, chunk), count)
      continue
    }
    const page =
      header.type === 'DATA_PAGE_V2' ? pageV2(header, packed, chunk) : pageV1(header, packed, chunk)
    if (isOptional) requireAll(page)
    for (const bytes of valuesOf(page, dictionary)) yield textOf(bytes)
    release(page.bytes)
    remainingValues -= page.count
  }
}

/** A large page that was read returns its memory now: many more may be read before garbage is collected. */
function release({ buffer }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength >= releasedBytesMin) buffer.transfer(0)
}

function rangeOf(chunk: ColumnMetaData, fileBytes: number): { start: number; end: number } {
  const data = Number(chunk.data_page_offset)
  const dictionary = Number(chunk.dictionary_page_offset ?? 0)
  const start = dictionary > 0 ? Math.min(data, dictionary) : data
  const end = start + Number(chunk.total_compressed_size)
  if (!(start >= 0 && end <= fileBytes)) throw new Error('a column lies outside of the file')
  return { start, end }
}

async function headerAt(
  file: AsyncBuffer,
  offset: number,
  end: number,
): Promise<{ header: PageHeader; length: number }> {
  for (const bytes of headerBytes) {
    const view = new DataView(await file.slice(offset, Math.min(end, offset + bytes)))
    const reader = { view, offset: 0 }
    try {
      return { header: parquetHeader(reader), length: reader.offset }
    } catch (error) {
      if (view.byteLength < bytes || bytes === headerBytes.at(-1)) throw error
    }
  }
  throw new Error('a page has no header')
}

function requireSize(label: string, bytes: number): void {
  if (!Number.isInteger(bytes) || bytes < 0) throw new Error(`${label} has no size`)
  if (bytes > pageBytesMax) throw new Error(`${label} is larger than ${pageBytesMax / 1024 / 1024} MiB`)
}

function requireCount(count: number | undefined): number {
  if (count === undefined || !Number.isInteger(count) || count < 0)
    throw new Error('a page has no number of values')
  if (count > pageValuesMax) throw new Error(`a page has more than ${pageValuesMax} values`)
  return count
}

function unpacked(packed: Uint8Array, length: number, { codec }: ColumnMetaData): Uint8Array {
  const bytes = decompressed(packed, length, codec)
  if (bytes.length !== length) throw new Error('the length of a page differs from its header')
  return bytes
}

function decompressed(packed: Uint8Array, length: number, codec: ColumnMetaData['codec']): Uint8Array {
  // One buffer, with a byte of room to notice a longer page. Pieces of 16 KiB, the default, would await a collection.
  const zlibOptions = { maxOutputLength: Math.max(1, length), chunkSize: Math.max(64, length + 1) }
  if (codec === 'UNCOMPRESSED') return packed
  if (codec === 'ZSTD') return zstdDecompressSync(packed, zlibOptions)
  if (codec === 'GZIP') return gunzipSync(packed, zlibOptions)
  if (codec !== 'SNAPPY') throw new Error(`its compression ${codec} is not supported`)
  const output = new Uint8Array(length)
  snappyUncompress(packed, output)
  return output
}

/** A page of data: where its values begin, and its levels, which say which values are there. */
interface Page {
  count: number
  encoding: string
  levels: Uint8Array | null // of an optional column; null: at the start of the bytes
  bytes: Uint8Array
}

function pageV1(header: PageHeader, packed: Uint8Array, chunk: ColumnMetaData): Page {
  const { data_page_header: pageHeader } = header
  if (header.type !== 'DATA_PAGE' || pageHeader === undefined)
    throw new Error(`it has a page of the kind ${header.type}`)
  const bytes = unpacked(packed, header.uncompressed_page_size, chunk)
  return { count: requireCount(pageHeader.num_values), encoding: pageHeader.encoding, levels: null, bytes }
}

const noBytes = new Uint8Array(0)

function pageV2(header: PageHeader, packed: Uint8Array, chunk: ColumnMetaData): Page {
  const { data_page_header_v2: pageHeader } = header
  if (pageHeader === undefined) throw new Error('a page has no header')
  const length = pageHeader.definition_levels_byte_length
  if (pageHeader.repetition_levels_byte_length !== 0) throw new Error(notTexts)
  if (!(length >= 0 && length <= Math.min(packed.length, header.uncompressed_page_size)))
    throw new Error('the levels of a page are larger than the page')
  const content = packed.subarray(length)
  const isPacked = pageHeader.is_compressed !== false
  const bytes = isPacked ? unpacked(content, header.uncompressed_page_size - length, chunk) : content
  const levels = length === 0 && pageHeader.num_nulls === 0 ? allThere : packed.subarray(0, length)
  return { count: requireCount(pageHeader.num_values), encoding: pageHeader.encoding, levels, bytes }
}

/** Definition levels of a page without missing values: one run, longer than any page. */
const allThere = Uint8Array.of(0xfe, 0xff, 0xff, 0xff, 0x0f, 1)

/** Cuts the levels off the bytes of a page of the first version, and refuses missing values. */
function requireAll(page: Page): void {
  if (page.levels === null) {
    const length = uint32(page.bytes, 0)
    if (4 + length > page.bytes.length) throw new Error('the levels of a page are larger than the page')
    page.levels = page.bytes.subarray(4, 4 + length)
    page.bytes = page.bytes.subarray(4 + length)
  }
  if (codesOf(page.levels, 0, 1, page.count).includes(0)) throw new Error(notTexts)
}

function* valuesOf({ bytes, count, encoding }: Page, dictionary: Dictionary): Generator<Uint8Array> {
  if (encoding === 'PLAIN') yield* plainValues(bytes, count)
  else if (encoding === 'RLE_DICTIONARY' || encoding === 'PLAIN_DICTIONARY') {
    for (const code of codesOf(bytes, 1, bytes[0] ?? 0, count)) {
      if (code >= dictionary.count) throw new Error('a value is not in the dictionary of its column')
      yield dictionary.bytes.subarray(dictionary.starts[code]!, dictionary.ends[code]!)
    }
  } else if (encoding === 'DELTA_LENGTH_BYTE_ARRAY') {
    const reader = { view: viewOf(bytes), offset: 0 }
    yield* cut(bytes, deltas(reader, count), reader)
  } else if (encoding === 'DELTA_BYTE_ARRAY') {
    const reader = { view: viewOf(bytes), offset: 0 }
    const prefixes = deltas(reader, count)
    const suffixes = deltas(reader, count)
    let previousValue: Uint8Array = noBytes
    let row = 0
    for (const suffix of cut(bytes, suffixes, reader)) {
      const prefix = prefixes[row++]!
      if (prefix < 0 || prefix > previousValue.length)
        throw new Error('a value shares a longer prefix than the previous value has')
      previousValue = prefix === 0 ? suffix : Buffer.concat([previousValue.subarray(0, prefix), suffix])
      yield previousValue
    }
  } else throw new Error(`its encoding ${encoding} is not supported`)
}

type Reader = { view: DataView; offset: number }

const viewOf = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)

function uint32(bytes: Uint8Array, offset: number): number {
  if (offset + 4 > bytes.length) throw new Error('a page ends before its last value')
  return (
    (bytes[offset]! | (bytes[offset + 1]! << 8) | (bytes[offset + 2]! << 16) | (bytes[offset + 3]! << 24)) >>>
    0
  )
}

function* plainValues(bytes: Uint8Array, count: number): Generator<Uint8Array> {
  for (let offset = 0, row = 0; row < count; row++) {
    const length = uint32(bytes, offset)
    offset += 4 + length
    if (offset > bytes.length) throw new Error('a page ends before its last value')
    yield bytes.subarray(offset - length, offset)
  }
}

interface Dictionary {
  bytes: Uint8Array
  count: number
  starts: Uint32Array
  ends: Uint32Array
}

function dictionaryOf(bytes: Uint8Array, count: number): Dictionary {
  // Each value takes four bytes or more.
  if (4 * count > bytes.length) throw new Error('a page ends before its last value')
  const starts = new Uint32Array(count)
  const ends = new Uint32Array(count)
  let row = 0
  for (const value of plainValues(bytes, count)) {
    starts[row] = value.byteOffset - bytes.byteOffset
    ends[row++] = value.byteOffset - bytes.byteOffset + value.length
  }
  return { bytes, count, starts, ends }
}

function deltas(reader: Reader, count: number): Int32Array {
  const values = new Int32Array(count)
  if (count > 0) deltaBinaryUnpack(reader, count, values)
  return values
}

function* cut(bytes: Uint8Array, lengths: Int32Array, reader: Reader): Generator<Uint8Array> {
  let offset = reader.offset
  for (const length of lengths) {
    if (length < 0 || offset + length > bytes.length) throw new Error('a page ends before its last value')
    offset += length
    yield bytes.subarray(offset - length, offset)
  }
}

/** Numbers of `width` bits in runs: of one value, or of groups of eight values. Later ones than `count` are ignored. */
function codesOf(bytes: Uint8Array, from: number, width: number, count: number): Uint32Array {
  if (width > 31) throw new Error('a page has codes of more than 31 bits')
  const codes = new Uint32Array(count)
  if (width === 0) return codes
  let position = from
  for (let row = 0; row < count;) {
    let header = 0
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[position++]
      if (byte === undefined || shift > 28) throw new Error('a page ends before its last value')
      header += (byte & 0x7f) * 2 ** shift
      if (byte < 0x80) break
    }
    const end = Math.min(count, row + (header % 2 === 0 ? header / 2 : ((header - 1) / 2) * 8))
    if (header % 2 === 0) {
      codes.fill(bitsAt(bytes, position, 0, width), row, end)
      position += Math.ceil(width / 8)
    } else {
      for (let bit = 0, code = row; code < end; code++, bit += width)
        codes[code] = bitsAt(bytes, position, bit, width)
      position += ((header - 1) / 2) * width
    }
    row = end
  }
  return codes
}

function bitsAt(bytes: Uint8Array, from: number, bit: number, width: number): number {
  let value = 0
  for (let read = 0; read < width;) {
    const byte = bytes[from + Math.floor((bit + read) / 8)]
    if (byte === undefined) throw new Error('a page ends before its last value')
    const offset = (bit + read) % 8
    const bitCount = Math.min(8 - offset, width - read)
    value += ((byte >>> offset) & ((1 << bitCount) - 1)) * 2 ** read
    read += bitCount
  }
  return value
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function textOf(bytes: Uint8Array): string {
  // The same as for a line of NDJSON.
  if (bytes.length > limits.bodyBytesMax) throw new Error('an event is larger than a request may be')
  try {
    return decoder.decode(bytes)
  } catch {
    throw new Error(notTexts)
  }
}
