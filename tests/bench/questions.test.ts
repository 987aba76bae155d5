/** Overview, Explore and assistants answer with a recount of the events, in less time than reading them all. */
import { expect, test } from 'bun:test'
import { ask, line, news, questionsBench, questionsTables, type Asker, type Span } from './questions.bench.ts'
import type { Changes } from '../../server/counts/shapes.ts'
import type { BacktestView } from '../../server/webhooks/alerts/backtest.ts'
import type { ExploreAnswer } from '../../server/api/explore/routes.ts'

const events = 22_000
const hourMs = 3_600_000

interface Sent {
  type: string
  sessionId: string
  occurredAt: string
  agent: { vendor: string }
  metadata: { plan: string }
}

function counted(sentEvents: Sent[], readKey: (sentEvent: Sent) => string): { [value: string]: number } {
  return Object.fromEntries(
    [...Map.groupBy(sentEvents, readKey)].map(([value, group]) => [value, group.length]),
  )
}

async function check(asker: Asker, span: Span): Promise<void> {
  const sentEvents = Array.from({ length: events }, (_, n) => JSON.parse(line(n, span)) as Sent)
  const changes = JSON.parse(await ask(asker, '/api/changes')) as Changes
  expect(changes.changes.map(({ kind, name }) => [kind, name])).toEqual(news)
  const since = new Date(span.startMs).toISOString()
  const fields: [string, (sentEvent: Sent) => string][] = [
    ['vendor', ({ agent }) => agent.vendor],
    ['metadata.plan', ({ metadata }) => metadata.plan],
  ]
  for (const [groupField, readKey] of fields) {
    const { all: allNumbers, rows } = JSON.parse(
      await ask(asker, `/v1/explore?by=${groupField}&rows=100&since=${since}`),
    ) as ExploreAnswer
    expect(allNumbers.total).toBe(events)
    expect(Object.fromEntries(rows.map(({ value, total }) => [value, total!]))).toEqual(
      counted(sentEvents, readKey),
    )
  }
  const definition = { measure: 'sessions', condition: { kind: 'above', value: 1e6 }, groupBy: 'vendor' }
  const tested = JSON.parse(await ask(asker, '/v1/webhooks/rules/backtest', definition)) as BacktestView
  const ofGroup = sentEvents.filter(({ agent }) => agent.vendor === tested.group)
  expect([tested.complete, tested.points.length]).toEqual([true, 720])
  const pointValues = tested.points.map(({ at: pointTime, value }) => [pointTime, value])
  const hours = Map.groupBy(ofGroup, ({ occurredAt }) => Math.floor(Date.parse(occurredAt) / hourMs))
  const recount = (pointTime: string) =>
    new Set((hours.get(Date.parse(pointTime) / hourMs - 1) ?? []).map(({ sessionId }) => sessionId)).size
  expect(pointValues).toEqual(tested.points.map(({ at: pointTime }) => [pointTime, recount(pointTime)]))
  const params = { name: 'count', arguments: { type: ['tool.*'], last: '31d' } }
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params }
  const { result } = JSON.parse(await ask(asker, '/mcp', call)) as {
    result: { structuredContent: { count: number } }
  }
  expect(result.structuredContent.count).toBe(
    sentEvents.filter(({ type }) => type.startsWith('tool.')).length,
  )
}

test('questions over 22,000 events take less time than an export of all, and answer a recount', async () => {
  const measured = await questionsBench(events, 1, check)
  const text = questionsTables(measured)
  const [parquet, ndjson] = measured.exports
  // Beside other suites the slowest took 0.6 of the export, and the Parquet file 3 times as long.
  for (const { what: label, p50Ms } of measured.asked)
    expect([label, p50Ms < 4 * ndjson!.ms, text]).toEqual([label, true, text])
  expect([parquet!.ms < 12 * ndjson!.ms, text]).toEqual([true, text])
  expect(measured.tokens).toBeLessThan(1_500)
}, 60_000)
