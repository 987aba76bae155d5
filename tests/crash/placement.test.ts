/** Replacing files, killed or failed at every step: the old or the new files are there, whole. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { settlePlacement } from '../../db/sqlite/backup/place.ts'
import { tempDir, type TempDir } from '../support/temp-dir.ts'
import { errno } from './failing-disk.ts'
import { buildPreload, whyNoPreload } from './preload.ts'
import { runSteps, type StepsWanted } from './steps.ts'

setDefaultTimeout(180_000)

let temp: TempDir
let library: string
const missing = whyNoPreload()
if (missing !== null) console.warn(`tests of interrupted exchanges are left out: ${missing}`)
const stepTest = test.if(missing === null)
beforeAll(async () => {
  temp = tempDir('placement')
  if (missing !== null) return
  library = buildPreload('steps', temp.path)
  // From its sources each of the hundred starts costs three times the processor time.
  const { success } = await Bun.build({
    entrypoints: ['placement-child.ts', 'settle-child.ts'].map((name) => join(import.meta.dir, name)),
    outdir: temp.join('programs'),
    target: 'bun',
    format: 'cjs',
    bytecode: true,
  })
  expect(success).toBe(true)
})
afterAll(() => temp.remove())

type Files = { [name: string]: string }
const oldFiles: Files = {
  'sightglass.db': 'old',
  'audit-heads': 'old heads',
  'audit-checkpoints': 'old lines',
}
const newFiles: Files = { 'sightglass.db': 'new', 'audit-heads': 'new heads' }

function write(folder: string, files: Files): void {
  mkdirSync(folder, { recursive: true })
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
}

/** Of the folder itself, except the lock, which no exchange moves. */
function filesOf(folder: string): Files {
  const names = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isFile())
  const texts = names.map(({ name }): [string, string] => [name, readFileSync(join(folder, name), 'utf8')])
  return Object.fromEntries(texts.filter(([name]) => name !== 'sightglass.lock'))
}

const foldersOf = (folder: string) =>
  readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)

/** A folder before the exchange. An undo restores what an earlier restore moved aside. */
function prepare(kind: 'restore' | 'undo'): { folder: string; staged: string } {
  const folder = temp.join('data')
  rmSync(folder, { recursive: true, force: true })
  const staged = join(folder, kind === 'restore' ? '.restoring' : 'replaced-1')
  write(folder, oldFiles)
  write(staged, newFiles)
  return { folder, staged }
}

function createStepOptions(kind: 'restore' | 'undo', hit?: StepsWanted['hit']): StepsWanted {
  const { folder, staged } = prepare(kind)
  const program = temp.join('programs/placement-child.js')
  const child = { library, under: folder, log: temp.join('steps'), program, args: [kind, folder, staged] }
  return hit === undefined ? child : { ...child, hit }
}

for (const kind of ['restore', 'undo'] as const) {
  for (const fault of ['kill', 'fail'] as const) {
    stepTest(
      `${kind}, ${fault === 'kill' ? 'every step killed' : 'every other step failed with EIO or ENOSPC'}`,
      async () => {
        const whole = await runSteps(createStepOptions(kind))
        expect(whole).toMatchObject({ code: 0 })
        const folder = temp.join('data')
        expect(filesOf(folder)).toEqual(newFiles)
        expect(filesOf(join(folder, 'replaced-2'))).toEqual(oldFiles)
        // A kill before each step, and one of the two errors at every other one, because all run the same code.
        for (let stepIndex = 0; stepIndex < whole.steps.length; stepIndex += fault === 'kill' ? 1 : 2) {
          const error = stepIndex % 4 === 0 ? errno.EIO : errno.ENOSPC
          const stepped = await runSteps(
            createStepOptions(kind, { at: stepIndex, how: fault === 'kill' ? fault : error }),
          )
          const step = `${stepIndex}: ${whole.steps[stepIndex]}`
          const hadMarker = existsSync(join(folder, 'restore-unfinished'))
          settlePlacement({ folder, holder: process.pid })
          const isNew = stepped.code === 0 || filesOf(folder)['sightglass.db'] === 'new'
          expect([step, filesOf(folder)]).toEqual([step, isNew ? newFiles : oldFiles])
          // An interrupted restore is rolled back, so repeating it sets the old files aside.
          if (kind === 'restore' && hadMarker) expect([step, isNew]).toEqual([step, false])
          const keptNames = isNew ? ['replaced-2'] : kind === 'undo' ? ['replaced-1'] : []
          expect([step, foldersOf(folder).filter((name) => name !== '.restoring')]).toEqual([step, keptNames])
          if (isNew) expect(filesOf(join(folder, 'replaced-2'))).toEqual(oldFiles)
          else if (kind === 'undo') expect(filesOf(join(folder, 'replaced-1'))).toEqual(newFiles)
        }
      },
    )
  }
}

stepTest('a recovery that is killed at any of its steps is completed by the next one', async () => {
  const { steps } = await runSteps(createStepOptions('restore'))
  const third = steps.flatMap((step, index) => (step.startsWith('rename ') ? [index] : []))[2]!
  const folder = temp.join('data')
  const settle = temp.join('programs/settle-child.js')
  await runSteps(createStepOptions('restore', { at: third, how: 'kill' }))
  cpSync(folder, temp.join('third'), { recursive: true })
  const child = { library, under: folder, log: temp.join('steps'), program: settle, args: [folder] }
  const settled = await runSteps(child)
  expect(filesOf(folder)).toEqual(oldFiles)
  for (let stepIndex = 0; stepIndex < settled.steps.length; stepIndex++) {
    rmSync(folder, { recursive: true })
    cpSync(temp.join('third'), folder, { recursive: true })
    await runSteps({ ...child, hit: { at: stepIndex, how: 'kill' } })
    settlePlacement({ folder, holder: process.pid })
    expect([stepIndex, filesOf(folder), foldersOf(folder)]).toEqual([stepIndex, oldFiles, ['.restoring']])
  }
})
