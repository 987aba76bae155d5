/** Nodes on PostgreSQL keep a share of the SQLite engine's rate, catch up after a load, and count every event. */
import { expect, test } from 'bun:test'
import { isFull } from '../support/runs.ts'
import { postgresBench, postgresTables } from './postgres.bench.ts'

test('two nodes beside the SQLite engine: rate, due work, bytes, reads and counts', async () => {
  const short = { seconds: 0.2, warmUpSeconds: 0.1, historyEvents: 2_000, rounds: 1 }
  const options = isFull ? { ...short, seconds: 0.3, warmUpSeconds: 0.2, historyEvents: 4_000 } : short
  const result = await postgresBench(options, 2)
  const text = postgresTables(result)
  console.log(text)
  for (const run of [result.sqlite, result.postgres])
    expect([run.stored, text]).toEqual([run.acknowledged, text])
  result.postgres.loads.forEach((loadResult, index) => {
    const floor = result.sqlite.loads[index] ?? result.sqlite.loads[0]!
    // On an idle machine 0.5. Each process of a short run interprets its code before it compiles it.
    expect([loadResult.name, loadResult.perSecond > floor.perSecond / 20, text]).toEqual([
      loadResult.name,
      true,
      text,
    ])
    expect([loadResult.name, loadResult.catchUpSeconds < 60, text]).toEqual([loadResult.name, true, text])
  })
  for (const { what: question, p50Ms } of result.postgres.reads)
    expect([question, p50Ms < 2_000, text]).toEqual([question, true, text])
}, 120_000)
