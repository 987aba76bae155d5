/** Judging an address costs a few times what parsing its text costs, however many networks are known. */
import { expect, test } from 'bun:test'
import { judgeBench, judgeTable } from './judge.bench.ts'

test('a verdict takes less than a microsecond', async () => {
  const result = await judgeBench({ rounds: 4, roundMs: 40 })
  console.log(judgeTable(result))
  // The bounds allow for a machine busy with other suites.
  expect(result.bundled).toBeLessThan(10 * result.parse)
  expect(result.v6).toBeLessThan(10 * result.parse)
  expect(result.million).toBeLessThan(15 * result.parse)
})
