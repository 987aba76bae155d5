/** Distinct counts against exact ones, from one value to a million, over many seeds. */
import { expect, test } from 'bun:test'
import { estimate, registerAndRank, registers, sketchCode, standardError } from './sketches.ts'
import { hashCode } from '../blocks/fields.ts'

function estimated(count: number, seed: number): number {
  const ranks = new Uint8Array(registers)
  for (let n = 0; n < count; n++) {
    const [register, rank] = registerAndRank(sketchCode(hashCode(`ses_${n}`, seed)))
    ranks[register] = Math.max(rank, ranks[register]!)
  }
  return estimate(ranks)
}

test('few values are counted to a percent', () => {
  for (const count of [0, 1, 2, 10, 100, 1_000]) {
    const off = [1, 2, 3, 4, 5, 6, 7, 8].map((seed) => Math.abs(estimated(count, seed) - count))
    expect([count, Math.max(...off) <= Math.max(1, count * 0.03)]).toEqual([count, true])
  }
})

test('many are within three standard errors, and within one most of the time', () => {
  for (const [count, seeds] of [
    [5_000, 20],
    [20_000, 20],
    [100_000, 10],
    [1_000_000, 2],
  ] as const) {
    const off = Array.from({ length: seeds }, (_, seed) => Math.abs(estimated(count, seed + 1) / count - 1))
    expect([count, Math.max(...off) < 3 * standardError]).toEqual([count, true])
    const mean = off.reduce((sum, one) => sum + one, 0) / seeds
    expect([count, mean < 1.5 * standardError]).toEqual([count, true])
  }
}, 20_000)
