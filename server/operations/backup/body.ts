/**
 * The body of a backup, read and written in small pieces, so that a running server stays responsive.
 *
 * An encrypted body is chunks of AES-256-GCM with a key derived from the passphrase (scrypt) and a random salt per
 * backup. The nonce of a chunk is its number and whether it is the last, so that none can be omitted, moved or
 * truncated undetected. The clear text is a JSON line with small files, then the database.
 */
import { createCipheriv, createDecipheriv, createHash, scrypt } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
import { openRegularFile } from '../../../db/rules/regular-files.ts'
import { AppError } from '../../errors.ts'
import { newToken } from '../../ids.ts'
import { canonicalPassphrase } from '../../text/secret-text.ts'
import type { Encryption } from './manifest.ts'

const pieceBytes = 256 * 1024
const syncEveryBytes = 32 * 1024 * 1024 // flushing gigabytes at once would delay commits

/** The bytes of a file from `start` to `end`, or to its end. */
export async function* piecesOf(path: string, end: number, start = 0): AsyncGenerator<Buffer> {
  const file = await openRegularFile(path, { follows: true })
  try {
    for (let offset = start; offset < end;) {
      const buffer = Buffer.allocUnsafe(Math.min(pieceBytes, end - offset))
      const { bytesRead } = await file.read(buffer, 0, buffer.length, offset)
      if (bytesRead === 0) return
      yield buffer.subarray(0, bytesRead)
      offset += bytesRead
    }
  } finally {
    await file.close()
  }
}

export interface Digest {
  bytes: number
  sha256: string
}

export async function digestOf(pieces: AsyncIterable<Buffer>): Promise<Digest> {
  const hash = createHash('sha256')
  let bytes = 0
  for await (const piece of pieces) {
    hash.update(piece)
    bytes += piece.length
  }
  return { bytes, sha256: hash.digest('hex') }
}

/** Of the whole file, and of its first `bodyBytes`. */
export async function digestFile(path: string, bodyBytes: number): Promise<Digest & { bodySha256: string }> {
  const hash = createHash('sha256')
  for await (const piece of piecesOf(path, bodyBytes)) hash.update(piece)
  const bodySha256 = hash.copy().digest('hex')
  let bytes = bodyBytes
  for await (const piece of piecesOf(path, Number.MAX_SAFE_INTEGER, bodyBytes)) {
    hash.update(piece)
    bytes += piece.length
  }
  return { bytes, sha256: hash.digest('hex'), bodySha256 }
}

/** Appends every piece and syncs every 32 MiB. */
export async function writePieces(file: FileHandle, pieces: AsyncIterable<Buffer>): Promise<Digest> {
  const hash = createHash('sha256')
  let bytes = 0
  let syncedBytes = 0
  for await (const piece of pieces) {
    hash.update(piece)
    await writeAll(file, piece)
    bytes += piece.length
    if (bytes - syncedBytes > syncEveryBytes) {
      await file.datasync()
      syncedBytes = bytes
    }
  }
  await file.sync()
  return { bytes, sha256: hash.digest('hex') }
}

async function writeAll(file: FileHandle, piece: Buffer): Promise<void> {
  for (let from = 0; from < piece.length;) {
    const { bytesWritten } = await file.write(piece, from, piece.length - from)
    from += bytesWritten
  }
}

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

/** The key of a new backup. */
export function keyOf(passphrase: string, encryption: Encryption): Promise<Buffer> {
  return deriveKey(canonicalPassphrase(passphrase), encryption)
}

/** `form` is the passphrase in one of its forms. */
export function deriveKey(
  form: string,
  { cost, blockSize, parallelization, salt }: Encryption,
): Promise<Buffer> {
  const options = { N: cost, r: blockSize, p: parallelization, maxmem: scryptBytesMax }
  return new Promise((resolve, reject) => {
    scrypt(form, salt, keyBytes, options, (error, key) => {
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
