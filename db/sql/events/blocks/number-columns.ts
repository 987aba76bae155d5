/** Packs columns of numbers into one compressed blob, and unpacks only the columns that are read. */

/*
 * On disk, then compressed by zstd:
 *   u16 rows
 *   for each column: u8 width, f64 base, then rows * width bytes
 * width 0: every value is the base. 1, 2, 4: unsigned little-endian integers, added to the base. 8: the doubles
 * themselves. Typed arrays are little-endian on every machine that Bun supports. In sealed blocks a column may have
 * another form, and its kind in place of the width. The lower four bits of a kind are a width. Numbers are in planes:
 * the lowest byte of each row, then the next byte of each.
 *   planes     distances to the base; of width 8 the bytes of doubles
 *   distances  f64 the first value, then distances to the value before, less the base, which is the lowest one
 *   coded      u8 values - 1, the values as planes, less the base; then a code per row
 */
const headBytes = 9
const fourGib = 2 ** 32

export function packColumns(columns: readonly Float64Array[], rows: number): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(2 + columns.length * (headBytes + rows * 8))
  const view = new DataView(out.buffer)
  view.setUint16(0, rows, true)
  let offset = 2
  for (const column of columns) {
    const { base, width } = shape(column, rows)
    out[offset] = width
    view.setFloat64(offset + 1, base, true)
    offset += headBytes
    if (width > 0) packValues(out, offset, column, rows, base, width)
    offset += rows * width
  }
  return Bun.zstdCompressSync(out.subarray(0, offset), { level: 1 }) as Uint8Array<ArrayBuffer>
}

const sealedLevel = 9

/** Takes longer and less room. */
export function packSealed(columns: readonly Float64Array[], rows: number): Uint8Array<ArrayBuffer> {
  const parts = columns.flatMap((column) => {
    const plain = plainColumn(column, rows)
    // A byte per row or less compresses well as it is.
    if (plain.bytes.length <= rows) return [head(plain), plain.bytes]
    const forms = [plain, ...denseForms(column.subarray(0, rows))]
    const sizes = forms.map(({ bytes }) => Bun.zstdCompressSync(bytes as Uint8Array<ArrayBuffer>).length)
    const best = forms[sizes.indexOf(Math.min(...sizes))]!
    return [head(best), best.bytes]
  })
  const raw = Buffer.concat([new Uint8Array(Uint16Array.of(rows).buffer), ...parts])
  return Bun.zstdCompressSync(raw, { level: sealedLevel }) as Uint8Array<ArrayBuffer>
}

function plainColumn(column: Float64Array, rows: number) {
  const { base, width } = shape(column, rows)
  const bytes = new Uint8Array(rows * width)
  if (width > 0) packValues(bytes, 0, column, rows, base, width)
  return { kind: width, base, bytes }
}

