/** Sets of positions come back as stored, and a Bloom filter passes every code it was built from, and few others. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { hashCode } from '../blocks/fields.ts'
import {
  addList,
  addSet,
  anyBit,
  filterOf,
  hasBit,
  mayHold,
  newBitmap,
  packList,
  packSet,
  setBit,
} from './posting.ts'
import { runs } from '../../../../tests/support/runs.ts'

test('every code of the filter passes', () => {
  const code = fc.integer({ min: 2 ** 31, max: 2 ** 32 - 1 })
  fc.assert(
    fc.property(fc.uniqueArray(code, { minLength: 1, maxLength: 2_000 }), (codes) => {
      const bits = filterOf(codes, codes.length)
      expect(codes.every((heldCode) => mayHold(bits, heldCode))).toBe(true)
    }),
    { numRuns: runs(30) },
  )
})

test('of other codes at most 2.5 % pass', () => {
  for (const count of [10, 3_000, 65_536]) {
    const codes = Array.from({ length: count }, (_, n) => hashCode(`in ${n}`, 7))
    const bits = filterOf(codes, count)
    const otherCodes = Array.from({ length: 20_000 }, (_, n) => hashCode(`out ${n}`, 7))
    expect(otherCodes.filter((otherCode) => mayHold(bits, otherCode)).length).toBeLessThan(500)
  }
})

const position = fc.integer({ min: 0, max: 65_535 })
const ascending = (values: Iterable<number>) => [...new Set(values)].toSorted((a, b) => a - b)
const sparse = fc.array(position, { maxLength: 400 }).map(ascending)
const dense = fc.tuple(fc.integer({ min: 1, max: 7 }), position).map(([step, first]) => {
  return ascending(Array.from({ length: 65_536 }, (_, n) => n).filter((n) => n >= first && n % step === 0))
})

function members(bitmap: Uint32Array<ArrayBuffer>): number[] {
  return Array.from({ length: 65_536 }, (_, n) => n).filter((n) => hasBit(bitmap, n))
}

test('lists and sets come back', () => {
  fc.assert(
    fc.property(fc.oneof(sparse, dense), (positions) => {
      const fromSet = newBitmap()
      addSet(fromSet, packSet(positions))
      expect(members(fromSet)).toEqual(positions)
      const fromList = newBitmap()
      addList(fromList, packList(positions))
      expect(fromList).toEqual(fromSet)
    }),
    { numRuns: runs(40) },
  )
})

test('adding a set leaves the positions of the bitmap', () => {
  const bitmap = newBitmap()
  setBit(bitmap, 5)
  addSet(bitmap, packSet([0, 65_535]))
  expect(members(bitmap)).toEqual([0, 5, 65_535])
})

test('anyBit reads exactly its range', () => {
  fc.assert(
    fc.property(position, position, fc.integer({ min: 1, max: 300 }), (bit, first, count) => {
      const rowsWithin = Math.min(count, 65_536 - first)
      const bitmap = newBitmap()
      setBit(bitmap, bit)
      expect(anyBit(bitmap, first, rowsWithin)).toBe(bit >= first && bit < first + rowsWithin)
    }),
    {
      numRuns: runs(2_000),
      examples: [
        [31, 31, 1],
        [32, 0, 32],
        [63, 32, 32],
        [65_535, 65_280, 256],
      ],
    },
  )
})
