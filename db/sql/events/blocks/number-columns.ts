/** Packs columns of numbers into one compressed blob, and unpacks only the columns that are read. */

/*
 * On disk, then compressed by zstd:
 *   u16 rows
 *   for each column: u8 width, f64 base, then rows * width bytes
 * width 0: every value is the base. 1, 2, 4: unsigned little-endian integers, added to the base. 8: the doubles
 * themselves. Typed arrays are little-endian on every machine that Bun supports.
 */
const headBytes = 9
const fourGib = 2 ** 32

export function packColumns(columns: readonly Float64Array[], rows: number): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(2 + columns.length * (headBytes + rows * 8))
  const view = new DataView(out.buffer)
  view.setUint16(0, rows, true)
  let at = 2
  for (const column of columns) {
    const { base, width } = shape(column, rows)
    out[at] = width
    view.setFloat64(at + 1, base, true)
    at += headBytes
    if (width > 0) packValues(out, at, column, rows, base, width)
    at += rows * width
  }
  return Bun.zstdCompressSync(out.subarray(0, at), { level: 1 }) as Uint8Array<ArrayBuffer>
}

function shape(column: Float64Array, rows: number): { base: number; width: number } {
  let low = column[0]!
  let high = low
  let whole = true
  for (let row = 0; row < rows; row++) {
    const value = column[row]!
    if (value < low) low = value
    else if (value > high) high = value
    if (value !== Math.floor(value)) whole = false
  }
  if (low === high) return { base: low, width: 0 }
  const span = high - low
  if (!whole || span >= fourGib || !Number.isSafeInteger(low) || !Number.isSafeInteger(high)) {
    return { base: 0, width: 8 }
  }
  return { base: low, width: span < 256 ? 1 : span < 65_536 ? 2 : 4 }
}

function packValues(
  out: Uint8Array,
  start: number,
  column: Float64Array,
  rows: number,
  base: number,
  width: number,
): void {
  if (width === 8) {
    out.set(new Uint8Array(column.buffer, column.byteOffset, rows * 8), start)
    return
  }
  let at = start
  for (let row = 0; row < rows; row++) {
    const value = column[row]! - base
    out[at++] = value
    if (width === 1) continue
    out[at++] = value >>> 8
    if (width === 2) continue
    out[at++] = value >>> 16
    out[at++] = value >>> 24
  }
}

export interface PackedColumns {
  rows: number
  /** The values of one column. Read only, because the array may be shared. */
  column(index: number): Float64Array
  /** One value, read in place: a filter reads too few values of most columns to unpack them. */
  value(index: number, row: number): number
  /** Whether any row has the value, usually answered without reading the rows. */
  holds(index: number, value: number): boolean
}

export function inflateColumns(blob: Uint8Array): Uint8Array {
  return Bun.zstdDecompressSync(blob as Uint8Array<ArrayBuffer>)
}

/** The offset of a column that was added after the blob was written: all its values are 0. */
const absent = -1

/** Of an inflated blob, which must not change afterwards. */
export function openColumns(raw: Uint8Array, count: number): PackedColumns {
  const rows = raw[0]! | (raw[1]! << 8)
  const starts = new Array<number>(count)
  let at = 2
  for (let index = 0; index < count; index++) {
    starts[index] = at < raw.length ? at : absent
    if (at < raw.length) at += headBytes + rows * raw[at]!
  }
  const opened = new Array<Float64Array | undefined>(count)
  // A view of inflated bytes takes longer than to unpack a column, and most blocks need none.
  let view: DataView | null = null
  const viewed = (): DataView => (view ??= new DataView(raw.buffer, raw.byteOffset, raw.byteLength))
  return {
    rows,
    column: (index) => (opened[index] ??= unpack(raw, starts[index]!, rows)),
    value: (index, row) => opened[index]?.[row] ?? valueAt(viewed(), starts[index]!, row),
    holds: (index, value) => holdsValue(raw, starts[index]!, rows, value),
  }
}

/** Raises the values of one column in an inflated blob to at least `floor`. */
export function raiseColumn(raw: Uint8Array, index: number, floor: number): void {
  const view = new DataView(raw.buffer, raw.byteOffset, raw.byteLength)
  const rows = view.getUint16(0, true)
  let start = 2
  for (let before = 0; before < index; before++) start += headBytes + rows * raw[start]!
  const width = raw[start]!
  const base = view.getFloat64(start + 1, true)
  if (width > 0 && width < 8 && base >= floor) return
  const values = unpack(raw, start, rows).map((value) => Math.max(value, floor))
  // The distance to a greater base is smaller, so each value fits the same width.
  if (width < 8) view.setFloat64(start + 1, Math.max(base, floor), true)
  if (width > 0) packValues(raw, start + headBytes, values, rows, width === 8 ? 0 : floor, width)
}

function holdsValue(raw: Uint8Array, start: number, rows: number, value: number): boolean {
  if (start === absent) return value === 0
  const width = raw[start]!
  const base = doubleAt(raw, start + 1)
  if (width === 0) return value === base // compared, not subtracted: the base may be infinite
  const offset = value - base
  if (width < 8 && (offset < 0 || offset >= 256 ** width)) return false
  const first = start + headBytes
  if (width === 1) {
    const at = raw.indexOf(offset, first)
    return at >= 0 && at < first + rows
  }
  return unpack(raw, start, rows).includes(value)
}

function valueAt(view: DataView, start: number, row: number): number {
  if (start === absent) return 0
  const width = view.getUint8(start)
  const base = view.getFloat64(start + 1, true)
  const at = start + headBytes + row * width
  if (width === 0) return base
  if (width === 1) return base + view.getUint8(at)
  if (width === 2) return base + view.getUint16(at, true)
  return width === 4 ? base + view.getUint32(at, true) : view.getFloat64(at, true)
}

const doubleBytes = new Uint8Array(8)
/** Little-endian, as all machines are that Bun runs on. */
const double = new Float64Array(doubleBytes.buffer)

function doubleAt(raw: Uint8Array, at: number): number {
  for (let byte = 0; byte < 8; byte++) doubleBytes[byte] = raw[at + byte]!
  return double[0]!
}

function unpack(raw: Uint8Array, start: number, rows: number): Float64Array {
  if (start === absent) return new Float64Array(rows)
  const width = raw[start]!
  const base = doubleAt(raw, start + 1)
  const values = new Float64Array(rows)
  let at = start + headBytes
  if (width === 0) return values.fill(base)
  // A loop for each width: one that asks for it in every row takes twice as long.
  if (width === 1) for (let row = 0; row < rows; row++) values[row] = base + raw[at + row]!
  else if (width === 2)
    for (let row = 0; row < rows; row++, at += 2) values[row] = base + (raw[at]! | (raw[at + 1]! << 8))
  else if (width === 4)
    for (let row = 0; row < rows; row++, at += 4) {
      const low = raw[at]! | (raw[at + 1]! << 8) | (raw[at + 2]! << 16)
      values[row] = base + (low + raw[at + 3]! * 2 ** 24)
    }
  else for (let row = 0; row < rows; row++, at += 8) values[row] = doubleAt(raw, at)
  return values
}
