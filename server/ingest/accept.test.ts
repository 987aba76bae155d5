/** Accepting requests: unchanged text, one invalid event beside valid ones, sites, limits, malformed bodies. */
import fc from 'fast-check'
import { describe, expect, test } from 'bun:test'
import { validEvent } from '../../tests/fuzz/any-event.ts'
import { exampleEvent } from '../../tests/support/events.ts'
import { quickestMs } from '../../tests/support/quickest.ts'
import { canonical, jsonText } from '../../tests/fuzz/json-text.ts'
import { AppError } from '../errors.ts'
import { acceptEvents, acceptLines, eventsMediaType, linesText, type Accepted } from './accept.ts'
import { runs } from '../../tests/support/runs.ts'

const accept = (text: string, siteIds: string[] = []): Accepted =>
  acceptEvents(text, 'application/json', siteIds)
const acceptNdjson = (text: string): Accepted => acceptEvents(text, 'application/x-ndjson', [])

/** An event as text with one more member, given as text. */
const eventWith = (member: string, value: string): string =>
  `${JSON.stringify(exampleEvent).slice(0, -1)},${JSON.stringify(member)}:${value}}`

const body = (...events: string[]): string => `{"events":[${events.join()}]}`

/** `index path code` of every issue. */
const rejectedOf = ({ rejected }: Accepted): string[] =>
  rejected.flatMap(({ issues }) => issues.map(({ index, path, code }) => `${index} ${path} ${code}`))

function refusal(act: () => unknown): AppError {
  try {
    act()
  } catch (error) {
    if (error instanceof AppError) return error
    throw error
  }
  throw new Error('nothing was thrown')
}

describe('events are stored exactly as sent', () => {
  test('any JSON in any spelling, in a JSON body and in NDJSON', () => {
    fc.assert(
      fc.property(jsonText, (value) => {
        const event = eventWith('metadata', `{"x":${value}}`)
        const sentText = canonical(event)
        const line = event.replaceAll(/[\r\n]/g, ' ') // line breaks occur between tokens only
        for (const { records } of [accept(body(event)), accept(` ${body(event)}\n`), acceptNdjson(line)]) {
          expect(records.map((record) => canonical(record.json))).toEqual([sentText])
        }
      }),
      { numRuns: runs(1_000) },
    )
  })

  test('unknown top-level fields, prototype names included', () => {
    fc.assert(
      fc.property(
        jsonText,
        fc.constantFrom('__proto__', 'constructor', 'toJSON', '7', 'x'),
        (value, name) => {
          const event = eventWith(name, value)
          expect(accept(body(event)).records.map((record) => canonical(record.json))).toEqual([
            canonical(event),
          ])
        },
      ),
    )
    expect(({} as { polluted?: unknown }).polluted).toBe(undefined)
  })

  test('output of JSON.stringify is stored unchanged', () => {
    fc.assert(
      fc.property(fc.array(validEvent, { minLength: 1, maxLength: 5 }), (events) => {
        const { records, positions } = accept(JSON.stringify({ events }))
        expect(records.map((record) => record.json)).toEqual(events.map((event) => JSON.stringify(event)))
        expect(positions).toEqual(events.map((_, index) => index))
      }),
    )
  })

  test('numbers that a double would round keep their digits', () => {
    for (const number of [
      '9007199254740993',
      '0.1000000000000000055',
      '1e999',
      '-0',
      '1e-400',
      '1'.repeat(40),
    ]) {
      expect(accept(body(eventWith('n', number))).records[0]?.json).toEndWith(`"n":${number}}`)
      expect(acceptNdjson(eventWith('n', number)).records[0]?.json).toEndWith(`"n":${number}}`)
    }
  })

  test('the last duplicate field wins, also in the body', () => {
    const event = eventWith('id', '"evt_2"')
    expect(accept(body(event)).records[0]?.id).toBe('evt_2')
    // The first list is spelled as JSON.stringify writes what the second one parses to: it must not be taken for it.
    const first = eventWith('n', '9007199254740992')
    const second = eventWith('n', '9007199254740993')
    for (const text of [
      `{"events":[${first}],"events":[${second}]}`,
      `{"events":[${first}],"\\u0065vents":[${second}]}`,
      `{"events":[1,2,3],"events":[${second}]}`,
      `{"x":{"events":[${first}]},"events":[${second}]}`,
    ]) {
      expect(accept(text).records.map((record) => record.json)).toEqual([second])
    }
  })

  test('other fields of the body are ignored', () => {
    const event = JSON.stringify(exampleEvent)
    for (const text of [
      `{"publishableKey":"agtx_pk_x","events":[${event}]}`,
      `{"events":[${event}],"publishableKey":"agtx_pk_x"}\n`,
      `{"a":[{"b":"]}"}], "events" : [ ${event} ] , "z": null }`,
    ]) {
      expect(accept(text).records.map((record) => record.json)).toEqual([event])
    }
  })
})

