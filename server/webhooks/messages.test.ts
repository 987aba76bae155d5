/** Messages: batches within limits, payloads with every digit, lines for files and syslog, safe excerpts. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { exactJson } from '../text/json-scan.ts'
import { limits } from '../limits.ts'
import { excerptText } from './sinks/http.ts'
import { batchBody } from './delivery/fan-out.ts'
import { messageLines } from '../../db/rules/batch-body.ts'
import { fieldText } from './delivery/delivery-routes.ts'
import { datagram, octetCounted, syslogMessage } from './sinks/syslog.ts'

const source = { host: 'host.test', processId: 42 }

describe('batches', () => {
  test('contain their events as stored, and split into them again', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.jsonValue().map((value) => JSON.stringify({ value })),
          { maxLength: 20 },
        ),
        (events) => {
          const { body, used } = batchBody(7, events, 0)
          expect(used).toBe(events.length)
          expect(JSON.parse(body)).toEqual({
            type: 'trace.batch',
            timestamp: '1970-01-01T00:00:00.000Z',
            data: { sequence: 7, events: events.map((event) => JSON.parse(event) as unknown) },
          })
          if (events.length > 0) expect(messageLines(body)).toEqual(events)
        },
      ),
    )
  })

  test('stay under 512 KiB, with at least one event', () => {
    const event = JSON.stringify({ text: 'ü'.repeat(30_000) })
    const { body, used } = batchBody(1, Array<string>(20).fill(event), 0)
    expect(used).toBe(8)
    expect(Buffer.byteLength(body)).toBeLessThanOrEqual(limits.webhookBatchBytesMax)
    expect(batchBody(1, [JSON.stringify('x'.repeat(600_000))], 0).used).toBe(1)
  })
})

test('numbers that a double cannot hold survive in payloads and lines', () => {
  const event = '{"n":12345678901234567890.123456789,"m":1e400}'
  expect(messageLines(batchBody(1, [event], 0).body)).toEqual([event])
  expect(fieldText(exactJson(`{"url":"x","payload": ${event} }`), 'payload')).toBe(event)
})

test('finds a field by name anywhere in the object', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.jsonValue(), (others, payload) => {
      const object = { ...others, payload }
      expect(fieldText(JSON.stringify(object), 'payload')).toBe(JSON.stringify(payload))
    }),
  )
})

test('any other message is one line', () => {
  const alert = '{"type":"alert.opened","data":{}}'
  expect(messageLines(alert)).toEqual([alert])
})

describe('syslog', () => {
  test('RFC 5424: priority by outcome, time of the event, ASCII only', () => {
    const line =
      '{"type":"authz.evaluated","outcome":"blocked","occurredAt":"2026-06-23T12:00:00+02:00","x":"ü\u2028"}'
    expect(syslogMessage(line, 0, source)).toBe(
      '<133>1 2026-06-23T10:00:00.000Z host.test sightglass 42 authz.evaluated - ' +
        '{"type":"authz.evaluated","outcome":"blocked","occurredAt":"2026-06-23T12:00:00+02:00","x":"\\u00fc\\u2028"}',
    )
    expect(syslogMessage('{"type":"alert.opened"}', 0, source)).toStartWith(
      '<132>1 1970-01-01T00:00:00.000Z ',
    )
    expect(syslogMessage('{}', 0, { host: '', processId: 1 })).toBe(
      '<134>1 1970-01-01T00:00:00.000Z - sightglass 1 - - {}',
    )
  })

  test('hostile values stay inside their field, and the JSON stays equal', () => {
    fc.assert(
      fc.property(
        fc.record({ type: fc.string(), occurredAt: fc.string(), more: fc.jsonValue() }),
        (event) => {
          const line = JSON.stringify(event)
          const message = syslogMessage(line, 0, source)
          const [, msgid, json] =
            /^<134>1 \S+ host\.test sightglass 42 (\S{1,32}) - ([\x20-\x7e]*)$/.exec(message) ?? []
          expect(msgid).toBeDefined()
          expect(JSON.parse(json!)).toEqual(JSON.parse(line))
        },
      ),
    )
  })

  test('an event too large for a datagram is replaced by its id; messages in a stream have a length prefix', () => {
    const large = JSON.stringify({ id: 'evt_1', type: 'sdk.error', text: 'ü'.repeat(20_000) })
    expect(datagram(large, 0, source)).toEndWith(' {"id":"evt_1","type":"sdk.error","tooLargeForUdp":true}')
    expect(octetCounted(['abc', 'defg'])).toBe('3 abc4 defg')
  })
})

test('excerpts contain no control characters and no inflated bodies', () => {
  expect(excerptText(Buffer.from('ok\n\u0000\u001b[31m'), null)).toBe('ok\n\ufffd\ufffd[31m')
  expect(excerptText(new Uint8Array([0xff, 0xfe, 65]), 'identity')).toBe('\ufffd\ufffdA')
  expect(excerptText(Bun.gzipSync(Buffer.alloc(1_000_000)), 'gzip')).toMatch(
    /^\(\d+ bytes in content-encoding, not shown\)$/,
  )
  expect(excerptText(new Uint8Array(), 'gzip')).toBe('')
  expect(Buffer.byteLength(excerptText(new Uint8Array(16_384).fill(0xff), null))).toBeLessThanOrEqual(16_384)
})
