/** Builds the libraries that tests preload between a process and its system calls. */
import { join } from 'node:path'

/** Why no library can be built here; null when one can. */
export function whyNoPreload(): string | null {
  if (process.platform !== 'linux') return 'calls are replaced with LD_PRELOAD, which is of Linux'
  return Bun.which('gcc') === null
    ? 'there is no gcc to build them with (Debian: apt-get install gcc libc6-dev)'
    : null
}

/** Compiles `name`.c of this folder into another folder and returns the library's path. */
export function buildPreload(name: string, folder: string): string {
  const library = join(folder, `${name}.so`)
  const source = join(import.meta.dir, `${name}.c`)
  const built = Bun.spawnSync(['gcc', '-shared', '-fPIC', '-O1', '-Wall', '-Werror', '-o', library, source])
  if (built.exitCode !== 0) throw new Error(`gcc failed:\n${built.stderr.toString()}`)
  return library
}
