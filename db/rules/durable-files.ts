/** Writes small files so that a power cut leaves them whole or not at all, and their names with them. */
import {
  closeSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname } from 'node:path'

/** Makes the names in a folder survive a power cut, which syncing the files in it does not. */
export function syncFolder(path: string): void {
  syncFile(path)
}

export function syncFile(path: string): void {
  const file = openSync(path, 'r')
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

/** Replaces the file whole: after a power cut either the old text or the new one is there. */
export function writeWhole(path: string, text: string): void {
  const draft = `${path}.tmp`
  try {
    writeDraft(draft, text)
    renameSync(draft, path)
  } catch (error) {
    rmSync(draft, { force: true })
    throw error
  }
  syncFolder(dirname(path))
}

/**
 * Makes a file that is never replaced, such as a key, and returns what it holds then: another process may have made it
 * at the same moment.
 */
export function makeOnce(path: string, text: string): string {
  const draft = `${path}.new`
  rmSync(draft, { force: true })
  writeDraft(draft, text)
  try {
    linkSync(draft, path) // unlike a rename, never replaces a file that appeared in between
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
  } finally {
    rmSync(draft, { force: true })
  }
  syncFolder(dirname(path))
  return readFileSync(path, 'utf8')
}

function writeDraft(path: string, text: string): void {
  const file = openSync(path, 'w', 0o600)
  try {
    writeFileSync(file, text)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}
