/** Splits batches and joins them again, whatever their events contain. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { joinBatch, splitBatch, withoutEvents, writeBatch } from './batch-body.ts'

const head = '{"type":"trace.batch","timestamp":"2026-06-01T00:00:00.000Z","data":{"sequence":7,"events":['

test('the parts are the events, character by character', () => {
  const event = fc.dictionary(fc.string(), fc.jsonValue()).map((value) => JSON.stringify(value))
  fc.assert(
    fc.property(fc.array(event, { maxLength: 5 }), (events) => {
      expect(splitBatch(`${head}${events.join(',')}]}}`)).toEqual({
        head,
        events,
        records: null,
        tail: ']}}',
      })
    }),
  )
})

test('records stay with their events, whichever are removed', () => {
  const text = fc.dictionary(fc.string(), fc.jsonValue()).map((value) => JSON.stringify(value))
  const item = fc.record({ event: text, record: text, isRemoved: fc.boolean() })
  fc.assert(
    fc.property(fc.array(item, { maxLength: 5 }), (items) => {
      const batchOptions = { sequence: 7, timestamp: '2026-06-01T00:00:00.000Z', bytesMax: 1_000_000 }
      const batch = splitBatch(writeBatch(batchOptions, items).body)!
      expect(batch.events).toEqual(items.map(({ event }) => event))
      expect(batch.records).toEqual(items.map(({ record }) => record))
      let index = 0
      const remaining = withoutEvents(batch, () => items[index++]!.isRemoved)
      const keptItems = items.filter(({ isRemoved }) => !isRemoved)
      expect(joinBatch(remaining)).toBe(writeBatch(batchOptions, keptItems).body)
    }),
  )
})

test('numbers too long for a double are unchanged, and another kind of delivery is not a batch', () => {
  const parts = splitBatch(`${head}{"n":12345678901234567890.5,"t":"a\\"]},{b"},{}]}}`)
  expect(parts?.events).toEqual(['{"n":12345678901234567890.5,"t":"a\\"]},{b"}', '{}'])
  expect(splitBatch('{"hello":"world"}')).toBeNull()
})
