/** Bodies of messages: batches within limits, payloads with every digit, lines for files and syslog. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { limits } from '../../limits.ts'
import { batchBody } from './fan-out.ts'
import { messageLines } from '../../../db/rules/batch-body.ts'
import { payloadText } from '../delivery-routes.ts'

const stored = (json: string): Parameters<typeof batchBody>[1][number] => ({
  json,
  receivedAtMs: 0,
  provenance: {
    door: 'events',
    key: 'key_1',
    verdict: 'contradicted',
    judgedBy: 'appliance',
    observedBy: 'key_1',
    evidence: '{"method":"address"}',
    network: '192.0.2.0/24',
  },
})

const record = {
  door: 'events',
  key: 'key_1',
  receivedAt: '1970-01-01T00:00:00.000Z',
  verdict: 'contradicted',
  judgedBy: 'appliance',
  observedBy: 'key_1',
  evidence: { method: 'address' },
  network: null,
}

describe('batches', () => {
  test('contain their events as stored, and split into them again', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.jsonValue().map((value) => JSON.stringify({ value })),
          { maxLength: 20 },
        ),
        (events) => {
          const { body, used: usedCount } = batchBody(7, events.map(stored), 0)
          expect(usedCount).toBe(events.length)
          expect(JSON.parse(body)).toEqual({
            type: 'trace.batch',
            timestamp: '1970-01-01T00:00:00.000Z',
            data: {
              sequence: 7,
              events: events.map((event) => JSON.parse(event) as unknown),
              records: events.map(() => record),
            },
          })
          if (events.length > 0) expect(messageLines(body)).toEqual(events)
        },
      ),
    )
  })

  test('stay under 512 KiB, with at least one event', () => {
    const event = JSON.stringify({ text: 'ü'.repeat(30_000) })
    const { body, used: usedCount } = batchBody(1, Array<string>(20).fill(event).map(stored), 0)
    expect(usedCount).toBe(8)
    expect(Buffer.byteLength(body)).toBeLessThanOrEqual(limits.webhookBatchBytesMax)
    expect(batchBody(1, [stored(JSON.stringify('x'.repeat(600_000)))], 0).used).toBe(1)
  })
})

test('numbers that a double cannot hold survive in payloads and lines', () => {
  const event = '{"n":12345678901234567890.123456789,"m":1e400}'
  expect(messageLines(batchBody(1, [stored(event)], 0).body)).toEqual([event])
  expect(payloadText(`{"url":"x","payload": ${event} }`)).toBe(event)
})

test('a payload is found anywhere in the body', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.jsonValue(), (members, payload) => {
      const object = { ...members, payload }
      expect(payloadText(JSON.stringify(object))).toBe(JSON.stringify(payload))
    }),
  )
})

test('any other message is one line', () => {
  const alert = '{"type":"alert.opened","data":{}}'
  expect(messageLines(alert)).toEqual([alert])
})
