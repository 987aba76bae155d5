/** Reads compact JSON from its bytes: where values end, whether a value is the event's own, and values by codes. */

/*
 * Stored texts are compact JSON, as JSON.stringify writes them, without the values of `id` and `sessionId`
 * (../blocks/texts.ts). A NUL ends each text, so no loop passes its end.
 */
export const quote = 34
const backslash = 92
export const comma = 44
export const openBrace = 123
export const closeBrace = 125
const colon = 58
const openBracket = 91
const closeBracket = 93

const ofMetadata = Buffer.from('"metadata":')

/** Where the value of the next member named `metadata` begins, from `from` on; Infinity: nowhere. */
export function metadataFrom(bytes: Buffer, from: number): number {
  for (
    let offset = bytes.indexOf(ofMetadata, from);
    offset >= 0;
    offset = bytes.indexOf(ofMetadata, offset + 1)
  )
    if (bytes[offset - 1] !== backslash) return offset + ofMetadata.length // otherwise inside a string
  return Infinity
}

/** Whether a text in which no member named `metadata` was found may have one in another spelling. */
export function mayHideMetadata(bytes: Buffer, start: number, end: number): boolean {
  const text = bytes.toString('latin1', start, end)
  return text.includes('metadata"') || text.includes('\\u')
}

export function isAt(bytes: Uint8Array, offset: number, name: Uint8Array): boolean {
  for (let index = 0; index < name.length; index++) if (bytes[offset + index] !== name[index]) return false
  return true
}

/** Whether the rest of the text is further members of the event itself and its end. */
export function endsEvent(bytes: Uint8Array, from: number): boolean {
  let depth = 1
  for (let offset = from; offset < bytes.length; offset++) {
    const byte = bytes[offset]!
    if (byte === quote) offset = stringEnd(bytes, offset) - 1
    else if (byte === openBrace || byte === openBracket) depth++
    else if (byte === closeBrace || byte === closeBracket) {
      if (--depth === 0) return bytes[offset + 1] === 0
    } else if (byte === 0) return false
  }
  return false
}

/** The end of the string whose opening quote is at `from`. */
export function stringEnd(bytes: Uint8Array, from: number): number {
  for (let offset = from + 1; offset < bytes.length; offset++) {
    const byte = bytes[offset]!
    if (byte === quote) return offset + 1
    if (byte === backslash) offset++
    else if (byte === 0) return offset
  }
  return bytes.length
}

/** The end of the value at `from`, which may be empty. */
export function valueEnd(bytes: Uint8Array, from: number): number {
  if (bytes[from] === quote) return stringEnd(bytes, from)
  let depth = 0
  for (let offset = from; offset < bytes.length; offset++) {
    const byte = bytes[offset]!
    if (byte === quote) offset = stringEnd(bytes, offset) - 1
    else if (byte === openBrace || byte === openBracket) depth++
    else if (byte === closeBrace || byte === closeBracket) {
      if (depth === 0) return offset
      if (--depth === 0) return offset + 1
    } else if (byte === 0 || (byte === comma && depth === 0)) return offset
  }
  return bytes.length
}

/** Whether the id or the session was cut out of the value. True for some whole values too. */
export function isCut(bytes: Uint8Array, start: number, end: number): boolean {
  if (start === end) return true
  if (bytes[start] !== openBrace && bytes[start] !== openBracket) return false
  for (let offset = start; offset < end; offset++) {
    if (bytes[offset] !== colon) continue
    const next = bytes[offset + 1]
    if (next === comma || next === closeBrace) return true
  }
  return false
}

/** A path cut at each of its dots, the last one first: a dot may separate members or belong to the name of one. */
export function cuts(path: string): [first: string, later: string][] {
  const parts = path.split('.')
  return parts
    .map((_, index): [string, string] => [parts.slice(0, index).join('.'), parts.slice(index).join('.')])
    .slice(1)
    .reverse()
}

/** Codes of values, from 0 up in the order in which they were first added. */
export interface Coder {
  /** -1 for a value beyond the limits, and for one that was made to share its hash with many others. */
  codeOf(bytes: Uint8Array, start: number, end: number): number
  /** By code. */
  values: readonly Buffer[]
  /** Of all values. */
  bytes(): number
}

/** Senders choose values, so finding one must not mean comparing it with thousands. By chance two are rare. */
const sameHashMax = 8

/** Values are found by their bytes, because making a string takes longer than finding it. */
export function makeCoder(valuesMax: number, bytesMax: number): Coder {
  const byHash = new Map<number, number | number[]>() // the only code, or all
  const values: Buffer[] = []
  let valueBytes = 0

  function has(code: number, bytes: Uint8Array, start: number, end: number): boolean {
    const value = values[code]!
    return value.length === end - start && isAt(bytes, start, value)
  }

  return {
    values,
    bytes: () => valueBytes,
    codeOf(bytes, start, end) {
      let hash = end - start
      for (let offset = start; offset < end; offset++) hash = (Math.imul(hash, 31) + bytes[offset]!) | 0
      const candidateCodes = byHash.get(hash)
      if (typeof candidateCodes === 'number') {
        if (has(candidateCodes, bytes, start, end)) return candidateCodes
      } else if (candidateCodes !== undefined) {
        for (const code of candidateCodes) if (has(code, bytes, start, end)) return code
        if (candidateCodes.length >= sameHashMax) return -1
      }
      if (values.length >= valuesMax || valueBytes + end - start > bytesMax) return -1
      valueBytes += end - start
      const code = values.push(Buffer.from(bytes.subarray(start, end))) - 1
      byHash.set(hash, candidateCodes === undefined ? code : [candidateCodes, code].flat())
      return code
    },
  }
}
