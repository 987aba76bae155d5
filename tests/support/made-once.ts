/** Folders that every process of a run uses: the first that needs one makes it. */
import { existsSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { tempDir } from './temp-dir.ts'

/** The folder of the run, which `npm test` names. Without it each process makes its own. */
const ofRun = process.env['SIGHTGLASS_TEST_FOLDER']

const paths = new Map<string, Promise<string>>()

/** A folder that `make` fills. It lasts as long as the run, and nobody may change it. */
export function madeOnce(name: string, make: (folder: string) => Promise<void>): Promise<string> {
  const path = paths.get(name) ?? madeBy(make, ofRun === undefined ? null : join(ofRun, name))
  paths.set(name, path)
  return path
}

async function madeBy(make: (folder: string) => Promise<void>, shared: string | null): Promise<string> {
  if (shared !== null && existsSync(shared)) return shared
  const dir = tempDir('made') // removed at the end of the process, unless it moves
  await make(dir.path)
  if (shared === null) return dir.path
  try {
    renameSync(dir.path, shared)
  } catch {
    // Another process was first.
  }
  return shared
}
