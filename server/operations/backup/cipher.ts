/**
 * The body of an encrypted backup: chunks of AES-256-GCM with a key derived from the passphrase (scrypt) and a random
 * salt per backup. The nonce of a chunk is its number and whether it is the last, so that none can be omitted, moved or
 * truncated undetected. The clear text is a JSON line with small files, then the database.
 */
import { createCipheriv, createDecipheriv, scrypt } from 'node:crypto'
import { AppError } from '../../errors.ts'
import { newToken } from '../../ids.ts'
import type { Encryption } from './manifest.ts'

const tagBytes = 16
const keyBytes = 32
const scryptBytesMax = 256 * 1024 * 1024

export function newEncryption(): Encryption {
  return {
    cipher: 'aes-256-gcm',
    chunkBytes: 256 * 1024,
    kdf: 'scrypt',
    cost: 2 ** 16,
    blockSize: 8,
    parallelization: 1,
    salt: newToken(),
  }
}

export function keyOf(
  passphrase: string,
  { cost, blockSize, parallelization, salt }: Encryption,
): Promise<Buffer> {
  const options = { N: cost, r: blockSize, p: parallelization, maxmem: scryptBytesMax }
  return new Promise((resolve, reject) => {
    scrypt(passphrase.normalize('NFC'), salt, keyBytes, options, (error, key) => {
      if (error) reject(error)
      else resolve(key)
    })
  })
}

function nonce(index: number, isLast: boolean): Buffer {
  const bytes = Buffer.alloc(12)
  bytes[0] = isLast ? 1 : 0
  bytes.writeUInt32BE(index, 8)
  return bytes
}

export async function* encrypted(
  clear: AsyncIterable<Buffer>,
  key: Buffer,
  { chunkBytes }: Encryption,
): AsyncGenerator<Buffer> {
  let index = 0
  for await (const { chunk, isLast } of inChunks(clear, chunkBytes)) {
    const cipher = createCipheriv('aes-256-gcm', key, nonce(index++, isLast))
    yield Buffer.concat([cipher.update(chunk), cipher.final(), cipher.getAuthTag()])
  }
}

/** Throws at the first chunk that does not decrypt or is out of place. */
export async function* decrypted(
  body: AsyncIterable<Buffer>,
  key: Buffer,
  { chunkBytes }: Encryption,
): AsyncGenerator<Buffer> {
  let index = 0
  for await (const { chunk, isLast } of inChunks(body, chunkBytes + tagBytes)) {
    yield opened(chunk, key, nonce(index, isLast), index)
    index++
  }
}

function opened(chunk: Buffer, key: Buffer, iv: Buffer, index: number): Buffer {
  try {
    const cipher = createDecipheriv('aes-256-gcm', key, iv)
    cipher.setAuthTag(chunk.subarray(-tagBytes))
    return Buffer.concat([cipher.update(chunk.subarray(0, -tagBytes)), cipher.final()])
  } catch {
    throw new AppError(
      'conflict',
      index === 0
        ? 'The passphrase is wrong, or the start of the backup is corrupt.'
        : `The backup is corrupt at part ${index + 1} of its body.`,
    )
  }
}

/** Pieces of exactly the given size except the last, which is marked; at least one, possibly empty. */
async function* inChunks(
  source: AsyncIterable<Buffer>,
  chunkBytes: number,
): AsyncGenerator<{ chunk: Buffer; isLast: boolean }> {
  let pending = Buffer.alloc(0)
  for await (const piece of source) {
    pending = Buffer.concat([pending, piece])
    // Hold back one chunk, because only the end of the source shows which is last.
    while (pending.length > chunkBytes) {
      yield { chunk: pending.subarray(0, chunkBytes), isLast: false }
      pending = pending.subarray(chunkBytes)
    }
  }
  yield { chunk: pending, isLast: true }
}
