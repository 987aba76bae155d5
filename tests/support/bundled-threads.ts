/** Preloaded by `npm test`: starts the threads of a store from the bundle of the run instead of their sources. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

/** For the programs that tests start, see `bunProgram` in process.ts. */
process.env['SIGHTGLASS_TEST_THREADS'] = import.meta.path

const folder = join(import.meta.dir, '../../out/threads')

globalThis.Worker = new Proxy(globalThis.Worker, {
  construct: (target, [url, options]: [string | URL, WorkerOptions?]) =>
    new target(bundled(String(url)) ?? url, options),
})

function bundled(url: string): string | null {
  const name = /\/(db\/(?:copy|(?:sqlite|postgres)\/\w+)\/\w+)\.ts$/.exec(url)?.[1]
  const path = join(folder, `${name}.js`)
  return name !== undefined && existsSync(path) ? pathToFileURL(path).href : null
}