describe('one invalid event', () => {
  const good = JSON.stringify(exampleEvent)

  test('is reported with index and id; the others are accepted', () => {
    const bad = JSON.stringify({ ...exampleEvent, id: 'evt_bad', type: 7 })
    const accepted = accept(body(good, bad, '3', good))
    expect(accepted).toMatchObject({ sent: 4, positions: [0, 3] })
    expect(accepted.rejected).toEqual([
      {
        index: 1,
        issues: [{ path: 'type', code: 'wrong_type', message: 'must be a string', index: 1, id: 'evt_bad' }],
        excerpt: bad,
      },
      {
        index: 2,
        issues: [{ path: '', code: 'wrong_type', message: 'must be an object', index: 2 }],
        excerpt: '3',
      },
    ])
  })

  test('has at most three issues, and a long id is truncated', () => {
    const accepted = accept(body(JSON.stringify({ id: 'x'.repeat(5_000), agent: 1, policy: 2 })))
    expect(accepted.rejected[0]?.issues).toHaveLength(3)
    expect(accepted.rejected[0]?.issues[0]?.id).toBe('x'.repeat(200))
    expect(accepted.rejected[0]?.excerpt).toHaveLength(4_096)
  })

  test('is rejected for NUL or an unpaired surrogate anywhere, not for escaped backslashes or whole pairs', () => {
    for (const bad of ['\\u0000', '\\ud800', '\\uDFFF', '\\udc00\\ud800', '\\\\\\u0000']) {
      expect(rejectedOf(accept(body(eventWith('tool', `"a${bad}"`))))).toEqual(['0 tool wrong_format'])
      expect(rejectedOf(accept(body(eventWith('x', `[{"a":["${bad}"]}]`))))).toEqual(['0 x wrong_format'])
      expect(rejectedOf(accept(body(eventWith('x', `{"${bad}":1}`))))).toEqual(['0 x wrong_format'])
      expect(rejectedOf(acceptNdjson(eventWith('x', `"${bad}"`)))).toEqual(['0 x wrong_format'])
      const namedLine = `${good.slice(0, -1)},"${bad}":1}`
      expect(rejectedOf(accept(body(namedLine)))).toEqual(['0  wrong_format'])
    }
    for (const fine of ['\\\\u0000', '\\\\ud800', '\\ud83d\\ude00', '\\u0001', 'ud800', '\\\\\\\\u0000']) {
      expect(rejectedOf(accept(body(eventWith('x', `"${fine}"`))))).toEqual([])
    }
    const hidden = `{"id":"a\\u0000",${good.slice(1)}` // overwritten by the second id
    expect(rejectedOf(accept(body(hidden)))).toEqual([])
    const nulId = accept(body(eventWith('id', '"a\\u0000"')))
    expect(nulId.rejected[0]?.issues[0]).not.toHaveProperty('id')
  })

  test('may nest 32 levels deep, not 33', () => {
    const nested = (depth: number): string => eventWith('x', '['.repeat(depth - 1) + ']'.repeat(depth - 1))
    const objects = (depth: number): string =>
      eventWith('x', '{"a":'.repeat(depth - 1) + '1' + '}'.repeat(depth - 1))
    for (const make of [nested, objects]) {
      expect(rejectedOf(accept(body(make(32))))).toEqual([])
      expect(rejectedOf(acceptNdjson(make(32)))).toEqual([])
      for (const depth of [33, 1_000, 10_000]) {
        expect(rejectedOf(accept(body(good, make(depth), good)))).toEqual(['1  too_deep'])
        expect(rejectedOf(acceptNdjson(`${make(depth)}\n${good}`))).toEqual(['0  too_deep'])
      }
    }
  })

  test('may have at most 64 KiB as sent, whitespace and escapes included', () => {
    const sized = (bytes: number, filler: string): string => {
      const empty = Buffer.byteLength(eventWith('x', '""'))
      const count = Math.floor((bytes - empty) / Buffer.byteLength(filler))
      const remainingBytes = bytes - empty - count * Buffer.byteLength(filler)
      return eventWith('x', `"${filler.repeat(count)}${'y'.repeat(remainingBytes)}"`)
    }
    for (const filler of ['x', 'é', '€', '\u{1f600}', '\\u00e9']) {
      const exact = sized(65_536, filler)
      expect(Buffer.byteLength(exact)).toBe(65_536)
      const oversizeText = sized(65_537, filler)
      const spaced = exact.replace('{', '{ ')
      expect(rejectedOf(accept(body(good, exact, good)))).toEqual([])
      expect(rejectedOf(accept(body(good, oversizeText, good)))).toEqual(['1  too_large'])
      expect(rejectedOf(accept(body(good, spaced, good)))).toEqual(['1  too_large'])
      expect(rejectedOf(accept(`{ "events": [ ${exact} , ${oversizeText} ] }`))).toEqual(['1  too_large'])
      expect(rejectedOf(acceptNdjson(`${exact}\n  ${oversizeText}`))).toEqual(['1  too_large'])
    }
    const dense = `[${'[],'.repeat(30_000)}1]`
    expect(rejectedOf(accept(body(good, eventWith('x', dense), good)))).toEqual(['1  too_large'])
  })
})

