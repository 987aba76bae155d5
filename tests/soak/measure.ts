/** What a soak measures of the server process and of its answers, and which of it shows a trend. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { quantile } from '../support/load.ts'

/** One value of each series, at a moment. */
export interface Sample {
  atS: number // since the start of the soak
  processS: number // since the start of the server process
  values: { [series: string]: number }
}

/** Latencies in ms, by what was asked. */
export interface Latencies {
  add(name: string, ms: number): void
  /** The median and the 99th percentile of each since they were taken last. */
  take(): { [series: string]: number }
}

export function latencies(): Latencies {
  const durationsBySeries = new Map<string, number[]>()
  return {
    add(name, ms) {
      const durations = durationsBySeries.get(name)
      if (durations === undefined) durationsBySeries.set(name, [ms])
      else durations.push(ms)
    },
    take() {
      const quantiles: { [series: string]: number } = {}
      for (const [name, durations] of durationsBySeries) {
        quantiles[`${name} p50 ms`] = quantile(durations, 0.5)
        quantiles[`${name} p99 ms`] = quantile(durations, 0.99)
      }
      durationsBySeries.clear()
      return quantiles
    },
  }
}

/** Of a server process and its data folder: resident memory, open files, threads, and bytes on disk of each event. */
export function processValues(pid: number, dataDir: string, events: number): { [series: string]: number } {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const field = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0)
  return {
    'memory MiB': field('VmRSS') / 1_024,
    'open files': readdirSync(`/proc/${pid}/fd`).length,
    threads: field('Threads'),
    ...(events === 0 ? {} : { 'disk bytes an event': bytesBelow(dataDir) / events }),
  }
}

function bytesBelow(folder: string): number {
  let bytes = 0
  for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true })) {
    if (!entry.isFile()) continue
    try {
      bytes += statSync(join(entry.parentPath, entry.name)).size
    } catch {
      // It was removed meanwhile.
    }
  }
  return bytes
}

export interface Trend {
  series: string
  early: number // the median of the second quarter of the soak
  late: number // the median of the last quarter
  /** Of a Mann–Kendall test over the medians of 24 equal parts: above 3, a rise by chance is unlikely. */
  z: number
  isRising: boolean
}

/** A process takes memory and opens files until it has met every kind of work. */
const warmUpS = 120
const parts = 24
const growthMin = 0.1
const zMin = 3

/**
 * The trends of all series after the first quarter. A series rises when its late median is more than a tenth above the
 * early one, and its parts rise steadily.
 */
export function trendsOf(samples: Sample[]): Trend[] {
  const endS = samples.at(-1)?.atS ?? 0
  const names = new Set(samples.flatMap(({ values }) => Object.keys(values)))
  return [...names].map((series) => {
    const points = samples.filter(({ atS, processS, values }) => {
      return atS >= endS / 4 && processS >= Math.min(warmUpS, endS / 16) && values[series] !== undefined
    })
    const valuesBetween = (from: number, to: number) =>
      points.filter(({ atS }) => atS >= from * endS && atS < to * endS).map(({ values }) => values[series]!)
    const early = quantile(valuesBetween(0.25, 0.5), 0.5)
    const late = quantile(valuesBetween(0.75, 1.01), 0.5)
    const medians = Array.from({ length: parts }, (_, part) => {
      const [from, to] = [part, part + 1].map((edge) => 0.25 + (0.76 * edge) / parts)
      return valuesBetween(from!, to!)
    })
    const z = mannKendall(medians.filter((part) => part.length > 0).map((part) => quantile(part, 0.5)))
    return { series, early, late, z, isRising: late > early * (1 + growthMin) && z > zMin }
  })
}

/** The statistic of the Mann–Kendall test, without correction for ties. 0 for fewer than three values. */
export function mannKendall(values: number[]): number {
  const count = values.length
  if (count < 3) return 0
  let s = 0
  values.forEach((value, index) => {
    for (const later of values.slice(index + 1)) s += Math.sign(later - value)
  })
  const variance = (count * (count - 1) * (2 * count + 5)) / 18
  return s === 0 ? 0 : (s - Math.sign(s)) / Math.sqrt(variance)
}
