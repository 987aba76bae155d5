/** Runs the manual command once, through the faults that kill a process. */
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { hasHaproxy } from '../support/haproxy.ts'
import { bunProgram, run } from '../support/process.ts'

const program = join(import.meta.dir, 'nodes.ts')

test.if(hasHaproxy)(
  'three nodes through kills of a node, a back end and two primaries lose and repeat nothing',
  async () => {
    const options = ['--faults', '3', '--each', '2', '--only', 'killed', '--snapshots', '200']
    const { PATH = '', SIGHTGLASS_TEST_BINARY = '' } = process.env
    const cwd = join(import.meta.dir, '../..') // where a stale executable is built
    const child = run([...bunProgram(program), ...options], { cwd, env: { PATH, SIGHTGLASS_TEST_BINARY } })
    const code = await child.exited
    expect([child.stdout(), child.stderr(), code]).toEqual([
      expect.stringMatching(
        /200 snapshots from \d+ to \d+ events: .* differ in 0 \[\]\n[^]*\n\d{3,} acknowledged, 0 lost, 0 doubled, 0 deliveries by two owners, 0 other faults\n/,
      ),
      '',
      0,
    ])
  },
  150_000,
)
