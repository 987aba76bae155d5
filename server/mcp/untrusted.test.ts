/** Text of strangers: escapes that show what is unseen, cuts, ids that come back, and the bound of a whole event. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { clean, cleanJson, uncleaned } from './untrusted.ts'

describe('clean', () => {
  test.each([
    ['plain text, ümläute, 日本語 and 🙂', 'plain text, ümläute, 日本語 and 🙂'],
    ['a\nb\tc\r', 'a\\nb\\tc\\r'],
    ['\u0000\u001b[31m\u007f\u0085', '\\u0000\\u001b[31m\\u007f\\u0085'],
    ['abc\u202edef\u2066x\u2069', 'abc\\u202edef\\u2066x\\u2069'],
    ['a\u200bb\ufeff\u2028', 'a\\u200bb\\ufeff\\u2028'],
    ['\u{e0049}\u{e0067}', '\\u{e0049}\\u{e0067}'],
    ['x\u{e0101}', 'x\\u{e0101}'],
  ])('%j is %j', (text, shown) => {
    expect(clean(text)).toBe(shown)
    expect(uncleaned(shown)).toBe(text)
  })

  test('any text has at most 500 characters, and none that is unseen', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary', maxLength: 2_000 }),
        fc.integer({ min: 2, max: 500 }),
        (text, max) => {
          const shown = clean(text, max)
          expect(shown.length).toBeLessThanOrEqual(max)
          expect(shown).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}]/u)
          expect(shown.isWellFormed()).toBe(true)
        },
      ),
    )
    expect(clean('x'.repeat(500))).toBe('x'.repeat(500))
    expect(clean('x'.repeat(501))).toBe(`${'x'.repeat(499)}…`)
    expect(clean(`${'x'.repeat(498)}\u202e`)).toBe(`${'x'.repeat(498)}…`)
  })

  test('nothing is longer than Unicode when an id comes back', () => {
    expect(() => uncleaned('\\u{ffffff} \\u{110000} \\ud800')).not.toThrow()
    expect(uncleaned('C:\\temp')).toBe('C:\temp') // tried only after the id as it was sent
  })
})

describe('a whole event', () => {
  test('keeps values, cleans names and texts', () => {
    const event = { id: 'e', n: 1.5, on: true, none: null, list: [1, { 'a\u202e': 'b\nc' }], __proto__: null }
    expect(cleanJson(JSON.parse(JSON.stringify(event)), 6_000)).toEqual({
      value: { id: 'e', n: 1.5, on: true, none: null, list: [1, { 'a\\u202e': 'b\\nc' }] },
      isCut: false,
    })
    const polluted = JSON.parse('{"__proto__":{"x":1},"constructor":"c"}') as object
    expect(JSON.stringify(cleanJson(polluted, 6_000).value)).toBe('{"__proto__":{"x":1},"constructor":"c"}')
  })

  test('is bounded, and says so', () => {
    const longResult = {
      list: Array.from({ length: 5_000 }, (_, n) => `text ${n}`),
      long: 'x'.repeat(60_000),
    }
    const { value, isCut } = cleanJson(longResult, 6_000)
    expect([isCut, JSON.stringify(value).length < 12_000]).toEqual([true, true])
    expect(cleanJson({ a: 'x'.repeat(501) }, 6_000)).toEqual({
      value: { a: `${'x'.repeat(499)}…` },
      isCut: true,
    })
  })
})
