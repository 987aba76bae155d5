/** The platform for edge runtimes and browsers, with web standards only. */
import { nowMs } from './clock.ts'
import type { Bytes, Platform } from './platform.ts'

export const edgePlatform: Platform = {
  nowMs,
  isPage: typeof document !== 'undefined',
  uuid: () => crypto.randomUUID(),
  sha256,
  byteLength,
  gzip,
  openSpool: null,
  onIdleExit: () => () => {},
}

/** Counts instead of encoding, which allocates nothing. */
export function byteLength(text: string): number {
  let bytes = text.length
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (code < 0x80) continue
    bytes += code < 0x800 ? 1 : 2
    // A surrogate pair is 4 bytes in 2 units: 2 are counted above, 2 are added for the first unit.
    if (code >= 0xd800 && code < 0xdc00 && isLow(text.charCodeAt(index + 1))) index++
  }
  return bytes
}

const isLow = (code: number): boolean => code >= 0xdc00 && code < 0xe000

async function gzip(bytes: Bytes): Promise<Bytes> {
  const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream('gzip'))
  return new Uint8Array(await new Response(stream).arrayBuffer())
}

/** The constants of the standard: first 32 bits of the fractional parts of the roots of the first primes. */
function roots(count: number, exponent: number): number[] {
  const fractions: number[] = []
  for (let candidate = 2; fractions.length < count; candidate++) {
    let isPrime = true
    for (let factor = 2; factor * factor <= candidate; factor++) if (candidate % factor === 0) isPrime = false
    if (isPrime) fractions.push((candidate ** exponent * 0x1_0000_0000) | 0)
  }
  return fractions
}

const rotate = (word: number, bits: number): number => (word >>> bits) | (word << (32 - bits))

/**
 * SHA-256 (FIPS 180-4) of the UTF-8 bytes, in lower-case hex, for short texts. Synchronous, unlike `crypto.subtle`.
 */
function sha256(text: string): string {
  const initial = roots(8, 1 / 2)
  const constants = roots(64, 1 / 3)
  const bytes = new TextEncoder().encode(text)
  const padded = new DataView(new ArrayBuffer((((bytes.length + 8) >> 6) + 1) << 6))
  bytes.forEach((byte, index) => padded.setUint8(index, byte))
  padded.setUint8(bytes.length, 0x80)
  padded.setUint32(padded.byteLength - 4, bytes.length * 8)
  const hash = initial
  const words = new Int32Array(64)
  for (let block = 0; block < padded.byteLength; block += 64) {
    for (let index = 0; index < 64; index++) {
      const w2 = words[index - 2]!
      const w15 = words[index - 15]!
      words[index] =
        index < 16
          ? padded.getInt32(block + index * 4)
          : words[index - 16]! +
            (rotate(w15, 7) ^ rotate(w15, 18) ^ (w15 >>> 3)) +
            words[index - 7]! +
            (rotate(w2, 17) ^ rotate(w2, 19) ^ (w2 >>> 10))
    }
    let [a, b, c, d, e, f, g, h] = hash as [number, number, number, number, number, number, number, number]
    for (let index = 0; index < 64; index++) {
      const first =
        (h +
          (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +
          ((e & f) ^ (~e & g)) +
          constants[index]! +
          words[index]!) |
        0
      const second = ((rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0
      ;[a, b, c, d, e, f, g, h] = [(first + second) | 0, a, b, c, (d + first) | 0, e, f, g]
    }
    for (const [index, word] of [a, b, c, d, e, f, g, h].entries()) hash[index] = (hash[index]! + word) | 0
  }
  return hash.map((word) => (word >>> 0).toString(16).padStart(8, '0')).join('')
}
