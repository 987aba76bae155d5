/** Nodes on PostgreSQL keep a share of the SQLite engine's rate, catch up after a load, and count every event. */
import { expect, test } from 'bun:test'
import { isFull } from '../support/runs.ts'
import { postgresBench, postgresTables } from './postgres.bench.ts'

test('two nodes beside the SQLite engine: rate, due work, bytes, reads and counts', async () => {
  const short = { seconds: 0.2, warmUpSeconds: 0.1, historyEvents: 2_000, rounds: 1 }
  const options = isFull ? { ...short, seconds: 0.3, warmUpSeconds: 0.2, historyEvents: 4_000 } : short
  const found = await postgresBench(options, 2)
  const text = postgresTables(found)
  console.log(text)
  for (const run of [found.sqlite, found.postgres])
    expect([run.stored, text]).toEqual([run.acknowledged, text])
  found.postgres.loads.forEach((one, index) => {
    const floor = found.sqlite.loads[index] ?? found.sqlite.loads[0]!
    // On an idle machine 0.5. Each process of a short run interprets its code before it compiles it.
    expect([one.name, one.perSecond > floor.perSecond / 20, text]).toEqual([one.name, true, text])
    expect([one.name, one.catchUpSeconds < 60, text]).toEqual([one.name, true, text])
  })
  for (const { what, p50Ms } of found.postgres.reads)
    expect([what, p50Ms < 2_000, text]).toEqual([what, true, text])
}, 120_000)
