/** Writes the database of a backup into a folder, decrypted if needed, and returns the key files it contains. */
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError } from '../../errors.ts'
import { piecesOf, writePieces } from './body.ts'
import { decrypted, keyOf } from './cipher.ts'
import { keyFileNames, type KeyFiles } from './key-files.ts'
import type { Encryption, Manifest } from './manifest.ts'

const keyFilesBytesMax = 64 * 1024

export interface Unpacked {
  database: string // path
  keyFiles: KeyFiles
}

/** Throws when the passphrase is wrong or anything was altered; the caller deletes the folder. */
export async function unpackBackup(
  path: string,
  manifest: Manifest,
  folder: string,
  passphrase: string | null,
): Promise<Unpacked> {
  const { bodyBytes, databaseBytes, databaseSha256, encryption } = manifest
  const body = piecesOf(path, bodyBytes)
  const source =
    encryption === null
      ? { pieces: body, keyFiles: {} }
      : await splitKeyFiles(await decryptedBody(body, encryption, passphrase))
  const database = join(folder, 'sightglass.db')
  const file = await open(database, 'wx', 0o600)
  try {
    const { bytes, sha256 } = await writePieces(file, source.pieces)
    if (bytes !== databaseBytes || sha256 !== databaseSha256) {
      throw new AppError('conflict', 'The database in the backup was altered.')
    }
  } finally {
    await file.close()
  }
  return { database, keyFiles: source.keyFiles }
}

async function decryptedBody(
  body: AsyncGenerator<Buffer>,
  encryption: Encryption,
  passphrase: string | null,
): Promise<AsyncGenerator<Buffer>> {
  if (passphrase === null) {
    throw new AppError('conflict', 'This backup is encrypted. Provide its passphrase.', {
      hint: 'set SIGHTGLASS_BACKUP_PASSPHRASE or SIGHTGLASS_BACKUP_PASSPHRASE_FILE',
    })
  }
  return decrypted(body, await keyOf(passphrase, encryption), encryption)
}

/** The clear text begins with one line of JSON; the rest is the database. */
async function splitKeyFiles(
  clear: AsyncGenerator<Buffer>,
): Promise<{ pieces: AsyncIterable<Buffer>; keyFiles: KeyFiles }> {
  let head = Buffer.alloc(0)
  let end = -1
  while (end < 0 && head.length < keyFilesBytesMax) {
    const { value, done } = await clear.next()
    if (done) break
    head = Buffer.concat([head, value])
    end = head.indexOf(0x0a)
  }
  if (end < 0) throw new AppError('conflict', 'The backup is corrupt: its key files are missing.')
  const found = JSON.parse(head.subarray(0, end).toString()) as { [name: string]: unknown }
  const keyFiles: KeyFiles = {}
  for (const name of keyFileNames) {
    const text = found[name]
    if (typeof text === 'string') keyFiles[name] = text
  }
  const rest = head.subarray(end + 1)
  const pieces = (async function* () {
    yield rest
    yield* clear
  })()
  return { pieces, keyFiles }
}
