/** The key files of a data folder: encrypted backups contain them, plain backups name the key they need. */
import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { keyFileName } from '../../system/encryption.ts'

export const keyFileNames = [keyFileName, 'audit-signing.key'] as const

export type KeyFiles = { [name: string]: string }

export function readKeyFiles(folder: string): KeyFiles {
  const files: KeyFiles = {}
  for (const name of keyFileNames) {
    if (existsSync(join(folder, name))) files[name] = readFileSync(join(folder, name), 'utf8')
  }
  return files
}

/** The key id that `secrets.ts` derives from a key file's text; null when the text is not a key. */
export function keyIdOf(text: string): string | null {
  const key = Buffer.from(text.trim(), 'hex')
  return key.length === 32 ? createHash('sha256').update(key).digest('hex').slice(0, 8) : null
}

/** The id of the folder's key, null when it has none. */
export function folderKeyId(folder: string): string | null {
  const path = join(folder, keyFileName)
  return existsSync(path) ? keyIdOf(readFileSync(path, 'utf8')) : null
}
