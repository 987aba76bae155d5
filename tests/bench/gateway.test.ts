/** The gateway stays within bounds that a busy machine meets. */
import { expect, test } from 'bun:test'
import { isFull } from '../support/runs.ts'
import { gatewayBench, gatewayTables } from './gateway.bench.ts'

const events = isFull ? 30_000 : 12_000

test(`pages and exports over ${events} events stay within their time and memory`, async () => {
  const measured = await gatewayBench(events, isFull ? 15 : 5)
  const text = gatewayTables(measured)
  for (const { what: question, p50Ms } of measured.asked)
    expect([question, p50Ms < 1_000, text]).toEqual([question, true, text])
  for (const { what: exportName, grewMiB } of measured.exports)
    expect([exportName, grewMiB < 150, text]).toEqual([exportName, true, text])
  expect([measured.exports[0]!.perSecond > 5_000, text]).toEqual([true, text])
})
