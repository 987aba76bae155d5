/** A few rounds of kills and rotations of an access log; `access-logs.ts` runs more of them. */
import { expect, test } from 'bun:test'
import { logRounds } from './access-logs.ts'
import { anySeed, seeded } from './seeded.ts'

const rounds = Number(process.env['CRASH_ROUNDS'] ?? 3)
const seed = Number(process.env['CRASH_SEED'] ?? anySeed())

test(`every line of a log is stored once over ${rounds} kills and rotations (seed ${seed})`, async () => {
  const { lost, doubled, people, peopleWritten, verify } = await logRounds(rounds, seeded(seed))
  expect({ lost, doubled, people, verify: verify.code }).toEqual({
    lost: [],
    doubled: [],
    people: peopleWritten,
    verify: 0,
  })
}, 120_000)
