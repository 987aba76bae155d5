/** kill -9 during ingest, round after round on one folder: nothing acknowledged is lost, nothing is stored twice. */
import { expect, test } from 'bun:test'
import { tempDir } from '../support/temp-dir.ts'
import { ingestRound } from './ingest-round.ts'
import { anySeed, seeded } from './seeded.ts'

const batchSizes = [1_000, 1, 250] as const
const seed = Number(process.env['CRASH_SEED'] ?? anySeed())

test(`acknowledged events are stored once, however often the process is killed (CRASH_SEED=${seed})`, async () => {
  using dir = tempDir('engine-kill')
  const { below: randomBelow } = seeded(seed)
  let stored = 0
  for (const [number, batchEvents] of batchSizes.entries()) {
    const round = { folder: dir.path, number, killAfterMs: 100 + randomBelow(600) }
    const result = await ingestRound(round, batchEvents, stored)
    expect(result).toMatchObject({ lost: 0, doubled: 0, faults: [] })
    expect(result.acknowledged).toBeGreaterThan(0)
    stored = result.stored
  }
}, 180_000)
