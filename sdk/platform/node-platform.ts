/** The platform for Node.js, Bun and Deno. */
import { createHash, randomUUID } from 'node:crypto'
import { gzip as gzipCallback } from 'node:zlib'
import { nowMs } from './clock.ts'
import type { Bytes, Platform } from './platform.ts'
import { openSpoolFile } from './spool-file.ts'

export const nodePlatform: Platform = {
  nowMs,
  isPage: false,
  uuid: () => randomUUID(),
  sha256: (text) => createHash('sha256').update(text).digest('hex'),
  byteLength: (text) => Buffer.byteLength(text),
  gzip: compress,
  openSpool: openSpoolFile,
  onIdleExit,
}

/** On a thread of the runtime, at the fastest level. */
function compress(bytes: Bytes): Promise<Bytes> {
  return new Promise((resolve, reject) => {
    gzipCallback(bytes, { level: 1 }, (error, compressed) => {
      if (error) reject(error)
      else
        resolve(
          new Uint8Array(compressed.buffer as ArrayBuffer, compressed.byteOffset, compressed.byteLength),
        )
    })
  })
}

function onIdleExit(last: () => Promise<unknown>): () => void {
  const run = (): void => void last()
  process.once('beforeExit', run) // once, because the flush itself makes the process idle again
  return () => process.off('beforeExit', run)
}
