/**
 * The body of an encrypted backup: chunks of AES-256-GCM under a key from the passphrase (scrypt). The nonce of a chunk
 * is its number and whether it is the last, so that none can be left out, moved or cut off unseen; a salt of its own
 * for every backup makes its key its own too. The clear text is a JSON line with small files, then the database.
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

/** Throws at the first chunk that the passphrase does not open or that is not where it was. */
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
        ? 'The passphrase does not open this backup, or its beginning is damaged.'
        : `The backup is damaged: part ${index + 1} of its body is not as it was written.`,
    )
  }
}

/** Pieces of exactly the given size but for the last, which is told apart; at least one, if only an empty one. */
async function* inChunks(
  source: AsyncIterable<Buffer>,
  chunkBytes: number,
): AsyncGenerator<{ chunk: Buffer; isLast: boolean }> {
  let pending = Buffer.alloc(0)
  for await (const piece of source) {
    pending = Buffer.concat([pending, piece])
    // More than one whole chunk: the last is only known by the end of the source.
    while (pending.length > chunkBytes) {
      yield { chunk: pending.subarray(0, chunkBytes), isLast: false }
      pending = pending.subarray(chunkBytes)
    }
  }
  yield { chunk: pending, isLast: true }
}
