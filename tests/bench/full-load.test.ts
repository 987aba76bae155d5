/** At full load and overload: acknowledged events are stored, memory recovers, hostile values stay bounded. */
import { expect, test } from 'bun:test'
import { isFull } from '../support/runs.ts'
import { fullLoadBench, fullLoadTables } from './full-load.bench.ts'

const events = isFull ? 40_000 : 10_000

test(`full load, resends, overload and odd values over ${events} events`, async () => {
  const result = await (isFull
    ? fullLoadBench(events, 0.3)
    : fullLoadBench(events, 0.2, { seconds: 0.5, connections: 500 }))
  const text = fullLoadTables(result)
  console.log(text)
  expect([result.stored, text]).toEqual([result.acknowledged, text])
  expect([result.acknowledged > events, text]).toEqual([true, text])
  // 200,000 unbounded sites and types would need tens of megabytes.
  expect([result.hostile.metricsKiB < 5_000, text]).toEqual([true, text])
  expect([result.hostile.grewMiB < 200, text]).toEqual([true, text])
  // Idle machine: 0.4 over ten million events. The ids of a store this small fit into memory.
  expect([result.resends.oldPerSecond > result.resends.freshPerSecond / 10, text]).toEqual([true, text])
}, 120_000)
