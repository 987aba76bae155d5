/** Ids of one form, such as UUIDs, in half a byte for each hexadecimal digit. zstd needs five bits and more. */

/*
 * A frame of ids (texts.ts) that begins with `idsMark`, which is not zstd's first byte:
 *   u8 mark, u8 ids, u8 length of an id, the first id with 0 in each place where ids differ,
 *   then the digits in these places, id by id, the first one in the upper half of a byte
 */
export const idsMark = 0xc2
const headBytes = 3
const countMax = 255

/** A run of places where the ids differ. */
interface Run {
  from: number
  until: number
}

/**
 * Null when the ids differ in length, or in other places than lower-case digits. The 64 UUIDs of a frame take a quarter
 * less time than with zstd, so blocks have digits from the start.
 */
export function packIdDigits(ids: readonly string[]): Uint8Array | null {
  const { length } = ids[0] ?? ''
  if (length === 0 || length > countMax || ids.length > countMax) return null
  for (const id of ids) if (id.length !== length) return null
  const bytes = encoder.encode(ids.join(''))
  if (bytes.length !== length * ids.length || bytes.includes(0)) return null // not ASCII
  return packPlaces(bytes, ids.length, formOf(bytes, length))
}

/** The first id, with 0 where another differs. */
function formOf(bytes: Uint8Array, length: number): Uint8Array {
  const form = bytes.slice(0, length)
  let samePlaces = Array.from(form.keys())
  for (let first = length; first < bytes.length; first += length) {
    let differ = 0
    for (let index = 0; index < samePlaces.length; index++) {
      const place = samePlaces[index]!
      if (bytes[first + place] === form[place]) continue
      form[place] = 0
      differ++
    }
    if (differ > 0) samePlaces = samePlaces.filter((place) => form[place] !== 0)
  }
  return form
}

/** Null when a byte in one of the places is no digit. */
function packPlaces(bytes: Uint8Array, ids: number, form: Uint8Array): Uint8Array | null {
  const places = Array.from(form.keys()).filter((place) => form[place] === 0)
  const packed = new Uint8Array(headBytes + form.length + Math.ceil((ids * places.length) / 2))
  packed.set([idsMark, ids, form.length])
  packed.set(form, headBytes)
  let offset = headBytes + form.length
  let upper = -1 // the half of a byte that waits for the other
  for (let first = 0; first < bytes.length; first += form.length) {
    for (let index = 0; index < places.length; index++) {
      const digit = digitOf[bytes[first + places[index]!]!]!
      if (digit === noDigit) return null
      if (upper < 0) upper = digit << 4
      else {
        packed[offset++] = upper | digit
        upper = -1
      }
    }
  }
  if (upper >= 0) packed[offset] = upper
  return packed
}

const encoder = new TextEncoder()

const noDigit = 0xff
const digitOf = Uint8Array.from({ length: 256 }, (_, byte) => {
  const digit = '0123456789abcdef'.indexOf(String.fromCharCode(byte))
  return digit < 0 ? noDigit : digit
})

function runsOf(form: Uint8Array): Run[] {
  const runs: Run[] = []
  form.forEach((byte, place) => {
    const last = runs.at(-1)
    if (byte !== 0) return
    if (last?.until === place) last.until++
    else runs.push({ from: place, until: place + 1 })
  })
  return runs
}

function digitsOf(id: string, runs: readonly Run[]): string {
  let digits = ''
  for (const { from, until } of runs) digits += id.slice(from, until)
  return digits
}

/** The ids of a frame of any kind. */
export interface FrameIds {
  rows: number
  /** Whether the frame contains an id, as JSON text, or the mark of an erased one; exact. */
  has(id: string): boolean
  /** A NUL, and a NUL after each id. */
  bytes(): Buffer
}

export function openIdDigits(packed: Uint8Array): FrameIds {
  const [, count = 0, length = 0] = packed
  const bytes = Buffer.from(packed.buffer, packed.byteOffset, packed.byteLength)
  const runs = runsOf(packed.subarray(headBytes, headBytes + length))
  const digitsPerId = runs.reduce((sum, { from, until }) => sum + until - from, 0)
  if (packed.length !== headBytes + length + Math.ceil((digitsPerId * count) / 2))
    throw new Error('a frame of ids has another length than it says')
  const form = bytes.toString('latin1', headBytes, headBytes + length)
  const hex = bytes.toString('hex', headBytes + length).slice(0, digitsPerId * count)
  return {
    rows: count,
    has: (id) => holds(hex, digitsPerId, form, runs, id),
    bytes: () => joined(hex, count, form, runs),
  }
}

/** Whether an id of the frame may contain a text in upper case, by the places where all ids are alike. */
export function mayHoldDigits(packed: Uint8Array, upper: string): boolean {
  const [, , length = 0] = packed
  const form = packed.subarray(headBytes, headBytes + length)
  const isLike = (byte: number, char: number): boolean =>
    byte === 0 ? isHexDigit(char) : upperOf(byte) === char
  for (let from = 0; from + upper.length <= length; from++) {
    let matchLength = 0
    while (matchLength < upper.length && isLike(form[from + matchLength]!, upper.charCodeAt(matchLength)))
      matchLength++
    if (matchLength === upper.length) return true
  }
  return false
}

const upperOf = (byte: number): number => (byte >= 97 && byte <= 122 ? byte - 32 : byte)
const isHexDigit = (char: number): boolean => (char >= 48 && char <= 57) || (char >= 65 && char <= 70)

/** Compares digits, because a resend asks for one id of many. */
function holds(hex: string, digitsPerId: number, form: string, runs: readonly Run[], id: string): boolean {
  if (id.length !== form.length) return false
  for (let place = 0; place < id.length; place++)
    if (form[place] !== '\0' && form[place] !== id[place]) return false
  if (digitsPerId === 0) return true
  const digits = digitsOf(id, runs)
  let offset = hex.indexOf(digits)
  while (offset >= 0 && offset % digitsPerId !== 0) offset = hex.indexOf(digits, offset + 1)
  return offset >= 0
}

function joined(hex: string, count: number, form: string, runs: readonly Run[]): Buffer {
  // What is between the runs, the first of which a NUL precedes.
  const separators = runs.map(({ from }, index) => form.slice(index === 0 ? 0 : runs[index - 1]!.until, from))
  const end = `${form.slice(runs.at(-1)?.until ?? 0)}\0`
  let joinedText = '\0'
  for (let id = 0, offset = 0; id < count; id++) {
    for (let index = 0; index < runs.length; index++) {
      const { from, until } = runs[index]!
      joinedText += separators[index]! + hex.slice(offset, (offset += until - from))
    }
    joinedText += end
  }
  return Buffer.from(joinedText, 'latin1')
}
