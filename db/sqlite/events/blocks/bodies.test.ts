/** Texts and spilled texts can be read in any order, from blocks of this schema and of earlier ones. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { openBodies, packBodies, type Spilled } from './bodies.ts'

const texts = fc.array(fc.json(), { minLength: 1, maxLength: 256, size: 'max' })
const spilled = fc.array(
  fc.tuple(
    fc.nat({ max: 255 }),
    fc.nat({ max: 13 }),
    fc.string({ unit: 'grapheme' }),
  ) as fc.Arbitrary<Spilled>,
  { maxLength: 5 },
)

function expectAll(packed: Uint8Array, all: string[], list: Spilled[]): void {
  const bodies = openBodies(packed, all.length)
  for (let row = all.length - 1; row >= 0; row--) expect(bodies.text(row)).toBe(all[row]!)
  expect(bodies.spilled()).toEqual(list)
}

test('any texts come back, whichever is asked for first', () => {
  fc.assert(
    fc.property(texts, spilled, fc.nat(), (all, list, ask) => {
      const packed = packBodies(all, list)
      const row = ask % all.length
      expect(openBodies(packed, all.length).text(row)).toBe(all[row]!)
      expect(openBodies(packed, all.length).spilled()).toEqual(list)
      expectAll(packed, all, list)
    }),
    { numRuns: 60 },
  )
})

test('a removed event leaves an empty text', () => {
  expectAll(packBodies(['{"a":1}', '', '{}'], []), ['{"a":1}', '', '{}'], [])
})

test('a block of schema 10, one piece, is read', () => {
  fc.assert(
    fc.property(texts, spilled, (all, list) => {
      const json = list.length === 0 ? '' : JSON.stringify(list)
      expectAll(Bun.zstdCompressSync(`${all.join('\0')}\0${json}\0`, { level: 1 }), all, list)
    }),
    { numRuns: 40 },
  )
})

test('a blob that ends early is refused', () => {
  const packed = packBodies(['{"a":1}'], [])
  expect(() => openBodies(packed.subarray(0, packed.length - 4), 1).text(0)).toThrow()
  expect(() => openBodies(packed, 1).text(640)).toThrow('out of range')
})
