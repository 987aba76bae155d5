/** Writes a small file so that after a power cut it is there whole or not at all. */
import { closeSync, fsyncSync, openSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { syncDirectory } from '../sync-directory.ts'

export function writeWhole(path: string, text: string): void {
  const file = openSync(`${path}.tmp`, 'w', 0o600)
  try {
    writeFileSync(file, text)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  renameSync(`${path}.tmp`, path)
  syncDirectory(dirname(path))
}
