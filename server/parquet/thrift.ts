/** Writes the compact protocol of Thrift, in which the headers and the footer of a Parquet file are encoded. */

export type ThriftField =
  | { bool: boolean }
  | { i16: number }
  | { i32: number }
  | { i64: number }
  | { text: string | Uint8Array }
  | { struct: ThriftStruct }
  | { list: ThriftField[] } // of one type; an empty one is a list of structs

/** By field number, ascending; undefined fields are left out. */
export type ThriftStruct = readonly (readonly [number: number, value: ThriftField | undefined])[]

const typeNumbers = { bool: 1, i16: 4, i32: 5, i64: 6, text: 8, list: 9, struct: 12 } as const
const boolFalse = 2

type Kind = keyof typeof typeNumbers

export function thriftBytes(struct: ThriftStruct): Uint8Array {
  const bytes: number[] = []
  writeStruct(bytes, struct)
  return Uint8Array.from(bytes)
}

function writeStruct(out: number[], struct: ThriftStruct): void {
  let previousNumber = 0
  for (const [number, field] of struct) {
    if (field === undefined) continue
    const type = 'bool' in field && !field.bool ? boolFalse : typeNumbers[kindOf(field)]
    const step = number - previousNumber
    if (step > 0 && step <= 15) out.push((step << 4) | type)
    else {
      out.push(type)
      writeVarint(out, zigZag(number))
    }
    if (!('bool' in field)) writeValue(out, field)
    previousNumber = number
  }
  out.push(0)
}

function writeValue(out: number[], field: ThriftField): void {
  if ('struct' in field) writeStruct(out, field.struct)
  else if ('text' in field) {
    const bytes = typeof field.text === 'string' ? Buffer.from(field.text) : field.text
    writeVarint(out, bytes.length)
    for (const byte of bytes) out.push(byte)
  } else if ('list' in field) {
    const { list } = field
    const type = list[0] === undefined ? typeNumbers.struct : typeNumbers[kindOf(list[0])]
    if (list.length < 15) out.push((list.length << 4) | type)
    else {
      out.push(0xf0 | type)
      writeVarint(out, list.length)
    }
    for (const item of list) writeValue(out, item)
  } else if ('bool' in field) out.push(field.bool ? 1 : boolFalse)
  else writeVarint(out, zigZag('i16' in field ? field.i16 : 'i32' in field ? field.i32 : field.i64))
}

function kindOf(field: ThriftField): Kind {
  return Object.keys(field)[0] as Kind
}

/** Numbers are safe integers; shifts would cut them to 32 bits. */
function zigZag(value: number): number {
  return value < 0 ? -2 * value - 1 : 2 * value
}

function writeVarint(out: number[], value: number): void {
  let remainder = value
  for (; remainder >= 0x80; remainder = Math.floor(remainder / 0x80)) out.push((remainder % 0x80) | 0x80)
  out.push(remainder)
}
