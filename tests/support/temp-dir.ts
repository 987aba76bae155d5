/** Temporary folders for tests: below the system's own, mode 0700, removed by `using` or when the process ends. */
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

/** `using dir = tempDir()` inside one test; call `remove()` in `afterAll` where a whole file shares it. */
export function tempDir(label = 'test'): TempDir {
  const path = mkdtempSync(join(tmpdir(), `sightglass-${label}-`))
  alive.add(path)
  const remove = (): void => {
    alive.delete(path)
    rmSync(path, { recursive: true, force: true })
  }
  return { path, join: (...names) => join(path, ...names), remove, [Symbol.dispose]: remove }
}
