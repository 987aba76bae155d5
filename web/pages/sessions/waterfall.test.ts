/** Spans become rows in the order of their tree, whatever their parents are. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { TraceEvent } from '../../api/event-shapes.ts'
import { spanRows } from './waterfall.tsx'

const startMs = Date.UTC(2026, 10, 23, 8)

function span(spanId: string, parentSpanId: string | null, atMs: number, fields: object = {}): TraceEvent {
  return {
    id: `t:${spanId}`,
    siteId: 's',
    sessionId: 'x',
    type: 'tool.executed',
    outcome: 'success',
    occurredAt: new Date(startMs + atMs).toISOString(),
    durationMs: 10,
    metadata: { traceId: 't', spanId, span: spanId, ...(parentSpanId === null ? {} : { parentSpanId }) },
    ...fields,
  }
}

const shown = (events: TraceEvent[]) => spanRows(events).map(({ name, level }) => `${level} ${name}`)

test('children follow their parent by start; events without a span are left out', () => {
  const events = [
    span('agent', null, 0, { durationMs: 900 }),
    span('book', 'agent', 300),
    span('search', 'agent', 100),
    span('request', 'search', 110),
    { ...span('none', null, 5), metadata: { page: '/p' } },
    { ...span('other', null, 50), metadata: null },
  ]
  expect(shown(events)).toEqual(['1 agent', '2 search', '3 request', '2 book'])
  expect(spanRows(events).map(({ startMs }) => startMs)).toEqual([0, 100, 110, 300])
  expect(spanRows([])).toEqual([])
})

test('orphans and a span that is its own parent are at the top, circles are opened at their earliest span', () => {
  const events = [span('b', 'a', 20), span('a', 'c', 30), span('c', 'b', 40), span('own', 'own', 5)]
  expect(shown([...events, span('orphan', 'gone', 10)])).toEqual(['1 own', '1 orphan', '1 b', '2 c', '3 a'])
})

test('a decision and the call that it allowed are one row, and the time has all digits', () => {
  const call = span('pay', null, 0, { occurredAt: '2026-11-23T08:00:00.000250000Z' })
  const decided = span('pay', null, 1, { id: 't:pay:1', type: 'authz.evaluated', outcome: 'blocked' })
  for (const events of [
    [call, decided],
    [decided, call],
  ])
    expect(
      spanRows([span('first', null, 0), ...events]).map(({ event, startMs }) => [event.id, startMs]),
    ).toEqual([
      ['t:first', 0],
      ['t:pay', 0.25],
    ])
})

test('a chain and a circle of 10,000 spans have a row each', () => {
  const chain = Array.from({ length: 10_000 }, (_, n) => span(`s${n}`, n === 0 ? null : `s${n - 1}`, n))
  expect(spanRows(chain).at(-1)).toMatchObject({ order: 10_000, level: 10_000 })
  chain[0] = span('s0', 's9999', 0)
  expect(spanRows(chain)).toHaveLength(10_000)
})

test('law: every span has one row, after its parent unless they are in a circle', () => {
  const id = fc.integer({ min: 0, max: 12 }).map(String)
  const anySpans = fc.uniqueArray(
    fc.record({ spanId: id, parentSpanId: fc.option(id), atMs: fc.integer({ min: 0, max: 50 }) }),
    { selector: ({ spanId }) => spanId },
  )
  fc.assert(
    fc.property(anySpans, (spans) => {
      const rows = spanRows(spans.map(({ spanId, parentSpanId, atMs }) => span(spanId, parentSpanId, atMs)))
      expect(rows.map(({ name }) => name).toSorted()).toEqual(spans.map(({ spanId }) => spanId).toSorted())
      rows.forEach(({ level }, n) => {
        if (level === 1) return
        const parent = rows.slice(0, n).findLast((row) => row.level === level - 1)
        expect(parent?.name).toBe(spans.find(({ spanId }) => spanId === rows[n]!.name)!.parentSpanId!)
      })
    }),
  )
})
