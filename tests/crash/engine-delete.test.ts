/** kill -9 during retention, erasure and page release: the data is consistent, and nothing deleted returns. */
import { expect, test } from 'bun:test'
import { tempDir } from '../support/temp-dir.ts'
import { anySeed, seeded } from './seeded.ts'
import { takingRound } from './deletion-round.ts'

const rounds = 2
const seed = Number(process.env['CRASH_SEED'] ?? anySeed())

test(`killed at any moment, it loses and duplicates no remaining event (CRASH_SEED=${seed})`, async () => {
  using dir = tempDir('engine-delete')
  const { below: randomBelow } = seeded(seed)
  let takenCount = 0
  for (let number = 0; number < rounds; number++) {
    const result = await takingRound({ folder: dir.path, number, killAfterMs: randomBelow(500) })
    expect(result).toMatchObject({ lost: 0, doubled: 0, faults: [] })
    takenCount += result.taken
  }
  expect(takenCount).toBeGreaterThan(0)
}, 180_000)
