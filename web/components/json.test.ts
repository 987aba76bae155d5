/** Formatting JSON changes only white space. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { fieldText, prettyJson, prettyTokens } from './json.tsx'

test('formats every value like JSON.stringify with two spaces', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 5 }), (value) => {
      const text = JSON.stringify(value)
      expect(JSON.parse(prettyJson(text))).toEqual(JSON.parse(text))
      if (!/[\u007f-\u{10ffff}]/u.test(text)) expect(prettyJson(text)).toBe(JSON.stringify(value, null, 2))
    }),
  )
})

test('keeps every digit of numbers that exceed a double', () => {
  const digits = '12345678901234567890.123456789012345678901234567890'
  expect(prettyJson(`{"n":${digits},"e":-1e400}`)).toBe(`{\n  "n": ${digits},\n  "e": -1e400\n}`)
})

test('distinguishes keys from strings', () => {
  const kinds = prettyTokens('{"a":"b","c":[true,null,1]}').filter((part) => part.kind !== 'space')
  expect(kinds.map((part) => part.kind).join(' ')).toBe(
    'mark key mark string mark key mark mark literal mark literal mark number mark mark',
  )
})

describe('fieldText', () => {
  test('finds a field of the outer object only', () => {
    const json =
      '{"receivedAt":"x","note":{"event":1},"list":["event",{"event":2}],"event":{"id":"a","n":1e400}}'
    expect(fieldText(json, 'event')).toBe('{"id":"a","n":1e400}')
    expect(fieldText(json, 'missing')).toBeNull()
  })

  test('returns a text of equal value for any object', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), fc.jsonValue({ maxDepth: 2 }), (event, otherValue) => {
        const json = JSON.stringify({ other: otherValue, event, after: otherValue })
        const eventText = fieldText(json, 'event')
        expect(eventText === null ? null : JSON.parse(eventText)).toEqual(JSON.parse(JSON.stringify(event)))
      }),
    )
  })

  test('throws on invalid JSON', () => {
    expect(() => fieldText('<html>', 'event')).toThrow(SyntaxError)
  })
})
