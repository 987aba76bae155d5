/** kill -9 during retention, erasure and page release: the data is consistent, and nothing deleted returns. */
import { expect, test } from 'bun:test'
import { tempDir } from '../support/temp-dir.ts'
import { anySeed, seeded } from './seeded.ts'
import { takingRound } from './deletion-round.ts'

const rounds = 2
const seed = Number(process.env['CRASH_SEED'] ?? anySeed())

test(`killed at any moment, it loses and duplicates no remaining event (CRASH_SEED=${seed})`, async () => {
  using dir = tempDir('engine-delete')
  const { below } = seeded(seed)
  let taken = 0
  for (let number = 0; number < rounds; number++) {
    const found = await takingRound({ folder: dir.path, number, killAfterMs: below(500) })
    expect(found).toMatchObject({ lost: 0, doubled: 0, faults: [] })
    taken += found.taken
  }
  expect(taken).toBeGreaterThan(0)
}, 180_000)
