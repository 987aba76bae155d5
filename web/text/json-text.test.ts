/** The pretty printer changes white space and nothing else. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { memberText, prettyJson, prettyTokens } from './json-text.ts'

test('lays out like JSON.stringify with two spaces, for every value', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 5 }), (value) => {
      const text = JSON.stringify(value)
      expect(JSON.parse(prettyJson(text))).toEqual(JSON.parse(text))
      if (!/[\u007f-\u{10ffff}]/u.test(text)) expect(prettyJson(text)).toBe(JSON.stringify(value, null, 2))
    }),
  )
})

test('keeps every digit of numbers that a double cannot hold', () => {
  const digits = '12345678901234567890.123456789012345678901234567890'
  expect(prettyJson(`{"n":${digits},"e":-1e400}`)).toBe(`{\n  "n": ${digits},\n  "e": -1e400\n}`)
})

test('tells keys from strings', () => {
  const kinds = prettyTokens('{"a":"b","c":[true,null,1]}').filter((part) => part.kind !== 'space')
  expect(kinds.map((part) => part.kind).join(' ')).toBe(
    'mark key mark string mark key mark mark literal mark literal mark number mark mark',
  )
})

describe('memberText', () => {
  test('finds a member of the outer object only', () => {
    const json =
      '{"receivedAt":"x","note":{"event":1},"list":["event",{"event":2}],"event":{"id":"a","n":1e400}}'
    expect(memberText(json, 'event')).toBe('{"id":"a","n":1e400}')
    expect(memberText(json, 'missing')).toBeNull()
  })

  test('gives a text of equal value for any object', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), fc.jsonValue({ maxDepth: 2 }), (event, other) => {
        const json = JSON.stringify({ other, event, after: other })
        const found = memberText(json, 'event')
        expect(found === null ? null : JSON.parse(found)).toEqual(JSON.parse(JSON.stringify(event)))
      }),
    )
  })

  test('throws on what is not JSON', () => {
    expect(() => memberText('<html>', 'event')).toThrow(SyntaxError)
  })
})
