/** A few kills while alerts open and resolve; `alerts.ts` runs more of them. */
import { expect, test } from 'bun:test'
import { alertRounds } from './alerts.ts'
import { anySeed, seeded } from './seeded.ts'

const rounds = Number(process.env['CRASH_ROUNDS'] ?? 2)
const seed = Number(process.env['CRASH_SEED'] ?? anySeed())

test(`no alert is lost or doubled over ${rounds * 2} kills (seed ${seed})`, async () => {
  const { wrong, kills } = await alertRounds(rounds, seeded(seed))
  expect({ wrong, kills }).toEqual({ wrong: [], kills: rounds * 2 })
}, 120_000)

test(`two nodes send each alert once over ${rounds * 2} kills of either (seed ${seed})`, async () => {
  const { wrong, kills } = await alertRounds(rounds, seeded(seed), 2)
  expect({ wrong, kills }).toEqual({ wrong: [], kills: rounds * 2 })
}, 240_000)
