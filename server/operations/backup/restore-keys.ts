/** Decides which key files a restore installs, and notices when the one that the backup's secrets need is missing. */
import { readFileSync } from 'node:fs'
import { AppError } from '../../errors.ts'
import { keyFileName } from '../../system/secrets.ts'
import { folderKeyId, keyIdOf, type KeyFiles } from './key-files.ts'
import type { Manifest } from './manifest.ts'

/** The key files that come along, and whether the one that the backup's secrets need is then still missing. */
export function keysToInstall(
  { dataDir, keyFile }: { dataDir: string; keyFile: string | null },
  { keyId }: Manifest,
  carried: KeyFiles | null, // null: in an encrypted backup that was not unpacked
): { files: KeyFiles; missing: boolean } {
  if (carried === null) return { files: {}, missing: false }
  const files = { ...carried }
  if (keyFile !== null) files[keyFileName] = readKeyFile(keyFile, keyId)
  const installed = files[keyFileName]
  const inPlace = installed === undefined ? folderKeyId(dataDir) : keyIdOf(installed)
  return { files, missing: keyId !== null && inPlace !== keyId }
}

function readKeyFile(path: string, keyId: string | null): string {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch {
    throw new AppError('not_found', `The key file ${path} cannot be read.`)
  }
  if (keyId !== null && keyIdOf(text) !== keyId) {
    throw new AppError('conflict', `${path} is not the key that the backup's secrets were sealed under.`)
  }
  return text
}
