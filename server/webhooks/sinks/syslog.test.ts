/** Syslog messages follow RFC 5424 and hold hostile values inside their fields. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { datagram, octetCounted, syslogMessage } from './syslog.ts'

const source = { host: 'host.test', processId: 42 }

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
