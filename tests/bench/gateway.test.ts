/** The gateway stays within bounds that a busy machine meets. */
import { expect, test } from 'bun:test'
import { gatewayBench, gatewayTables } from './gateway.bench.ts'

test('pages and exports over 30,000 events stay within their time and memory', async () => {
  const measured = await gatewayBench(30_000, 15)
  const text = gatewayTables(measured)
  for (const { what, p50Ms } of measured.asked)
    expect([what, p50Ms < 1_000, text]).toEqual([what, true, text])
  for (const { what, grewMiB } of measured.exports)
    expect([what, grewMiB < 150, text]).toEqual([what, true, text])
  expect([measured.exports[0]!.perSecond > 5_000, text]).toEqual([true, text])
})
