/** Runs the manual command once through each kind of its rounds. */
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { bunProgram, run } from '../support/process.ts'
import { isFull } from '../support/runs.ts'

const program = join(import.meta.dir, 'rounds.ts')

async function rounds(...args: string[]): Promise<[stdout: string, stderr: string, code: number]> {
  const command = [...bunProgram(program), ...args]
  const child = run(command, { cwd: import.meta.dir, env: { PATH: process.env['PATH'] ?? '' } })
  const code = await child.exited
  return [child.stdout(), child.stderr(), code]
}

test('four kill rounds report nothing lost, duplicated or damaged', async () => {
  expect(await rounds('--rounds', '4', '--rest', isFull ? '0' : '20')).toEqual([
    expect.stringMatching(
      /seed \d+[\s\S]*kills: \{"ingest":2,"taking":1,"migration":1\}\n\d+ acknowledged, 0 lost, 0 doubled, verify: 0 faults\n/,
    ),
    '',
    0,
  ])
}, 120_000)

test('a kill while a segment is sealed or repacked reports nothing lost, duplicated or damaged', async () => {
  expect(await rounds('--sealing', '--rounds', isFull ? '3' : '1')).toEqual([
    expect.stringMatching(/kills: \{".*\}\n\d+ acknowledged, 0 lost, 0 doubled, verify: 0 faults\n/),
    '',
    0,
  ])
}, 180_000)
