/** Searching texts inside JSON: any case, escapes, and only string values. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { textMatcher } from './page.ts'

const holds = (value: unknown, part: string) => textMatcher(part)(JSON.stringify(value))

test('finds a part of any text, at any depth, whatever its case', () => {
  const event = { id: 'evt_1', agent: { vendor: 'OpenAI' }, metadata: { list: [{ a: 'Straße "x" \n\\' }] } }
  for (const part of ['EVT_', 'openai', 'STRASSE', 'straße', '"X"', '\n', '\\', 'ße "'])
    expect([part, holds(event, part)]).toEqual([part, true])
  expect(holds({ a: 'ΟΔΟΣ' }, 'οδος')).toBe(true)
  expect(holds({ a: 'ΟΔΟΣ ΑΒΓ' }, 'δος αβ')).toBe(true)
})

test('names of fields, numbers and structure are not texts', () => {
  const event = { vendor: 'x', n: 12345, ok: true, none: null }
  for (const part of ['vendor', '12345', 'true', 'null', '":"', '{', 'x"'])
    expect([part, holds(event, part)]).toEqual([part, false])
})

test('every part of a text is found', () => {
  const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 })
  fc.assert(
    fc.property(text, text, text, (before, part, after) => {
      expect(holds({ a: [before + part + after] }, part)).toBe(true)
    }),
  )
})
