/**
 * Kills or fails a backup, a restore and its undo at their file operations. Oracle: the data is either the old or the
 * restored one, complete. Repeating and undoing gives the original, and a later backup works. SIGHTGLASS_EVERY_STEP=1
 * tests every step; otherwise every n-th, beginning at a random one.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { cpSync, existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { openDatabaseAdmin, openStore } from '../../db/open.ts'
import { listBackups } from '../../server/operations/backup/backup-folder.ts'
import { checkBackup } from '../../server/operations/backup/check.ts'
import { createBackup } from '../../server/operations/backup/create.ts'
import { restoreBackup, undoRestore } from '../../server/operations/backup/restore.ts'
import { openDataFolder } from '../../server/runtime/open-data-folder.ts'
import { makeBatch, makeEvent } from '../store/make.ts'
import { tempDir, type TempDir } from '../support/temp-dir.ts'
import { errno } from './failing-disk.ts'
import { buildPreload, whyNoPreload } from './preload.ts'
import { anySeed, seeded } from './seeded.ts'
import { runSteps, type StepsWanted } from './steps.ts'

setDefaultTimeout(1_800_000)

const missing = whyNoPreload()
if (missing !== null) console.warn(`tests of interrupted backups are left out: ${missing}`)
const stepTest = test.if(missing === null)
const everyStep = process.env['SIGHTGLASS_EVERY_STEP'] === '1'
const sampled = 2
const seed = Number(process.env['CRASH_SEED'] ?? anySeed())
const clock = { now: () => Date.now() }

let temp: TempDir
let library: string
let backup: string
const data = () => temp.join('data')

/** Two events in the backup, a third after it, and a folder from which each round begins. */
beforeAll(async () => {
  temp = tempDir('backup-steps')
  if (missing === null) library = buildPreload('steps', temp.path)
  const dataDir = temp.join('original')
  const store = await openDataFolder(dataDir, clock)
  const { id } = (await store.orgs.find('default'))!
  await store.events.append(makeBatch(id, [makeEvent('a'), makeEvent('b')]))
  const dir = temp.join('first')
  backup = (await createBackup({ dataDir, dir, reason: 'manual', passphrase: null, clock })).path
  await store.events.append(makeBatch(id, [makeEvent('c')]))
  await store.close()
})
afterAll(() => temp.remove())

function begin(): void {
  rmSync(data(), { recursive: true, force: true })
  cpSync(temp.join('original'), data(), { recursive: true })
}

const child = (args: string[], watchedFolder: string, hit?: StepsWanted['hit']): StepsWanted => {
  const program = join(import.meta.dir, 'backup-child.ts')
  const stepOptions = { library, under: watchedFolder, log: temp.join('steps'), program, args }
  return hit === undefined ? stepOptions : { ...stepOptions, hit }
}

/** 3: the original; 2: restored. Rejects for a folder that cannot be opened or has a broken audit trail. */
async function eventsIn(dataDir: string): Promise<number> {
  const store = await openStore({ folder: dataDir, now: clock.now() })
  const { total } = await store.events.overview((await store.orgs.find('default'))!.id)
  await store.close()
  expect((await openDatabaseAdmin(dataDir).verifyAudit()).faults).toEqual([])
  return total
}

const restore = () => {
  const restoreOptions = { passphrase: null, keyFile: null, overwrite: true, allowPlain: false, clock }
  return restoreBackup({ dataDir: data(), path: backup, ...restoreOptions })
}

const numbered = new Map<string, string[]>()

/** The steps of an undisturbed run, which also shows that it works. */
async function stepsOf(verb: string, run: () => Promise<string[]>): Promise<string[]> {
  const steps = numbered.get(verb) ?? (await run())
  numbered.set(verb, steps)
  return steps
}

function chosen(steps: string[]): number[] {
  if (everyStep) return steps.map((_, index) => index)
  const stride = Math.ceil(steps.length / sampled)
  const first = seeded(seed).below(stride)
  return steps.flatMap((_, index) => (index % stride === first ? [index] : []))
}

/** Calls while the staged database closes, and how often each is made. */
const stagedFaults: [name: string, path: string, calls: number][] = [
  ['fsync', '.restoring/sightglass.lock', 2],
  ['unlink', '.restoring/sightglass.db-shm', 1],
  ['unlink', '.restoring/sightglass.db-wal', 1],
  ['fsync', '.restoring/sightglass.db', 2],
]

