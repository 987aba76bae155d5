/** Writes small files so that after a power cut the file and its name exist completely or not at all. */
import {
  closeSync,
  constants,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname } from 'node:path'

/** Makes the names in a folder survive a power cut. Syncing the files alone does not. */
export function syncFolder(path: string): void {
  syncFile(path)
}

/** Like `syncFolder`, without blocking the thread: the folder may be on a share that hangs. */
export async function syncFolderLater(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

export function syncFile(path: string): void {
  const file = openSync(path, 'r')
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

/** Replaces a file atomically: after a power cut it has either the old text or the new one. */
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
 * Creates a file that is never replaced, such as a key, and returns its contents: another process may have created it
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

const { O_CREAT, O_NOFOLLOW, O_NONBLOCK, O_TRUNC, O_WRONLY } = constants

/** In a folder that others use, a link or a pipe may have the name of the draft: it is not written to. */
function writeDraft(path: string, text: string): void {
  const file = openSync(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK, 0o600)
  try {
    writeFileSync(file, text)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}
