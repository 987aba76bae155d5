/** Untrusted text: hidden characters are visible, values survive, and lengths are bounded. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { escapeHidden, hiddenName, middleCut, segments, visibleText } from './text.tsx'

const unicode = fc.string({ unit: 'binary' })

describe('segments', () => {
  test('shows direction marks and controls, and leaves ordinary text unchanged', () => {
    expect(visibleText('pay\u202Elap')).toBe('pay[U+202E]lap')
    expect(visibleText('a\u0000b\u001b[31mc\r\nd')).toBe('a[U+0000]b[U+001B][31mc[U+000D][U+000A]d')
    expect(segments('Grüße, 世界, שלום')).toEqual([{ text: 'Grüße, 世界, שלום', hidden: false }])
    expect(hiddenName('U+202E')).toBe('Hidden character: right-to-left override')
  })

  test('keeps joiners that a script needs and shows the others', () => {
    expect(visibleText('👩‍💻 می‌خواهم')).toBe('👩‍💻 می‌خواهم')
    expect(visibleText('pay\u200dpal')).toBe('pay[U+200D]pal')
    expect(visibleText('\u200cx')).toBe('[U+200C]x')
  })

  test('law: no bidi control or control character remains invisible', () => {
    fc.assert(
      fc.property(unicode, (text) => {
        const shown = visibleText(text)
        expect(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/.test(shown)).toBe(
          false,
        )
      }),
    )
  })
})

test('escapeHidden returns JSON of equal value without hidden characters', () => {
  fc.assert(
    fc.property(fc.jsonValue(), unicode, (value, extra) => {
      const json = JSON.stringify({ value, extra, [extra]: 1 })
      const escaped = escapeHidden(json)
      expect(JSON.parse(escaped)).toEqual(JSON.parse(json))
      expect(/[\u202a-\u202e\u2066-\u2069\u200b]/.test(escaped)).toBe(false)
    }),
  )
})

describe('middleCut', () => {
  test('keeps short names and truncates long ones in the middle', () => {
    expect(middleCut('checkout.pay', 20)).toBe('checkout.pay')
    expect(middleCut('abcdefghijklmnopqrstuvwxyz', 11)).toBe('abcdef…wxyz')
  })

  test('does not split a character of several code points', () => {
    expect(middleCut('👩‍💻'.repeat(10), 5)).toBe('👩‍💻👩‍💻👩‍💻…👩‍💻')
  })

  test('limits characters and combining marks', () => {
    const stacked = `a${'\u0301'.repeat(500)}`
    expect(middleCut(stacked, 20).length).toBeLessThanOrEqual(16)
    fc.assert(
      fc.property(unicode, fc.integer({ min: 4, max: 60 }), (text, max) => {
        const cut = middleCut(text.repeat(5), max)
        expect(cut.length).toBeLessThanOrEqual(max * 16)
        expect(cut.startsWith('…')).toBe(text.repeat(5).startsWith('…'))
      }),
    )
  })
})