describe('a key limited to sites', () => {
  const createLine = (siteId: string): string => JSON.stringify({ ...exampleEvent, siteId })

  test('accepts events of its sites and rejects others', () => {
    expect(rejectedOf(accept(body(createLine('a'), createLine('b'), createLine('c')), ['a', 'c']))).toEqual([
      '1 siteId wrong_site',
    ])
    expect(rejectedOf(accept(body(createLine('a'), createLine('b')), []))).toEqual([])
  })

  test('reports invalid fields before the wrong site', () => {
    const bad = JSON.stringify({ ...exampleEvent, siteId: 'b', type: 1 })
    expect(rejectedOf(accept(body(bad), ['a']))).toEqual(['0 type wrong_type'])
  })
})

describe('a body that is not a list of events', () => {
  const codeOf = (text: string): string => refusal(() => accept(text)).code

  test('is rejected as a whole', () => {
    for (const text of ['', ' ', '{', '{"events":[}', 'x', '{"events":[1,]}', '\ufeff{}', '{}x']) {
      expect(codeOf(text)).toBe('invalid_json')
    }
    for (const text of [
      '[]',
      '1',
      'null',
      '"events"',
      '{}',
      '{"events":null}',
      '{"events":{}}',
      '{"events":[]}',
    ]) {
      expect(codeOf(text)).toBe('invalid_body')
    }
    expect(refusal(() => accept('{"events":{}}')).details.issues?.[0]).toMatchObject({ path: 'events' })
    expect(codeOf('{"__proto__":{"events":[1]}}')).toBe('invalid_body')
  })

  test('may contain 1,000 events, not 1,001', () => {
    const createLines = (count: number): string[] =>
      Array.from({ length: count }, () => JSON.stringify(exampleEvent))
    expect(accept(body(...createLines(1_000))).records).toHaveLength(1_000)
    expect(codeOf(body(...createLines(1_001)))).toBe('payload_too_large')
    expect(acceptNdjson(createLines(1_000).join('\n')).records).toHaveLength(1_000)
    expect(refusal(() => acceptNdjson(createLines(1_001).join('\n'))).code).toBe('payload_too_large')
    expect(codeOf(`{"events":[${'{},'.repeat(500_000)}{}]}`)).toBe('payload_too_large')
  })

  test('nested 200,000 or 4 million deep is rejected in linear time', async () => {
    const refuse = (depth: number) => () => {
      const deep = '['.repeat(depth) + ']'.repeat(depth)
      const objects = '{"a":'.repeat(depth >> 2)
      expect(codeOf(deep)).toBe('invalid_body')
      expect(codeOf(`{"events":${deep.slice(0, depth)}`)).toBe('invalid_json')
      expect(codeOf(objects)).toBe('invalid_json')
      expect(codeOf(`${objects}1${'}'.repeat(depth >> 2)}`)).toBe('invalid_body')
      // A list whose one element is a list.
      expect(rejectedOf(accept(`{"events":${deep}}`))).toEqual(['0  too_deep'])
    }
    const shallowMs = await quickestMs(refuse(200_000), 3)
    expect(await quickestMs(refuse(4_000_000), 3)).toBeLessThan(20 * 5 * shallowMs)
  })

  test('accepts valid events beside a deeply nested one', () => {
    const good = JSON.stringify(exampleEvent)
    const deep = eventWith('x', '{"a":'.repeat(200_000) + '1' + '}'.repeat(200_000))
    expect(rejectedOf(accept(body(good, deep, good)))).toEqual(['1  too_deep'])
    const elsewhere = `{"x":${'['.repeat(200_000)}${']'.repeat(200_000)},"events":[${good}]}`
    expect(accept(elsewhere).records).toHaveLength(1)
  })
})

