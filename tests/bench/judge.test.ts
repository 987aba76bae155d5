/** Judging an address costs a few times what parsing its text costs, however many networks are known. */
import { expect, test } from 'bun:test'
import { judgeBench, judgeTable } from './judge.bench.ts'

test('a verdict takes less than a microsecond', async () => {
  const result = await judgeBench({ rounds: 4, roundMs: 40, networks: 100_000 })
  console.log(judgeTable(result))
  // On an idle machine: 2.5. The bounds allow for a machine busy with other suites.
  for (const judged of [result.bundled, result.v6, result.many])
    expect(judged).toBeLessThan(10 * result.parse)
})
