/** Id runs and their filter: every added id is found, and at most 1 % of the others. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { chunkOf, chunksPerRun, findInChunk, idFilter, newRunBits, packEntry } from './id-run.ts'
import { idTable } from './id-table.ts'
import { runs } from '../../../../tests/support/runs.ts'

const print = fc.integer({ min: 0, max: 2 ** 53 - 1 })

test('a chunk finds every entry, equal fingerprints included', () => {
  const offset = fc.integer({ min: 0, max: 2 ** 21 - 1 })
  const entry = fc.tuple(
    fc.oneof(fc.integer({ min: 0, max: 20 }), fc.integer({ min: 0, max: 2 ** 43 - 1 })),
    offset,
  )
  fc.assert(
    fc.property(
      fc.array(entry, { minLength: 1 }),
      fc.integer({ min: 0, max: 1_023 }),
      print,
      (pairs, chunk, otherPrint) => {
        const entries = pairs.map(([low, position]) => ({ print: chunk * 2 ** 43 + low, at: position }))
        const words = new Uint32Array(entries.length * 2)
        entries.forEach(({ print, at: position }, index) => packEntry(words, index, print, position))
        const packed = new Uint8Array(words.buffer)
        for (const { print, at: position } of entries) {
          expect(chunkOf(print)).toBe(chunk)
          expect(findInChunk(packed, print, (candidate) => candidate === position)).toBe(true)
        }
        const isThere = entries.some((idEntry) => idEntry.print % 2 ** 43 === otherPrint % 2 ** 43)
        expect(findInChunk(packed, otherPrint, () => true)).toBe(isThere)
      },
    ),
  )
})

test('a chunk rejects values that its entries cannot hold', () => {
  expect(() => packEntry(new Uint32Array(2), 0, 1, 2 ** 21)).toThrow()
})

test('the table finds every entry, through growth and after it was emptied, and gives each in its chunk', () => {
  // Equal keys displace each other, those of the last chunk beyond the end of the slots.
  const key = fc.oneof(print, fc.constantFrom(0, 2 ** 43 - 1, 2 ** 43, 2 ** 53 - 1))
  const entries = fc.array(fc.tuple(key, fc.integer({ min: 0, max: 2 ** 21 - 1 })), {
    maxLength: 2_000,
    size: 'max',
  })
  fc.assert(
    fc.property(fc.array(entries, { minLength: 1, maxLength: 3 }), print, (rounds, otherPrint) => {
      const table = idTable(1)
      for (const round of rounds) {
        for (const [key, place] of round) table.add(0, place, key)
        expect(table.size()).toBe(round.length)
        for (const [key, place] of round)
          expect(table.find(key, (candidate) => candidate === place)).toBe(true)
        expect(table.find(otherPrint, () => true)).toBe(round.some(([key]) => key === otherPrint))
        const visits: [number, number][] = []
        for (let chunk = 0; chunk < chunksPerRun; chunk++) {
          table.chunk(chunk, (key, place) => {
            expect(chunkOf(key)).toBe(chunk)
            visits.push([key, place])
          })
        }
        const inOrder = (sortEntries: [number, number][]) =>
          sortEntries.toSorted((a, b) => a[0] - b[0] || a[1] - b[1])
        expect(inOrder(visits)).toEqual(inOrder(round))
        table.clear()
        for (const [key] of round) expect(table.find(key, () => true)).toBe(false)
      }
    }),
    { numRuns: runs(50) },
  )
})

test('the filter knows every id in its run, before and after a restart, and few others', () => {
  const random = (n: number) => Number((Bun.hash.wyhash(`id ${n}`) as bigint) >> 11n)
  const filter = idFilter()
  const reloaded = idFilter()
  const runs = 40
  for (let run = 0; run < runs; run++) {
    const bits = newRunBits()
    for (let n = 0; n < 131_072 / 64; n++) filter.add(run, bits, random(run * 131_072 + n))
    reloaded.load(run, bits)
  }
  const candidates = (runFilter: typeof filter, print: number) => {
    const foundRuns: number[] = []
    runFilter.some(print, (run) => foundRuns.push(run) < 0)
    return foundRuns
  }
  for (let run = 0; run < runs; run++) expect(candidates(filter, random(run * 131_072 + 7))).toContain(run)
  const otherCandidates = Array.from({ length: 2_000 }, (_, n) => candidates(filter, random(-1 - n)))
  expect(otherCandidates.flat().length).toBeLessThan(20)
  expect(otherCandidates).toEqual(
    Array.from({ length: 2_000 }, (_, n) => candidates(reloaded, random(-1 - n))),
  )
  for (const run of [3, 35]) {
    filter.drop(run)
    expect(candidates(filter, random(run * 131_072 + 7))).not.toContain(run)
    for (const otherRun of [run + 1, run - 3])
      expect(candidates(filter, random(otherRun * 131_072 + 7))).toContain(otherRun)
  }
})

test('the filter of a run of an earlier version, half as long, still knows every id', () => {
  const filter = idFilter()
  const bits = new Uint32Array(2 ** 21 / 32)
  const prints = Array.from({ length: 20_000 }, (_, n) =>
    Number((Bun.hash.wyhash(`old id ${n}`) as bigint) >> 11n),
  )
  for (const print of prints) {
    const step = Math.imul(Math.floor(print / 2 ** 32) ^ (print >>> 7), 0x9e3779b1) | 1
    for (let k = 0, hash = print >>> 0; k < 6; k++, hash = (hash + step) | 0)
      bits[hash >>> 16]! |= 1 << ((hash >>> 11) & 31)
  }
  filter.load(5, bits)
  for (const print of prints) expect(filter.some(print, (run) => run === 5)).toBe(true)
  const otherMatches = Array.from({ length: 2_000 }, (_, n) => filter.some(n * 4_503_599, (run) => run === 5))
  expect(otherMatches.filter(Boolean).length).toBeLessThan(20)
})
