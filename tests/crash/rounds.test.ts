/** Runs the manual command once through its four kinds of rounds. */
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { bunProgram, run } from '../support/process.ts'

const program = join(import.meta.dir, 'rounds.ts')

test('four kill rounds report nothing lost, duplicated or damaged', async () => {
  const command = [...bunProgram(program), '--rounds', '4']
  const child = run(command, { cwd: import.meta.dir, env: { PATH: process.env['PATH'] ?? '' } })
  const code = await child.exited
  expect([child.stdout(), child.stderr(), code]).toEqual([
    expect.stringMatching(
      /seed \d+[\s\S]*kills: \{"ingest":2,"taking":1,"migration":1\}\n\d+ acknowledged, 0 lost, 0 doubled, verify: 0 faults\n/,
    ),
    '',
    0,
  ])
}, 120_000)
