/**
 * The format of a backup file: the database, a manifest as JSON, then a footer of 48 bytes: the manifest's SHA-256,
 * its length (8 bytes, big-endian) and the letters SGLSBK01.
 *
 * An unencrypted backup is also a database, because its header declares how much of the file belongs to it. Encrypted
 * backups contain the key files of the data folder; plain backups name the key they need.
 */
import { createHash } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
import { AppError } from '../../errors.ts'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { openRegularFile, readTextFile, unreadableReason } from '../../../db/rules/regular-files.ts'
import { keyFileName } from '../../system/encryption.ts'
import { keyIdOf, readKeyRing, type KeyRing } from '../../system/key-ring.ts'
import type { AuditHead } from '../../../db/contract/store.ts'

const reasons = ['manual', 'scheduled', 'upgrade'] as const
export type BackupReason = (typeof reasons)[number]

export interface Encryption {
  cipher: 'aes-256-gcm'
  chunkBytes: number // of clear text; each chunk of the body has a 16-byte tag in addition
  kdf: 'scrypt'
  cost: number
  blockSize: number
  parallelization: number
  salt: string
}

export interface Manifest {
  format: 'sightglass-backup-1'
  version: string // of the release that created it
  /** The id of the data folder; absent in backups of earlier releases. */
  applianceId?: string
  createdAt: string
  reason: BackupReason
  schema: number
  events: number
  orgs: number
  accounts: number
  keys: number
  auditHeads: { [orgId: string]: AuditHead }
  databaseBytes: number
  databaseSha256: string
  bodyBytes: number // before the manifest
  bodySha256: string
  keyId: string | null // of the secret.key that encrypts secrets in the database
  encryption: Encryption | null
}

const magic = Buffer.from('SGLSBK01')
const hashBytes = 32
const footerBytes = hashBytes + 8 + magic.length
const manifestBytesMax = 16 * 1024 * 1024 // about 120 per organization

/** The manifest and footer that follow the body. */
export function manifestBytes(manifest: Manifest): Buffer {
  const text = Buffer.from(JSON.stringify(manifest))
  const length = Buffer.alloc(8)
  length.writeBigUInt64BE(BigInt(text.length))
  return Buffer.concat([text, createHash('sha256').update(text).digest(), length, magic])
}

/** Reads the manifest of a file; throws when it is not a backup, or is truncated or altered at its end. */
export async function readManifest(path: string): Promise<Manifest> {
  const file = await openBackup(path)
  try {
    const { size } = await file.stat()
    const footer = await readAt(file, Math.max(0, size - footerBytes), footerBytes)
    if (!footer.subarray(-magic.length).equals(magic)) {
      throw new AppError('conflict', `${path} is not a complete backup.`)
    }
    const length = Number(footer.readBigUInt64BE(hashBytes))
    const start = size - footerBytes - length
    if (length > manifestBytesMax || start < 0) throw damaged(path)
    const text = await readAt(file, start, length)
    if (!createHash('sha256').update(text).digest().equals(footer.subarray(0, hashBytes))) throw damaged(path)
    const manifest = JSON.parse(text.toString()) as Manifest
    if (manifest.format !== 'sightglass-backup-1') {
      throw new AppError(
        'conflict',
        `${path} has an unsupported backup format (${String(manifest.format)}).`,
        {
          hint: 'use the release that created it, or a newer one',
        },
      )
    }
    if (manifest.bodyBytes !== start) throw damaged(path)
    return manifest
  } finally {
    await file.close()
  }
}

async function openBackup(path: string): Promise<FileHandle> {
  try {
    return await openRegularFile(path, { follows: true })
  } catch (error) {
    throw new AppError('not_found', `The backup ${path} cannot be read (${unreadableReason(error)}).`, {
      hint: 'sightglass backup list',
    })
  }
}

async function readAt(file: FileHandle, offset: number, bytes: number): Promise<Buffer> {
  const buffer = Buffer.alloc(bytes)
  const { bytesRead } = await file.read(buffer, 0, bytes, offset)
  return buffer.subarray(0, bytesRead)
}

function damaged(path: string): AppError {
  return new AppError('conflict', `The backup ${path} is corrupt: its manifest was altered.`)
}

export const keyFileNames = [keyFileName, 'audit-signing.key'] as const

export type KeyFiles = { [name: string]: string }

export function readKeyFiles(folder: string): KeyFiles {
  const files: KeyFiles = {}
  for (const name of keyFileNames) {
    if (existsSync(join(folder, name))) files[name] = readTextFile(join(folder, name))
  }
  return files
}

/** The ids of the keys in the text of a key file or key ring, newest first; empty when the text is neither. */
export function keyIdsIn(text: string): string[] {
  try {
    return readKeyRing(text).encryption.map(keyIdOf)
  } catch {
    return []
  }
}

/** The ids of the keys of the ring, or without one of the folder's key file; empty when it has none. */
export function keyIdsOf(folder: string, ring: KeyRing | null): string[] {
  if (ring !== null) return ring.encryption.map(keyIdOf)
  const path = join(folder, keyFileName)
  return existsSync(path) ? keyIdsIn(readTextFile(path)) : []
}
