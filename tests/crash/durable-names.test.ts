/** Every new file's folder is synced, so that a power cut cannot lose a key that has already signed. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { tempDir, type TempDir } from '../support/temp-dir.ts'
import { buildPreload, whyNoPreload } from './preload.ts'
import { runSteps } from './steps.ts'

const missing = whyNoPreload()
if (missing !== null) console.warn(`tests of names that last are left out: ${missing}`)

let temp: TempDir
beforeAll(() => void (temp = tempDir('durable-names')))
afterAll(() => temp.remove())

const files = [
  'secret.key',
  'audit-signing.key',
  'audit-checkpoints',
  'one.backup.proof.json',
  'last-run.json',
  'clock',
  'export.csv',
  'sink/events.ndjson',
]

test.if(missing === null)(
  'every file, then its folder, is synced after it was renamed into place',
  async () => {
    const library = buildPreload('steps', temp.path)
    const folder = temp.join('data')
    mkdirSync(folder)
    const program = join(import.meta.dir, 'names-child.ts')
    const child = { library, under: folder, log: temp.join('steps'), program, args: [folder] }
    const { steps, code, stderr } = await runSteps(child)
    expect([code, stderr]).toEqual([0, ''])
    for (const file of files) {
      const path = join(folder, file)
      expect([file, existsSync(path)]).toEqual([file, true])
      // Renamed or linked to its name, or created under it and then synced.
      const nameIndex = steps.findLastIndex((step) => [`rename ${path}`, `link ${path}`].includes(step))
      const creationIndex = nameIndex >= 0 ? nameIndex : steps.indexOf(`fsync ${path}`)
      expect([file, creationIndex >= 0]).toEqual([file, true])
      expect([file, steps.indexOf(`fsync ${dirname(path)}`, creationIndex) > creationIndex]).toEqual([
        file,
        true,
      ])
    }
  },
  60_000,
)
