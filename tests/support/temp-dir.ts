/** Temporary folders for tests, mode 0700, removed by `using` or when the process ends. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface TempDir extends Disposable {
  path: string
  /** Joins names below the folder. */
  join(...names: string[]): string
  remove(): void
}

const alive = new Set<string>()
process.once('exit', () => {
  for (const path of alive) rmSync(path, { recursive: true, force: true })
})

/**
 * Where tests make their folders: where the system has them, or in memory, in a folder that `npm test` names. While
 * each commit waits for a disk, threads sleep and wake up again, a third of a store's processor time.
 */
export function tempRoot(): string {
  return process.env['SIGHTGLASS_TEST_FOLDER'] ?? tmpdir()
}

/**
 * `using dir = tempDir()` inside one test; call `remove()` in `afterAll` where a whole file shares it. A test about the
 * disk passes `below`, because `tempRoot()` may be in memory.
 */
export function tempDir(label = 'test', parent = tempRoot()): TempDir {
  const path = mkdtempSync(join(parent, `sightglass-${label}-`))
  alive.add(path)
  const remove = (): void => {
    alive.delete(path)
    rmSync(path, { recursive: true, force: true })
  }
  return { path, join: (...names) => join(path, ...names), remove, [Symbol.dispose]: remove }
}
