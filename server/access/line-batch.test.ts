/** Batches of lines: their limits, their counts, and what remains when the store has a part of them. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { line, plainOptions } from '../../tests/support/access-logs.ts'
import type { EventRecord } from '../../db/contract/store.ts'
import { agentEvents } from './agent-events.ts'
import { formatNamed } from './formats.ts'
import { lineBatch, type BatchedLine, type LineKind } from './line-batch.ts'
import { lineBatches } from './receiver.ts'

const log = { siteId: 'shop', source: 'log', path: '/a.log', format: 'combined' }
const anyKind = fc.constantFrom<LineKind>('agent', 'person', 'asset', 'bot', 'note', 'bad')
const anyLine = fc.record({ kind: anyKind, timeMs: fc.nat(20_000_000), bytes: fc.nat(2 ** 41) })

const lineOf = (kind: LineKind, number: number, overrides: Partial<BatchedLine> = {}): BatchedLine => {
  const ids = kind === 'agent' ? [`${number}`, `${number} session`] : []
  const events = ids.map((id) => ({ id }) as EventRecord)
  return { number, end: number * 10, kind, timeMs: 0, bytes: 0, events, ...overrides }
}

test('the counts of any lines add up, and those before a position can be dropped', () => {
  fc.assert(
    fc.property(fc.array(anyLine, { minLength: 1, maxLength: 30 }), fc.nat(30), (lines, place) => {
      const batch = lineBatch(log, 0)
      lines.forEach(({ kind, ...lineFields }, index) => batch.add(lineOf(kind, index + 1, lineFields)))
      const check = (remainingLines: typeof lines, from: number) => {
        const { access, events, lineOf: owners } = batch.sent('x\n')
        const count = (...kinds: LineKind[]) =>
          remainingLines.filter(({ kind }) => kinds.includes(kind)).length
        expect([access.from, access.to]).toEqual([from, lines.length * 10])
        expect(access.sums).toEqual({
          lines: remainingLines.length,
          people: count('person'),
          bad: count('bad'),
          excluded: count('asset', 'bot', 'note'),
        })
        expect(access.requests.filter((bytes) => bytes !== null)).toEqual(
          remainingLines.flatMap(({ kind, bytes }) => (kind === 'agent' ? [Math.min(bytes, 2 ** 40)] : [])),
        )
        expect([events.length, owners.length]).toEqual([access.requests.length, access.requests.length])
        const otherLines = remainingLines.filter(({ kind }) => ['person', 'asset', 'bot'].includes(kind))
        const sum = (readCount: (count: { requests: number; bytes: number }) => number) =>
          access.counts.reduce((total, hourCount) => total + readCount(hourCount), 0)
        expect(sum(({ requests }) => requests)).toBe(otherLines.length)
        expect(sum(({ bytes }) => bytes)).toBe(
          otherLines.reduce((total, { bytes }) => total + Math.min(bytes, 2 ** 40), 0),
        )
        const keys = access.counts.map(({ hourMs, kind }) => `${hourMs} ${kind}`)
        expect(new Set(keys)).toEqual(
          new Set(otherLines.map(({ timeMs, kind }) => `${timeMs - (timeMs % 3_600_000)} ${kind}`)),
        )
        expect(keys.length).toBe(new Set(keys).size)
      }
      check(lines, 0)
      const dropped = Math.min(place, lines.length - 1)
      expect(batch.dropBefore(5)).toBeNull()
      expect(batch.dropBefore(dropped * 10)).toEqual(lines.slice(0, dropped).map(({ kind }) => kind))
      check(lines.slice(dropped), dropped * 10)
    }),
  )
})

test('a batch is full before it has more events than a request may have, or than it was given', () => {
  for (const [options, max] of [
    [{}, 1_000],
    [{ eventsMax: 2_000 }, 2_000],
  ] as const) {
    const batch = lineBatch(log, 0, options)
    let number = 0
    while (!batch.isFull()) batch.add(lineOf('agent', ++number))
    expect(batch.sent('x').events.length).toBe(max)
  }
})

test('many requests by agents at once are several batches, each after the one before', () => {
  const text = Array.from({ length: 3_500 }, (_, second) => line({ second })).join('')
  const lines = {
    source: 'log',
    path: '/a.log',
    format: 'combined',
    heading: '',
    from: 0,
    to: text.length,
    text,
    cutTail: null,
    epoch: '',
  }
  const parse = formatNamed('combined').open()
  const eventsOf = agentEvents(plainOptions)
  const source = { name: 'log', secret: null }
  const steps = lineBatches({ lines, source, siteId: 'shop', isDrain: false, parse, eventsOf })
  const batches = [...steps].filter((batch) => batch !== null)
  const edges = batches.flatMap(({ access }) => [access.from, access.to])
  expect(edges).toEqual([0, ...edges.slice(1, -1), text.length])
  for (let index = 1; index < edges.length - 1; index += 2) expect(edges[index]).toBe(edges[index + 1])
  expect(batches.every(({ events }) => events.length <= 1_000)).toBe(true)
  expect(batches.reduce((sum, { sums }) => sum + sums.stored, 0)).toBe(3_500)
})
