/** CSV that other programs read back unchanged, and that a spreadsheet does not run. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { csvRow } from './csv.ts'

/** A reader that follows RFC 4180 literally, independent of the writer. */
function readRow(line: string): string[] {
  const cells: string[] = []
  const cell = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\n$)/gy
  for (let match = cell.exec(line); match !== null; match = cell.exec(line)) {
    cells.push(match[1]?.replaceAll('""', '"') ?? match[2] ?? '')
    if (match[3] !== ',') break
  }
  return cells
}

test('every text survives a round trip', () => {
  const text = fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom(',', '"', '\r', '\n', '=', 'a') }))
  fc.assert(
    fc.property(fc.array(text, { minLength: 1, maxLength: 6 }), (cells) => {
      expect(readRow(csvRow(cells, false))).toEqual(cells)
    }),
  )
})

test('the guard prefixes only cells that a spreadsheet would run', () => {
  const dangerous = ['=1+1', '+1', '-1', '@SUM(A1)', '\tx', '\rx', '\nx', '=HYPERLINK("http://x","y")']
  expect(readRow(csvRow(dangerous, true))).toEqual(dangerous.map((cell) => `'${cell}`))
  expect(readRow(csvRow(dangerous, false))).toEqual(dangerous)
  const harmless = ['a=1', ' =1', "'", '1', 'é', '']
  expect(readRow(csvRow(harmless, true))).toEqual(harmless)
})

test('numbers and missing values', () => {
  expect(csvRow([1.5, null, 'a', 0, null], true)).toBe('1.5,,a,0,\n')
  expect(csvRow([-1], true)).toBe("'-1\n")
})
