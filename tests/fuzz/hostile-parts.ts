/** Parts of hostile bodies: as many copies of something tiny as fit, in JSON and in protobuf. */
import { gzipSync } from 'node:zlib'

export interface HostileBody {
  name: string
  path: string
  type: string // content-type
  encoding?: 'gzip' | undefined
  key: 'ingest' | 'secret'
  bytes(): Uint8Array
  statuses: number[] // of which the answer is one
}

export const mebi = 1024 * 1024
export const bytesMax = 8 * mebi - 1_024
export const otlpBytesMax = 64 * mebi - 8_192

/** As many whole copies of a part as fit. */
export function filled(part: string | Uint8Array, bytes: number): Buffer {
  const partBytes = Buffer.from(part)
  return Buffer.alloc(Math.floor(bytes / partBytes.length) * partBytes.length, partBytes)
}

function varint(value: number): number[] {
  return value < 128 ? [value] : [(value % 128) + 128, ...varint(Math.floor(value / 128))]
}

/** A message of protobuf in a field. */
export function message(field: number, ...parts: Uint8Array[]): Buffer {
  const content = Buffer.concat(parts)
  return Buffer.concat([Uint8Array.from([...varint(field * 8 + 2), ...varint(content.length)]), content])
}

export const emptyIn = (field: number): Uint8Array => Uint8Array.from([field * 8 + 2, 0])

/** Bytes that do not compress, so that the rest of a body may compress by more than the limit. */
const padding = Buffer.from(
  Array.from({ length: 720 * 1024 }, (_, index) => Number(Bun.hash(String(index)) & 255n)),
)
const unknownField = 900

export const compressed = (...parts: Uint8Array[]): Buffer => gzipSync(Buffer.concat(parts), { level: 1 })

export const protobuf = (...parts: Uint8Array[]): Buffer =>
  compressed(message(unknownField, padding), ...parts)

/** A JSON object with padding in a field that nobody reads. */
export const paddedJson = (name: string, value: Buffer): Buffer =>
  compressed(
    Buffer.from(`{"padding":"${padding.toString('base64').slice(0, 700_000)}","${name}":`),
    value,
    Buffer.from('}'),
  )

export const inJson = (prefix: string, part: string, last: string, suffix: string, bytes: number): Buffer =>
  Buffer.concat([
    Buffer.from(prefix),
    filled(part, bytes - prefix.length - last.length - suffix.length),
    Buffer.from(last + suffix),
  ])

/** One value of an attribute, `AnyValue`. */
export const keyValue = (name: string, value: Uint8Array): Buffer =>
  message(9, message(1, Buffer.from(name)), message(2, value))

export const ids = [message(1, Buffer.alloc(16, 7)), message(2, Buffer.alloc(8, 9))]
export const toolCall = message(
  9,
  message(1, Buffer.from('gen_ai.tool.name')),
  message(2, message(1, Buffer.from('t'))),
)

export const traces = (...spans: Uint8Array[]): Buffer => message(1, message(2, ...spans))
