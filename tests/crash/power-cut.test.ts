/** Power cuts: writes that were not synced are lost in whole or in part, and nothing acknowledged is among them. */
import { expect, test } from 'bun:test'
import { mkdirSync } from 'node:fs'
import { tempDir } from '../support/temp-dir.ts'
import { ingestRound } from './ingest-round.ts'
import { powerCut } from './power-cut.ts'
import { buildPreload, whyNoPreload } from './preload.ts'
import { anySeed, seeded } from './seeded.ts'
import { takingRound } from './deletion-round.ts'

const missing = whyNoPreload()
if (missing !== null) console.warn(`tests of power cuts are left out: ${missing}`)

const seed = Number(process.env['CRASH_SEED'] ?? anySeed())

test.if(missing === null)(
  `power cuts lose nothing that was acknowledged (CRASH_SEED=${seed})`,
  async () => {
    using dir = tempDir('power-cut')
    const library = buildPreload('unsynced', dir.path)
    const { below: randomBelow } = seeded(seed)
    const notes = dir.join('notes')
    for (const folder of ['notes', 'ingest', 'taking']) mkdirSync(dir.join(folder))
    let undone = 0
    const round = (number: number, folder: string) => ({
      folder,
      number,
      killAfterMs: randomBelow(600),
      ...powerCut(library, folder, notes, randomBelow, (writes) => void (undone += writes)),
    })
    const taking = await takingRound(round(0, dir.join('taking')))
    expect(taking).toMatchObject({ lost: 0, doubled: 0, faults: [] })
    let stored = 0
    // Until a cut falls between a write and its sync, as most do.
    for (let number = 0; number < 3 || (undone === 0 && number < 30); number++) {
      const batchEvents = [1_000, 1, 250][number % 3]!
      const result = await ingestRound(round(number, dir.join('ingest')), batchEvents, stored)
      expect(result).toMatchObject({ lost: 0, doubled: 0, faults: [] })
      stored = result.stored
    }
    expect(undone).toBeGreaterThan(0)
  },
  180_000,
)
