/** Lengths and truncation in code points and in UTF-8 bytes, for any text. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { cutBytes, cutChars, isStorable, isLongerThan } from './text.ts'

const text = fc.string({ unit: 'binary', maxLength: 60 })
const size = fc.nat(80)

test('length counts code points', () => {
  fc.assert(fc.property(text, size, (value, max) => isLongerThan(value, max) === [...value].length > max))
  expect(isLongerThan('\u{1f600}'.repeat(200), 200)).toBe(false)
  expect(isLongerThan('\u{1f600}'.repeat(201), 200)).toBe(true)
})

test('truncation keeps as many whole code points as fit', () => {
  fc.assert(
    fc.property(text, size, (value, max) => cutChars(value, max) === [...value].slice(0, max).join('')),
  )
  fc.assert(
    fc.property(text, size, (value, max) => {
      let fits = ''
      for (const char of value) {
        if (Buffer.byteLength(fits + char) > max) break
        fits += char
      }
      return cutBytes(value, max) === fits
    }),
    { numRuns: 1_000 },
  )
})

test('NUL and unpaired surrogates cannot be stored', () => {
  expect(isStorable('größe \u{1f600}')).toBe(true)
  for (const bad of ['\0', 'a\0b', '\ud800', 'x\udfff', '\udc00\ud800']) expect(isStorable(bad)).toBe(false)
})
