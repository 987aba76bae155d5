/** Tests of the verdict of a soak: what rises is found, what swings, jumps or warms up is not. */
import { expect, test } from 'bun:test'
import { seeded } from '../crash/seeded.ts'
import { soakChart } from './chart.ts'
import { latencies, mannKendall, processValues, type Sample, trendsOf } from './measure.ts'

const { fraction } = seeded(7)

function samplesOf(value: (share: number) => number): Sample[] {
  return Array.from({ length: 720 }, (_, n) => {
    return { atS: n * 10, processS: (n % 240) * 10, values: { 'memory MiB': value(n / 720) } }
  })
}

const risingOf = (value: (share: number) => number) => trendsOf(samplesOf(value))[0]!.isRising

test('a leak below the noise of a garbage collector is found, noise alone is not', () => {
  const noise = () => 300 + 80 * fraction()
  expect(risingOf((share) => noise() + 120 * share)).toBe(true)
  for (let times = 0; times < 50; times++) expect(risingOf(noise)).toBe(false)
})

test('a plateau, a warm-up and one late jump are no trend', () => {
  expect(risingOf((share) => Math.min(1, share * 5) * 400 + fraction())).toBe(false)
  expect(risingOf((share) => (share > 0.97 ? 900 : 300) + fraction())).toBe(false)
  expect(risingOf((share) => 500 - 200 * share)).toBe(false)
})

test('the statistic of Mann and Kendall', () => {
  expect(mannKendall([1, 2])).toBe(0)
  // S = 6, variance = 4 · 3 · 13 / 18.
  expect(mannKendall([1, 2, 3, 4])).toBeCloseTo(5 / Math.sqrt(156 / 18))
  expect(mannKendall([4, 3, 2, 1])).toBeCloseTo(-5 / Math.sqrt(156 / 18))
  expect(mannKendall([1, 1, 1, 1])).toBe(0)
})

test('a process is measured, latencies are taken once, and the picture has a panel for each series', () => {
  const values = processValues(process.pid, import.meta.dir, 10)
  expect(values['memory MiB']).toBeGreaterThan(10)
  expect(values['open files']).toBeGreaterThan(3)
  expect(values['disk bytes an event']).toBeGreaterThan(100)
  const recorder = latencies()
  for (let ms = 1; ms <= 100; ms++) recorder.add('page', ms)
  expect(recorder.take()).toEqual({ 'page p50 ms': 51, 'page p99 ms': 100 })
  expect(recorder.take()).toEqual({})
  const samples = samplesOf((share) => 300 * (1 + share))
  const svg = soakChart('a <soak>', samples, trendsOf(samples), [2_400])
  expect(svg).toContain('a &lt;soak>')
  expect(svg.match(/<polyline /g)).toHaveLength(1)
  expect(svg).toContain('#c62828')
})
