/** Reads and writes the body of a backup in small pieces, so that a running server stays responsive. */
import { createHash } from 'node:crypto'
import { open, type FileHandle } from 'node:fs/promises'

const pieceBytes = 256 * 1024
const syncEveryBytes = 32 * 1024 * 1024 // flushing gigabytes at once would delay commits

/** The bytes of a file from `start` to `end`, or to its end. */
export async function* piecesOf(path: string, end: number, start = 0): AsyncGenerator<Buffer> {
  const file = await open(path, 'r')
  try {
    for (let at = start; at < end;) {
      const buffer = Buffer.allocUnsafe(Math.min(pieceBytes, end - at))
      const { bytesRead } = await file.read(buffer, 0, buffer.length, at)
      if (bytesRead === 0) return
      yield buffer.subarray(0, bytesRead)
      at += bytesRead
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
