/** Packs columns of numbers into one compressed blob, and unpacks only those that are asked for. */

/*
 * On disk, then compressed by zstd:
 *   u16 rows
 *   for each column: u8 width, f64 base, then rows * width bytes
 * width 0: every value is the base. 1, 2, 4: unsigned little-endian integers to be added to the base. 8: the doubles
 * themselves. Typed arrays are little-endian on every machine Bun runs on.
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
    if (width > 0) out.set(bytesOf(column, rows, base, width), at)
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
    if (value > high) high = value
    whole &&= Number.isSafeInteger(value)
  }
  if (!whole || high - low >= fourGib) return { base: 0, width: 8 }
  const span = high - low
  return { base: low, width: span === 0 ? 0 : span < 256 ? 1 : span < 65_536 ? 2 : 4 }
}

function bytesOf(column: Float64Array, rows: number, base: number, width: number): Uint8Array {
  if (width === 8) return new Uint8Array(column.buffer, column.byteOffset, rows * 8)
  const packed =
    width === 1 ? new Uint8Array(rows) : width === 2 ? new Uint16Array(rows) : new Uint32Array(rows)
  for (let row = 0; row < rows; row++) packed[row] = column[row]! - base
  return new Uint8Array(packed.buffer)
}

export interface PackedColumns {
  rows: number
  /** The values of one column; the array may be shared, so it is not to be written. */
  column(index: number): Float64Array
}

export function openColumns(blob: Uint8Array, count: number): PackedColumns {
  const raw = Bun.zstdDecompressSync(blob as Uint8Array<ArrayBuffer>)
  const view = new DataView(raw.buffer, raw.byteOffset, raw.byteLength)
  const rows = view.getUint16(0, true)
  const starts = new Array<number>(count)
  let at = 2
  for (let index = 0; index < count; index++) {
    starts[index] = at
    at += headBytes + rows * raw[at]!
  }
  const opened = new Array<Float64Array | undefined>(count)
  return { rows, column: (index) => (opened[index] ??= unpack(raw, view, starts[index]!, rows)) }
}

function unpack(raw: Uint8Array, view: DataView, start: number, rows: number): Float64Array {
  const width = raw[start]!
  const base = view.getFloat64(start + 1, true)
  const values = new Float64Array(rows)
  let at = start + headBytes
  if (width === 0) return values.fill(base)
  if (width === 1) for (let row = 0; row < rows; row++) values[row] = base + raw[at++]!
  else if (width === 2)
    for (let row = 0; row < rows; row++, at += 2) values[row] = base + view.getUint16(at, true)
  else if (width === 4)
    for (let row = 0; row < rows; row++, at += 4) values[row] = base + view.getUint32(at, true)
  else for (let row = 0; row < rows; row++, at += 8) values[row] = view.getFloat64(at, true)
  return values
}
