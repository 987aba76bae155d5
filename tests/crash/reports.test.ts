/** A few kills while scheduled reports are written and mailed; `reports.ts` runs more of them. */
import { expect, test } from 'bun:test'
import { reportRounds } from './reports.ts'
import { anySeed, seeded } from './seeded.ts'

const rounds = Number(process.env['CRASH_ROUNDS'] ?? 3)
const seed = Number(process.env['CRASH_SEED'] ?? anySeed())

test(`two nodes make each report once over ${rounds} kills of both (seed ${seed})`, async () => {
  const { wrong, kills } = await reportRounds(rounds, seeded(seed), 2)
  expect({ wrong, kills }).toEqual({ wrong: [], kills: 2 * rounds })
}, 240_000)

test(`each report exists once per period and receiver over ${rounds} kills (seed ${seed})`, async () => {
  const { wrong, kills } = await reportRounds(rounds, seeded(seed))
  expect({ wrong, kills }).toEqual({ wrong: [], kills: rounds })
}, 120_000)
