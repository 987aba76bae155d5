/** The scan of JSON text agrees with parsing: ends, depth, and which numbers survive a double. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { hasMoreOpeners, type Scan, skipString, skipValue } from './json-scan.ts'
import { runs } from '../../tests/support/runs.ts'

const scanOf = (text: string): Scan & { end: number } => {
  const scan: Scan = { depth: 0, isExact: true }
  return { end: skipValue(text, 0, scan), ...scan }
}

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  return 1 + Math.max(0, ...Object.values(value).map(depthOf))
}

const json = fc.json({ maxDepth: 6, stringUnit: 'binary' })

test('finds the end and the depth of a value, with or without whitespace', () => {
  fc.assert(
    fc.property(
      json,
      fc.constantFrom('', ' ', '\n\t'),
      fc.constantFrom(',', ']', '}', ' ', ''),
      (text, gap, suffix) => {
        const value: unknown = JSON.parse(text)
        const spaced = gap === '' ? text : JSON.stringify(value, null, gap)
        const { end, depth } = scanOf(spaced + suffix)
        expect(end).toBe(spaced.length)
        expect(depth).toBe(depthOf(value))
      },
    ),
    { numRuns: runs(1_000) },
  )
})

test('no text makes it loop or return a position outside the text', () => {
  const hostile = fc.string({
    unit: fc.constantFrom('"', '\\', '{', '}', '[', ']', ',', ':', '1', '-', 'e', ' ', 'n'),
  })
  fc.assert(
    fc.property(hostile, (text) => {
      const { end } = scanOf(text)
      return end >= -1 && end <= text.length
    }),
    { numRuns: runs(2_000) },
  )
})

test('numbers that a double changes are never reported as exact', () => {
  const digits = fc.stringMatching(/^-?(0|[1-9][0-9]{0,24})(\.[0-9]{1,24})?([eE][+-]?[0-9]{1,4})?$/)
  fc.assert(
    fc.property(digits, (number) => {
      const isSame = Object.is(Number(number), Number(JSON.stringify(Number(number))))
      const decimalText = decimal(number)
      const read = Number.isFinite(Number(number)) ? decimal(String(Number(number))) : 'Infinity'
      if (!isSame || decimalText !== read) expect(scanOf(`[${number}]`).isExact).toBe(false)
    }),
    { numRuns: runs(5_000) },
  )
  for (const number of ['0', '1', '-1', '3.25', '0.1', '999999999999999', '-12.5', '1760000000000']) {
    expect(scanOf(`{"n":${number}}`).isExact).toBe(true)
  }
  for (const number of ['-0', '-0.0', '1e999', '9007199254740993', '0.1000000000000000055', '1e-400']) {
    expect(scanOf(`{"n":${number}}`).isExact).toBe(false)
  }
  expect(scanOf('{"n":"9007199254740993 1e999 -0"}').isExact).toBe(true)
})

/** A decimal number in one spelling: sign, digits without zeros at the ends, and the place of the point. */
function decimal(text: string): string {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? []
  const digitText = (whole + fraction).replace(/^0+/, '')
  const digits = digitText.replace(/0+$/, '')
  if (digits === '') return `${sign}0`
  return `${sign}${digits}e${Number(exponent) - fraction.length + (digitText.length - digits.length)}`
}

test('strings end at their closing quote, whatever they escape', () => {
  for (const value of ['', 'a', '\\', '"', '\\"', '\\\\', 'a\\\\"', '{[']) {
    const text = JSON.stringify(value)
    expect(skipString(`${text}"x`, 0)).toBe(text.length)
  }
  for (const open of ['"', '"a', '"\\"', '"\\\\\\"']) expect(skipString(open, 0)).toBe(-1)
})

test('counts opening brackets up to the limit', () => {
  expect(hasMoreOpeners('[{[{', 4)).toBe(false)
  expect(hasMoreOpeners('[{[{', 3)).toBe(true)
  expect(hasMoreOpeners('', 0)).toBe(false)
})
