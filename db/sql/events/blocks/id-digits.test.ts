/** Ids of one form come back from their digits, and each is found in its frame alone. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { runs } from '../../../../tests/support/runs.ts'
import { mayHoldDigits, openIdDigits, packIdDigits } from './id-digits.ts'
import {
  deflateFrame,
  holdsId,
  idsPerFrame,
  openIdFrame,
  openIds,
  openNames,
  packNames,
  packSealedNames,
} from './texts.ts'

const uuid = (n: number): string => {
  const hex = Bun.SHA256.hash(String(n), 'hex')
  return `"trc_${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(12, 15)}-a${hex.slice(15, 18)}-${hex.slice(18, 30)}"`
}
const forms: [name: string, id: (n: number) => string][] = [
  ['UUID', uuid],
  ['digits alone', (n) => uuid(n).replaceAll(/[^0-9a-f]/g, '')],
  ['an odd number of digits', (n) => `"${uuid(n).slice(5, 8)}"`],
  ['a counter', (n) => `"evt_${String(n).padStart(9, '0')}"`],
]

function expectSame(ids: string[], packed: Uint8Array): void {
  expect(openIds(packed, ids.length)).toEqual(ids)
  const names = openNames(packed, ids.length)
  ids.forEach((id, row) => {
    expect(names.id(row)).toBe(id)
    const frame = openIdFrame(packed, row)!
    expect(ids.map((candidate) => frame.has(candidate))).toEqual(
      ids.map(
        (candidate, index) => Math.floor(index / 64) === Math.floor(row / 64) || ids[row] === candidate,
      ),
    )
    expect(frame.rows).toBe(Math.min(64, ids.length - frame.firstRow))
  })
  expect(ids.every((id) => holdsId(packed, ids.length, id))).toBe(true)
}

test.each(forms)('ids of one form come back: %s', (_, id) => {
  const ids = [...new Set(Array.from({ length: 150 }, (_, n) => id(n)))]
  const packed = packSealedNames(ids, ids)
  expectSame(ids, packed)
  for (let from = 0; from < ids.length; from += idsPerFrame) {
    const frame = ids.slice(from, from + idsPerFrame)
    expect(packIdDigits(frame)!.length).toBeLessThan(deflateFrame(`\0${frame.join('\0')}\0`).length)
  }
})

test('an id that only differs from the form, or spans two ids, is not found', () => {
  const frame = openIdDigits(packIdDigits(['"x_12_34"', '"x_56_78"'])!)
  expect(frame.has('"x_12_34"')).toBe(true)
  for (const otherId of ['"x_34_56"', '"y_12_34"', '"x_1234"', '"x_12-34"', '', '"x_12_3g"', '#5 abc'])
    expect([otherId, frame.has(otherId)]).toEqual([otherId, false])
})

test('any ids come back, with digits or without', () => {
  const digits = fc.stringMatching(/^"e[0-9a-f]{5}z[0-9a-f]{2}"$/)
  const texts = fc.string({ unit: 'grapheme' }).map((text) => JSON.stringify(text))
  const marks = fc.constantFrom('""', '#123 abc')
  const ids = fc.oneof(
    fc.uniqueArray(digits, { minLength: 1, maxLength: 130 }),
    fc.array(fc.oneof(digits, texts, marks), { minLength: 1, maxLength: 130 }),
  )
  fc.assert(
    fc.property(ids, (names) => {
      const packed = packSealedNames(names, names)
      expect(openIds(packed, names.length)).toEqual(names)
      names.forEach((id, row) => expect(openIdFrame(packed, row)!.has(id)).toBe(true))
    }),
    { numRuns: runs(100) },
  )
})

test('ids of other forms have no digits', () => {
  for (const ids of [
    ['"a1"', '"a22"'],
    ['"aG"', '"aH"'],
    ['"é1"', '"é2"'],
    [''],
    ['a\0', 'b\0'],
    ['"A"', '"B"'],
  ])
    expect([ids, packIdDigits(ids)]).toEqual([ids, null])
})

test('a frame that ends early is rejected', () => {
  const packed = packIdDigits(['"a1"', '"a2"', '"a3"'])!
  expect(() => openIdDigits(packed.subarray(0, packed.length - 1))).toThrow('another length')
})

test('a part of an id may be in its frame, and what no place allows is not', () => {
  fc.assert(
    fc.property(
      fc.array(fc.uuid(), { minLength: 1, maxLength: 64 }),
      fc.nat(),
      fc.nat({ max: 20 }),
      (ids, from, length) => {
        const quotedIds = ids.map((id) => `"trc_${id}"`)
        const packed = packIdDigits(quotedIds)
        if (packed === null) return
        for (const id of quotedIds) {
          const start = from % id.length
          expect(mayHoldDigits(packed, id.slice(start, start + length).toUpperCase())).toBe(true)
        }
      },
    ),
    { numRuns: runs(60) },
  )
  const packed = packIdDigits(Array.from({ length: 64 }, () => `"trc_${crypto.randomUUID()}"`))!
  for (const part of ['NOTHING', 'TRC__', 'RC_X', '-4-', '4711-G', `"${'0'.repeat(60)}`])
    expect([part, mayHoldDigits(packed, part)]).toEqual([part, false])
  for (const part of ['', 'TRC_', '4711', 'C_BEEF']) expect(mayHoldDigits(packed, part)).toBe(true)
})
