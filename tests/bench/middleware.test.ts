/** The middleware and the recorder of tools cost a small multiple of the least that a recorder does. */
import { expect, test } from 'bun:test'
import { middlewareBench, middlewareTable } from './middleware.bench.ts'

test('a request and a call of a tool cost a few times their floor', async () => {
  const results = await middlewareBench(4_000)
  console.log(middlewareTable(results))
  for (const { floor, agent, before: timesBefore, signed, person, bareTool, recordedTool } of results) {
    // On an idle machine: 4, 1, 1, 1 and 4. The bounds allow for a machine busy with other suites.
    expect(agent.p50).toBeLessThan(12 * floor.p50)
    for (const waited of [timesBefore, signed, person]) expect(waited.p50).toBeLessThan(5 * floor.p50)
    expect(recordedTool.p50 - bareTool.p50).toBeLessThan(12 * floor.p50)
  }
}, 60_000)
