/** The last change of sources, to decide whether a build is stale. */
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** Newest modification below `paths`, in milliseconds. Includes folders, which change when a file is deleted. */
export function newestMtimeMs(paths: string[]): number {
  let newest = 0
  for (const path of paths) {
    if (!existsSync(path)) continue
    const stat = statSync(path)
    newest = Math.max(newest, stat.mtimeMs)
    if (!stat.isDirectory()) continue
    const children = readdirSync(path)
      .filter((name) => !name.includes('.test.'))
      .map((name) => join(path, name))
    newest = Math.max(newest, newestMtimeMs(children))
  }
  return newest
}
