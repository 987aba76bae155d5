/** The platform of web standards alone: Cloudflare Workers, Vercel Edge, Deno, browsers. */
import { nowMs } from './clock.ts'
import type { Bytes, Platform } from './platform.ts'
import { sha256 } from './sha256.ts'

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

/** Counts instead of encoding: nothing is allocated for an event that is only measured. */
export function byteLength(text: string): number {
  let bytes = text.length
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code < 0x80) continue
    bytes += code < 0x800 ? 1 : 2
    // A pair is four bytes for two units: one counted each, two added for the first, none for the second.
    if (code >= 0xd800 && code < 0xdc00 && isLow(text.charCodeAt(at + 1))) at++
  }
  return bytes
}

const isLow = (code: number): boolean => code >= 0xdc00 && code < 0xe000

async function gzip(bytes: Bytes): Promise<Bytes> {
  const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream('gzip'))
  return new Uint8Array(await new Response(stream).arrayBuffer())
}
