/** A filter passes every code it was built from, and few others. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { hashCode } from '../blocks/fields.ts'
import { filterOf, mayHold } from './posting.ts'

test('whatever it was made of passes', () => {
  const code = fc.integer({ min: 2 ** 31, max: 2 ** 32 - 1 })
  fc.assert(
    fc.property(fc.uniqueArray(code, { minLength: 1, maxLength: 2_000 }), (codes) => {
      const bits = filterOf(codes, codes.length)
      expect(codes.every((one) => mayHold(bits, one))).toBe(true)
    }),
    { numRuns: 30 },
  )
})

test('of what it was not made of, hardly more than one in a hundred passes', () => {
  for (const count of [10, 3_000, 65_536]) {
    const codes = Array.from({ length: count }, (_, n) => hashCode(`in ${n}`, 7))
    const bits = filterOf(codes, count)
    const others = Array.from({ length: 20_000 }, (_, n) => hashCode(`out ${n}`, 7))
    expect(others.filter((one) => mayHold(bits, one)).length).toBeLessThan(500)
  }
})
