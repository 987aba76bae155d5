/** An organization is served and never rejected while another one is hostile in every way at once. */
import { expect, test } from 'bun:test'
import { isFull } from '../support/runs.ts'
import { neighboursBench, neighboursTable } from './neighbours.bench.ts'

test('seconds beside a hostile organization of thousands of events', async () => {
  const found = await (isFull ? neighboursBench(30_000, 3, 0.3) : neighboursBench(9_000, 3, 0.3))
  const text = neighboursTable(found)
  console.log(text)
  const { pages, ingest, deliveries, memory, hostile } = found
  expect([pages.beside.failed, ingest.refused, text]).toEqual([0, 0, text])
  expect([deliveries.arrived, text]).toEqual([deliveries.made, text])
  // Idle machine: pages p99 below 50 ms, deliveries within 5 s, below 500 MiB. The test machine does other work.
  expect([pages.beside.p50Ms < 1_000, text]).toEqual([true, text])
  expect([deliveries.longestMs < 20_000, text]).toEqual([true, text])
  expect([memory.mostMiB < 550, text]).toEqual([true, text])
  // The hostile load was real.
  const got = JSON.parse(hostile) as { [what: string]: { [status: string]: number } }
  expect([got['stalled bodies']?.['503'], text]).toEqual([expect.any(Number), text])
}, 120_000)