for (const [name, path, calls] of stagedFaults)
  stepTest(
    `a restore ends, and leaves a folder that opens, when ${name} of ${path} fails`,
    async () => {
      for (let callIndex = 0; callIndex < calls; callIndex++) {
        begin()
        const hit = { at: callIndex, how: errno.ENOSPC, only: [name, path] satisfies [string, string] }
        const { code } = await runSteps(child(['restore', data(), backup], data(), hit))
        const events = await eventsIn(data())
        expect([callIndex, [2, 3].includes(events)]).toEqual([callIndex, true])
        if (code !== 0) expect([callIndex, events]).toEqual([callIndex, 3])
      }
    },
    60_000,
  )

for (const fault of ['kill', errno.ENOSPC] as const) {
  stepTest(
    `restore, ${fault}: the data is complete; restored again and undone, it is the original`,
    async () => {
      const steps = await stepsOf('restore', async () => {
        begin()
        const whole = await runSteps(child(['restore', data(), backup], data()))
        expect(await eventsIn(data())).toBe(2)
        return whole.steps
      })
      for (const stepIndex of chosen(steps)) {
        begin()
        const { code } = await runSteps(
          child(['restore', data(), backup], data(), { at: stepIndex, how: fault }),
        )
        const step = `seed ${seed}, ${stepIndex}: ${steps[stepIndex]}`
        const isDone = !existsSync(join(data(), 'restore-unfinished'))
        const events = isDone ? await eventsIn(data()) : null
        if (isDone) expect([step, [2, 3].includes(events!)]).toEqual([step, true])
        if (fault !== 'kill' && code !== 0 && isDone) expect([step, events]).toEqual([step, 3])
        if (events !== 2) {
          await restore()
          expect([step, await eventsIn(data())]).toEqual([step, 2])
        }
        await undoRestore(data(), clock)
        expect([step, await eventsIn(data())]).toEqual([step, 3])
      }
    },
  )

  stepTest(`undo, ${fault}: the data is complete; after another undo it is the original`, async () => {
    begin()
    await restore()
    cpSync(data(), temp.join('restored'), { recursive: true })
    const steps = await stepsOf('undo', async () => {
      const whole = await runSteps(child(['undo', data(), ''], data()))
      expect(await eventsIn(data())).toBe(3)
      return whole.steps
    })
    for (const stepIndex of chosen(steps)) {
      rmSync(data(), { recursive: true })
      cpSync(temp.join('restored'), data(), { recursive: true })
      await runSteps(child(['undo', data(), ''], data(), { at: stepIndex, how: fault }))
      const step = `seed ${seed}, ${stepIndex}: ${steps[stepIndex]}`
      const isOpen = !existsSync(join(data(), 'restore-unfinished'))
      const events = isOpen ? await eventsIn(data()) : null
      if (events === 3) continue
      if (isOpen) expect([step, events]).toEqual([step, 2])
      await undoRestore(data(), clock)
      expect([step, await eventsIn(data())]).toEqual([step, 3])
    }
    rmSync(temp.join('restored'), { recursive: true })
  })

  stepTest(`backup, ${fault}: every named backup is complete, and a later one works`, async () => {
    begin()
    const dir = temp.join('backups')
    const steps = await stepsOf('backup', async () => {
      const whole = await runSteps(child(['backup', data(), dir], dir))
      rmSync(dir, { recursive: true })
      return whole.steps
    })
    for (const stepIndex of chosen(steps)) {
      await runSteps(child(['backup', data(), dir], dir, { at: stepIndex, how: fault }))
      const later = await createBackup({ dataDir: data(), dir, reason: 'manual', passphrase: null, clock })
      const step = `seed ${seed}, ${stepIndex}: ${steps[stepIndex]}`
      expect([step, (await listBackups(dir))[0]?.name]).toEqual([step, later.name])
      for (const { path } of await listBackups(dir)) expect((await checkBackup(path, null)).ok).toBe(true)
      expect([step, readdirSync(dir).filter((name) => name.startsWith('.'))]).toEqual([step, []])
      rmSync(dir, { recursive: true })
    }
  })
}
