/** Files that a command writes where a person says: never through a symbolic link, which may lead anywhere. */
import { lstatSync, type Stats } from 'node:fs'
import { dirname, isAbsolute, join, relative, sep } from 'node:path'
import { AppError } from '../errors.ts'

/** What is there, without following a link; null when nothing is. */
function entryAt(path: string): Stats | null {
  return lstatSync(path, { throwIfNoEntry: false }) ?? null
}

/**
 * Throws when `path`, or a folder between `base` and it, is a symbolic link. Folders above `base` are the choice of
 * whoever set up the machine.
 */
export function requireNoLink(path: string, base = dirname(path)): void {
  const relativePath = relative(base, path)
  const isBelow = relativePath !== '' && !isAbsolute(relativePath) && relativePath.split(sep)[0] !== '..'
  const names = isBelow ? relativePath.split(sep) : []
  let current = base
  for (const place of isBelow ? names.map((name) => (current = join(current, name))) : [path]) {
    if (entryAt(place)?.isSymbolicLink() !== true) continue
    throw new AppError('conflict', `${place} is a symbolic link, and files are not written through links.`, {
      hint: 'name the file that it leads to, or remove the link',
    })
  }
}