function head({ kind, base }: { kind: number; base: number }): Uint8Array {
  const bytes = new Uint8Array(headBytes)
  bytes[0] = kind
  new DataView(bytes.buffer).setFloat64(1, base, true)
  return bytes
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
  let offset = start
  for (let row = 0; row < rows; row++) {
    const value = column[row]! - base
    out[offset++] = value
    if (width === 1) continue
    out[offset++] = value >>> 8
    if (width === 2) continue
    out[offset++] = value >>> 16
    out[offset++] = value >>> 24
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
  let offset = 2
  for (let index = 0; index < count; index++) {
    starts[index] = offset < raw.length ? offset : absent
    if (offset < raw.length) offset += columnBytes(raw, offset, rows)
  }
  const opened = new Array<Float64Array | undefined>(count)
  // A view of inflated bytes takes longer than to unpack a column, and most blocks need none.
  let view: DataView | null = null
  const viewed = (): DataView => (view ??= new DataView(raw.buffer, raw.byteOffset, raw.byteLength))
  return {
    rows,
    column: (index) => (opened[index] ??= unpack(raw, starts[index]!, rows)),
    value(index, row) {
      const openedColumn = opened[index]
      if (openedColumn !== undefined) return openedColumn[row]!
      const start = starts[index]!
      if (start === absent || !isDense(raw[start]!)) return valueAt(viewed(), start, row)
      return (opened[index] = unpack(raw, start, rows))[row]!
    },
    holds: (index, value) => holdsValue(raw, starts[index]!, rows, value),
  }
}

function columnBytes(raw: Uint8Array, offset: number, rows: number): number {
  const kind = raw[offset]!
  return headBytes + (isDense(kind) ? denseBytes(raw, kind, offset + headBytes, rows) : rows * kind)
}

/** Raises the values of one column in an inflated blob to at least `floor`. */
export function raiseColumn(raw: Uint8Array, index: number, floor: number): void {
  const view = new DataView(raw.buffer, raw.byteOffset, raw.byteLength)
  const rows = view.getUint16(0, true)
  let start = 2
  for (let columnIndex = 0; columnIndex < index; columnIndex++) start += columnBytes(raw, start, rows)
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
  if (isDense(width)) return unpack(raw, start, rows).includes(value)
  const offset = value - base
  if (width < 8 && (offset < 0 || offset >= 256 ** width)) return false
  const first = start + headBytes
  if (width === 1) {
    const valueIndex = raw.indexOf(offset, first)
    return valueIndex >= 0 && valueIndex < first + rows
  }
  return unpack(raw, start, rows).includes(value)
}

function valueAt(view: DataView, start: number, row: number): number {
  if (start === absent) return 0
  const width = view.getUint8(start)
  const base = view.getFloat64(start + 1, true)
  const offset = start + headBytes + row * width
  if (width === 0) return base
  if (width === 1) return base + view.getUint8(offset)
  if (width === 2) return base + view.getUint16(offset, true)
  return width === 4 ? base + view.getUint32(offset, true) : view.getFloat64(offset, true)
}

const doubleBytes = new Uint8Array(8)
/** Little-endian, as all machines are that Bun runs on. */
const double = new Float64Array(doubleBytes.buffer)

function doubleAt(raw: Uint8Array, offset: number): number {
  for (let byte = 0; byte < 8; byte++) doubleBytes[byte] = raw[offset + byte]!
  return double[0]!
}

function unpack(raw: Uint8Array, start: number, rows: number): Float64Array {
  if (start === absent) return new Float64Array(rows)
  const width = raw[start]!
  const base = doubleAt(raw, start + 1)
  if (isDense(width)) return openDense(raw, { kind: width, base }, start + headBytes, rows)
  const values = new Float64Array(rows)
  let offset = start + headBytes
  if (width === 0) return values.fill(base)
  // A loop for each width: one that asks for it in every row takes twice as long.
  if (width === 1) for (let row = 0; row < rows; row++) values[row] = base + raw[offset + row]!
  else if (width === 2)
    for (let row = 0; row < rows; row++, offset += 2)
      values[row] = base + (raw[offset]! | (raw[offset + 1]! << 8))
  else if (width === 4)
    for (let row = 0; row < rows; row++, offset += 4) {
      const low = raw[offset]! | (raw[offset + 1]! << 8) | (raw[offset + 2]! << 16)
      values[row] = base + (low + raw[offset + 3]! * 2 ** 24)
    }
  else for (let row = 0; row < rows; row++, offset += 8) values[row] = doubleAt(raw, offset)
  return values
}

const planes = 0x10
const distances = 0x20
const coded = 0x30

const denseCodesMax = 256

/** A column of a sealed block. */
interface DenseColumn {
  kind: number
  base: number
  bytes: Uint8Array
}

/** The forms that may take less room than a plain one. */
function denseForms(column: Float64Array): DenseColumn[] {
  const forms = [planesOf(column), distancesOf(column), codedOf(column)]
  return forms.filter((form) => form !== null)
}

function planesOf(column: Float64Array): DenseColumn | null {
  const { base, width } = shapeOf(column)
  return width < 2 ? null : { kind: planes | width, base, bytes: planesFrom(column, base, width) }
}

function distancesOf(column: Float64Array): DenseColumn | null {
  if (shapeOf(column).width === 8) return null
  const [first = 0] = column
  const steps = column.map((value, row) => (row === 0 ? 0 : value - column[row - 1]!))
  steps[0] = steps[1] ?? 0 // not a value of its own
  const { base, width } = shapeOf(steps)
  if (width === 8) return null
  const bytes = Buffer.concat([new Uint8Array(Float64Array.of(first).buffer), planesFrom(steps, base, width)])
  return { kind: distances | width, base, bytes }
}

function codedOf(column: Float64Array): DenseColumn | null {
  const codes = new Map<number, number>()
  for (const value of column) if (!codes.has(value)) codes.set(value, codes.size)
  if (codes.size > denseCodesMax) return null
  const values = Float64Array.from(codes.keys())
  const { base, width } = shapeOf(values)
  const rows = Uint8Array.from(column, (value) => codes.get(value)!)
  const bytes = Buffer.concat([Uint8Array.of(codes.size - 1), planesFrom(values, base, width), rows])
  return { kind: coded | width, base, bytes }
}

/** The narrowest width of whole numbers above a base; 8 for anything else. */
function shapeOf(values: Float64Array): { base: number; width: number } {
  let low = Infinity
  let high = -Infinity
  let isWhole = true
  for (const value of values) {
    if (value < low) low = value
    if (value > high) high = value
    if (!Number.isSafeInteger(value) || Object.is(value, -0)) isWhole = false
  }
  const span = high - low
  if (!isWhole || !(span < fourGib)) return { base: 0, width: 8 }
  return { base: low, width: span === 0 ? 0 : span < 256 ? 1 : span < 65_536 ? 2 : 4 }
}

function planesFrom(values: Float64Array, base: number, width: number): Uint8Array {
  const { length } = values
  const bytes = new Uint8Array(width * length)
  if (width === 8) {
    const doubles = new Uint8Array(values.buffer, values.byteOffset, length * 8)
    for (let row = 0; row < length; row++)
      for (let plane = 0; plane < 8; plane++) bytes[plane * length + row] = doubles[row * 8 + plane]!
    return bytes
  }
  for (let plane = 0; plane < width; plane++)
    for (let row = 0; row < length; row++)
      bytes[plane * length + row] = Math.floor((values[row]! - base) / 256 ** plane)
  return bytes
}

function valuesFrom(
  raw: Uint8Array,
  offset: number,
  length: number,
  base: number,
  width: number,
): Float64Array {
  const values = new Float64Array(length)
  if (width === 8) {
    const doubles = new Uint8Array(values.buffer)
    for (let row = 0; row < length; row++)
      for (let plane = 0; plane < 8; plane++) doubles[row * 8 + plane] = raw[offset + plane * length + row]!
    return values
  }
  values.fill(base)
  for (let plane = 0, from = offset, times = 1; plane < width; plane++, times *= 256)
    for (let row = 0; row < length; row++) values[row]! += raw[from++]! * times
  return values
}

function isDense(kind: number): boolean {
  return kind >= planes
}

/** The bytes of a column after its base. */
function denseBytes(raw: Uint8Array, kind: number, offset: number, rows: number): number {
  const width = kind & 0x0f
  if (kind < distances) return width * rows
  if (kind < coded) return 8 + width * rows
  return 1 + (raw[offset]! + 1) * width + rows
}

/** The values of a column whose bytes begin at `offset`. */
function openDense(
  raw: Uint8Array,
  { kind, base }: Pick<DenseColumn, 'kind' | 'base'>,
  offset: number,
  rows: number,
): Float64Array {
  const width = kind & 0x0f
  if (kind < distances) return valuesFrom(raw, offset, rows, base, width)
  if (kind < coded) {
    const steps = valuesFrom(raw, offset + 8, rows, base, width)
    steps[0] = valuesFrom(raw, offset, 1, 0, 8)[0]!
    for (let row = 1; row < rows; row++) steps[row]! += steps[row - 1]!
    return steps
  }
  const values = valuesFrom(raw, offset + 1, raw[offset]! + 1, base, width)
  const codes = offset + 1 + values.length * width
  const column = new Float64Array(rows)
  for (let row = 0; row < rows; row++) column[row] = values[raw[codes + row]!]!
  return column
}
