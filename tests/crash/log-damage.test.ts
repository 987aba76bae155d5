/**
 * A bit flipped in the database's log after kill -9. Oracle: every acknowledged event is stored, or the start says that
 * the log is damaged. SQLite alone stops at the flipped frame and drops later transactions without an error.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import {
  closeSync,
  cpSync,
  mkdirSync,
  openSync,
  readSync,
  readdirSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { StoreError } from '../../db/contract/errors.ts'
import { openDatabaseAdmin, openStore } from '../../db/open.ts'
import { noon } from '../store/make.ts'
import { runs } from '../support/runs.ts'
import { tempDir, type TempDir } from '../support/temp-dir.ts'
import { orgId } from './engine-events.ts'
import { killAfter, startProgram, wholeLines } from './round.ts'
import { anySeed, seeded, type Seeded } from './seeded.ts'

setDefaultTimeout(180_000)

const seed = Number(process.env['CRASH_SEED'] ?? anySeed())
const frameBytes = 24 + 8_192

let temp: TempDir
let killed: string
let acknowledged = 0 // events

/** Killed while it writes, three times, so that the log has been begun anew and has been recovered. */
beforeAll(async () => {
  temp = tempDir('log-damage')
  killed = temp.join('killed')
  mkdirSync(killed, { mode: 0o700 })
  for (const [round, batchEvents] of [300, 1, 40].entries()) {
    const writer = startProgram('engine-writer.ts', { folder: killed }, round, batchEvents)
    await writer.line((line) => line, 40_000)
    await killAfter(writer, 400)
    acknowledged += wholeLines(writer).length * batchEvents
  }
})
afterAll(() => temp.remove())

/** Opens the folder; the number of its events, or what the start reports. */
async function startIn(folder: string): Promise<number | string> {
  try {
    const store = await openStore({ folder, now: noon })
    const { total } = await store.events.overview(orgId)
    await store.close()
    return total
  } catch (error) {
    if (error instanceof StoreError && error.kind === 'incomplete') return error.message
    throw error
  }
}

function flip(path: string, offset: number, bit: number): void {
  const file = openSync(path, 'r+')
  const byte = Buffer.alloc(1)
  readSync(file, byte, 0, 1, offset)
  byte[0]! ^= 1 << bit
  writeSync(file, byte, 0, 1, offset)
  closeSync(file)
}

/** A third each in the header of the log, in headers of frames, and anywhere. */
function offsetIn(logBytes: number, { below: randomBelow }: Seeded): number {
  const kind = randomBelow(3)
  if (kind === 0) return randomBelow(32)
  const frames = Math.floor((logBytes - 32) / frameBytes)
  return kind === 1 ? 32 + randomBelow(frames) * frameBytes + randomBelow(24) : randomBelow(logBytes)
}

test(`a flipped bit is reported, or every acknowledged event is there (CRASH_SEED=${seed})`, async () => {
  const random = seeded(seed)
  using sound = tempDir('log-damage')
  cpSync(killed, sound.path, { recursive: true })
  const whole = await startIn(sound.path)
  expect(whole).toBeGreaterThanOrEqual(acknowledged)
  let reported = 0
  for (let round = 0; round < runs(90); round++) {
    using dir = tempDir('log-damage')
    cpSync(killed, dir.path, { recursive: true })
    const log = dir.join('sightglass.db-wal')
    const place = { offset: offsetIn(statSync(log).size, random), bit: random.below(8) }
    flip(log, place.offset, place.bit)
    const outcome = await startIn(dir.path)
    if (typeof outcome === 'string') reported++
    if (outcome !== whole)
      expect([place, outcome]).toEqual([place, expect.stringContaining('log sightglass.db-wal is damaged')])
  }
  expect(reported).toBeGreaterThan(0)
})

test('every command reports the damage, and accepting it keeps a copy of the log', async () => {
  using dir = tempDir('log-damage')
  cpSync(killed, dir.path, { recursive: true })
  const log = dir.join('sightglass.db-wal')
  const bytes = statSync(log).size
  flip(log, 32 + frameBytes + 1_000, 3)
  const message = `the log sightglass.db-wal is damaged at byte ${32 + frameBytes}`
  const admin = openDatabaseAdmin(dir.path)
  for (const ask of [() => admin.verifyEvents(), () => admin.facts(), () => admin.checkUp(noon)])
    expect(String(await ask().catch((error: unknown) => error))).toContain(message)
  const copy = admin.backups.by === 'copy' ? admin.backups.copyTo(dir.join('copy')) : null
  expect(String(await copy?.catch((error: unknown) => error))).toContain(message)
  expect(await startIn(dir.path)).toContain(message)
  expect(statSync(log).size).toBe(bytes)

  const store = await openStore({ folder: dir.path, now: noon, acceptLoss: true })
  await store.close()
  const aside = readdirSync(dir.path).find((name) => name.startsWith('set-aside-'))
  expect(statSync(join(dir.path, aside ?? '', 'sightglass.db-wal')).size).toBe(bytes)
  expect(typeof (await startIn(dir.path))).toBe('number')
  expect((await admin.verifyEvents()).faults).toEqual([])
})

test('without the shared memory, only a transaction that a power cut could have taken is missed', async () => {
  using dir = tempDir('log-damage')
  cpSync(killed, dir.path, { recursive: true })
  rmSync(dir.join('sightglass.db-shm'))
  flip(dir.join('sightglass.db-wal'), 32 + frameBytes + 1_000, 3)
  expect(await startIn(dir.path)).toContain('is damaged at byte')
})
