/** Makes the names in a directory survive a power cut, which syncing the files in it does not. */
import { closeSync, fsyncSync, openSync } from 'node:fs'

export function syncDirectory(path: string): void {
  const directory = openSync(path, 'r')
  try {
    fsyncSync(directory)
  } finally {
    closeSync(directory)
  }
}
