/** Values of metadata come from senders: however they are chosen, finding one stays cheap and right. */
import { expect, test } from 'bun:test'
import { makeDictionary } from './metadata.ts'

test('values that were made to share their hash are compared with a few others, and keep their codes', () => {
  const dictionary = makeDictionary()
  const codeOf = (json: string): number => {
    const bytes = Buffer.from(`before${json}after`)
    return dictionary.codeOf(bytes, 6, 6 + Buffer.byteLength(json))
  }
  // Aa and BB have the same hash, and so have all texts of them.
  const pairs = Array.from({ length: 4_096 }, (_, n) =>
    n.toString(2).padStart(12, '0').replaceAll('0', 'Aa').replaceAll('1', 'BB'),
  )
  const jsons = pairs.map((text) => JSON.stringify(text))
  const codes = jsons.map(codeOf)
  const coded = codes.filter((code) => code >= 0)
  expect(coded.length).toBeGreaterThan(0)
  expect(coded.length).toBeLessThan(20)
  expect(new Set(coded).size).toBe(coded.length)
  expect(jsons.map(codeOf)).toEqual(codes)
  codes.forEach((code, n) => code >= 0 && expect(dictionary.texts[code]).toBe(pairs[n]!))
  const plain = Array.from({ length: 4_000 }, (_, n) => codeOf(JSON.stringify(`plan ${n}`)))
  expect(new Set(plain).size).toBe(4_000)
  expect(plain).not.toContain(-1)
})