describe('NDJSON', () => {
  const good = JSON.stringify(exampleEvent)

  test('is one event per line; blank lines are skipped', () => {
    const accepted = acceptNdjson(`\n${good}\r\n\n \t\n{"id":\n${good}`)
    expect(accepted).toMatchObject({ sent: 3, positions: [0, 2] })
    expect(rejectedOf(accepted)).toEqual(['1  wrong_format'])
    expect(accepted.rejected[0]?.excerpt).toBe('{"id":')
    expect(accepted.records.map((record) => record.json)).toEqual([good, good])
  })

  test('without events is rejected', () => {
    for (const text of ['', '\n', ' \r\n\t']) {
      const { code, details } = refusal(() => acceptNdjson(text))
      expect([code, details.hint]).toEqual(['invalid_body', 'Send 1 to 1000 events, one per line.'])
    }
  })
})

test('the media type is JSON, NDJSON or missing', () => {
  expect(eventsMediaType(null)).toBe('application/json')
  expect(eventsMediaType('application/json; charset=utf-8')).toBe('application/json')
  expect(eventsMediaType('Application/X-NDJSON')).toBe('application/x-ndjson')
  for (const type of ['text/plain', 'application/json, text/plain', 'multipart/form-data; boundary=x']) {
    expect(refusal(() => eventsMediaType(type)).code).toBe('unsupported_media_type')
  }
})

describe('the lines of NDJSON that are not UTF-8', () => {
  const good = Buffer.from(JSON.stringify(exampleEvent))
  const bytes = (...lines: (Buffer | string)[]): Buffer =>
    Buffer.concat(lines.flatMap((line) => [Buffer.from(line), Buffer.from('\n')]))

  test('a line that is not UTF-8 is rejected with its excerpt; the others are accepted', () => {
    const bad = Buffer.concat([Buffer.from('{"id":"'), Buffer.from([0xff, 0xc3]), Buffer.from('"}')])
    const accepted = acceptLines(linesText(bytes(good, '', bad, ' \t', Buffer.from([0xe2, 0x82]), good)), [])
    expect(accepted).toMatchObject({ sent: 4, positions: [0, 3] })
    expect(
      accepted.rejected.map(({ index, issues, excerpt }) => [index, issues[0]?.message, excerpt]),
    ).toEqual([
      [1, 'is not valid UTF-8', '{"id":"\ufffd\ufffd"}'],
      [2, 'is not valid UTF-8', '\ufffd'],
    ])
  })

  test('replacement characters and a byte order mark are accepted', () => {
    const sentBytes = bytes('\ufeff{"a":"\ufffd"}', Buffer.from([0x80]))
    expect(linesText(sentBytes)).toBe('{"a":"\ufffd"}\n\ufffd\udfff')
    expect(linesText(Buffer.from('\ufeff{}'))).toBe('{}')
  })

  test('an invalid line does not change the text of valid ones', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'binary', minLength: 1 }), { maxLength: 8 }), (texts) => {
        const lines = texts.map((text) => `x${text.replaceAll('\n', '').toWellFormed()}`)
        const text = linesText(bytes(...lines, Buffer.from([0xff])))
        expect(text.split('\n')).toEqual([...lines, '\ufffd\udfff'])
      }),
    )
  })

  test('8 MB of lines are read only up to the limit of events', () => {
    const manyLines = Buffer.concat([Buffer.from([0xff, 0x0a]), Buffer.alloc(8 * 1024 * 1024 - 2, 'x\n')])
    expect(linesText(manyLines).split('\n')).toHaveLength(1_001)
    expect(() => acceptLines(linesText(manyLines), [])).toThrow('at most 1000 events')
  })
})
