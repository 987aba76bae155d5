/** Names of people: each character can be seen, and what a language or an emoji needs is accepted. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { nameProblem, unseenProblem } from './names.ts'

const accepted = [
  'Acme',
  'Bäckerei Müller & Söhne',
  'Zürich-Süd (2)',
  '株式会社 例',
  'شركة المثال',
  'می\u200cخواهم', // Persian, between Arabic letters
  'क्\u200dष', // Devanagari, after a virama
  'ශ්\u200dරී', // Sinhala
  'Cafe\u0301', // decomposed
  'family 👨\u200d👩\u200d👧',
  '👩🏽\u200d🚀 launch',
  '🏳\ufe0f\u200d🌈',
  '❤\ufe0f',
  '1\ufe0f\u20e3 first',
  '🇩🇪',
  'a\u00a0b', // a space that can be seen
]

const refused = [
  '',
  '\u00a0',
  '\u3000',
  '\u2800',
  '\u200b',
  '\u3164',
  '\u0301',
  'Ac\u200bme',
  'Acme\u200d',
  'pay\u200cpal',
  'pay\u200dpal',
  'Acme\u00ad',
  'emca\u202e',
  'a\u2066b\u2069',
  '\ufeffAcme',
  'a\u034fb',
  'a\u115fb',
  'Acme\u{e0041}',
  'A\ufe0f',
  '1\ufe0f',
  'a\u{e0100}',
  '👨\u200dx',
  'a\nb',
  'a\u0000b',
  'a\u0085b',
  'a\u2028b',
  'a\ue000b',
  'a\u0378b', // unassigned
  'a\ud800b',
  'a'.repeat(81),
]

test.each(accepted)('accepts %j', (name) => expect(nameProblem(name)).toBeNull())
test.each(refused)('refuses %j', (name) => expect(nameProblem(name)).toMatch(/^must /))

test('the sentence names the character and its place', () => {
  expect(nameProblem('👩🏽\u200d🚀\u202e')).toBe(
    'must not contain characters that cannot be seen, such as U+202E at position 5',
  )
  expect(nameProblem('', { optional: true })).toBeNull()
  expect(nameProblem('\u200b', { optional: true })).toMatch(/U\+200B/)
})

describe('laws', () => {
  const hidden = fc
    .integer({ min: 0, max: 0x10ffff })
    .map((code) => String.fromCodePoint(code))
    .filter((character) => /[\p{C}\p{Default_Ignorable_Code_Point}\p{Zl}\p{Zp}]/u.test(character))
  const letters = fc.stringMatching(/^[A-Za-zäöü0-9 ]{0,20}$/)

  test('no hidden character passes between letters, wherever it stands', () => {
    fc.assert(
      fc.property(letters, hidden, letters, (prefix, character, suffix) => {
        expect(unseenProblem(`${prefix}${character}${suffix}`)).not.toBeNull()
      }),
    )
  })

  test('two accepted names of Latin letters that look the same are the same', () => {
    const characters = fc.constantFrom(
      'a',
      'b',
      '\u200b',
      '\u200d',
      '\u00ad',
      '\ufe0f',
      '\u2060',
      '\u{e0061}',
    )
    fc.assert(
      fc.property(fc.string({ unit: characters, maxLength: 12 }), (name) => {
        const shown = name.replace(/[^ab]/gu, '')
        if (nameProblem(name) === null) expect(name).toBe(shown)
      }),
    )
  })
})
