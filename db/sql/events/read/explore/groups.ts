/** The values by which events are grouped, bounded in memory, and their numbers: sums, distinct values, quantiles. */
import { quantile, relativeError } from '../../rollups/sketches.ts'
import { codesSpan, pairs } from '../pairs.ts'
import type { ExploredNumbers } from '../../../../contract/explore.ts'

/** Groups without a value of their own. */
export const otherGroup = 0
export const missingGroup = 1

/** Cells of all groups and steps: 8 bytes each. */
const cellsMax = 2_000_000
const groupsMax = 50_000
/** Characters of all values together, and of one. */
const charsMax = 4_000_000
const valueCharsMax = 2_000

/** Groups by value. Values beyond the limits belong to `otherGroup`, so memory is bounded for any events. */
export interface Groups {
  /** The values by group; '' for the first two groups. */
  values: string[]
  isCut(): boolean
  of(value: string): number
  /** The group of what may be missing. */
  ofText(value: string | null): number
}

export function groupsOf(steps: number): Groups {
  const byValue = new Map<string, number>()
  const values = ['', '']
  const valuesMax = Math.min(groupsMax, Math.floor(cellsMax / (steps + 1)))
  let chars = 0
  let isCut = false
  function assignGroup(value: string): number {
    const existingGroup = byValue.get(value)
    if (existingGroup !== undefined) return existingGroup
    if (values.length >= valuesMax || value.length > valueCharsMax || chars + value.length > charsMax) {
      isCut = true
      return otherGroup
    }
    chars += value.length
    byValue.set(value, values.length)
    values.push(value)
    return values.length - 1
  }

  return {
    values,
    isCut: () => isCut,
    of: assignGroup,
    ofText: (value) => (value === null ? missingGroup : assignGroup(value)),
  }
}

/** Adds up what is measured of events. */
export interface Tally {
  /** `amount` is a number, a hash of 31 bits, or a bucket of durations. */
  add(group: number, step: number, amount: number): void
  /** Adds several events at once, where amounts are added up. */
  addMany?(group: number, step: number, events: number, amount?: number): void
  /** The size by which groups are ranked. */
  size(group: number): number
  /** The numbers of each set of groups. A set of several counts a value that more than one of them have once. */
  numbers(sets: readonly (readonly number[])[]): ExploredNumbers[]
  isCut?(): boolean
}

/** Numbers by group and step, in one array that grows. */
function cellsOf(steps: number) {
  let cells = new Float64Array(64 * steps)
  return {
    add(group: number, step: number, amount: number): void {
      const cell = group * steps + step
      if (cell >= cells.length) {
        const larger = new Float64Array(Math.max(cells.length * 2, (group + 1) * steps))
        larger.set(cells)
        cells = larger
      }
      cells[cell]! += amount
    },
    of: (group: number, step: number): number => cells[group * steps + step] ?? 0,
    clear: () => void cells.fill(0),
    /** The sums of several groups, by step. */
    sums(groups: readonly number[]): number[] {
      const sums = Array<number>(steps).fill(0)
      for (const group of groups)
        for (let step = 0; step < steps; step++) sums[step]! += cells[group * steps + step] ?? 0
      return sums
    },
  }
}

export function sumTally(steps: number): Tally {
  const sums = cellsOf(steps)
  const wholes = cellsOf(2) // the sum of the range, and the number of events

  function add(group: number, step: number, amount: number, events = 1): void {
    sums.add(group, step, amount)
    wholes.add(group, 0, amount)
    wholes.add(group, 1, events)
  }
  return {
    add,
    addMany: (group, step, events, amount = events) => add(group, step, amount, events),
    size: (group) => wholes.of(group, 0),
    numbers: (sets) =>
      sets.map((groups) => {
        const [total = 0, events = 0] = wholes.sums(groups)
        return { events, total, steps: sums.sums(groups), error: 0 }
      }),
  }
}

const distinctPlacesMax = 2 ** 20

/** From here on two values with equal hashes are likely, so that the count is an estimate. */
const exactMax = 20_000
const hashError = 1 / Math.sqrt(codesSpan)

/**
 * Distinct values by their hashes, each counted once per step and once per group. When they do not fit, every other
 * hash is left out, in all groups, and the counts are multiplied: so unions stay right.
 */
export function distinctTally(steps: number, placesMax = distinctPlacesMax): Tally {
  const width = steps + 1 // the last one is the whole range
  const events = cellsOf(1)
  const sizes = cellsOf(width)
  let valuePairs = pairs(placesMax)
  let zeroBits = 0 // bits of a hash that must be 0

  const isSampled = (code: number): boolean => code % 2 ** zeroBits === 0

  function count(group: number, step: number, code: number): void {
    if (valuePairs.add(group * width + step, code)) sizes.add(group, step, 1)
  }

  function shrink(): void {
    zeroBits++
    const oldPairs = valuePairs
    valuePairs = pairs(placesMax)
    sizes.clear()
    oldPairs.each((cell, code) => {
      if (!isSampled(code)) return
      count(Math.floor(cell / width), cell % width, code)
      valuePairs.grow()
    })
  }

  function union(groups: readonly number[]): number[] {
    const chosen = new Set(groups)
    const unionPairs = pairs(placesMax)
    const counts = Array<number>(width).fill(0)
    valuePairs.each((cell, code) => {
      if (!chosen.has(Math.floor(cell / width))) return
      if (unionPairs.add(cell % width, code)) counts[cell % width]!++
      unionPairs.grow()
    })
    return counts
  }

  return {
    add(group, step, code) {
      events.add(group, 0, 1)
      if (!isSampled(code)) return
      count(group, step, code)
      count(group, steps, code)
      while (!valuePairs.grow()) shrink()
    },
    size: (group) => sizes.of(group, steps),
    numbers: (sets) =>
      sets.map((groups) => {
        const counts = groups.length === 1 ? sizes.sums(groups) : union(groups)
        const [distinctCount = 0] = counts.splice(steps)
        const times = 2 ** zeroBits
        const sampled = Math.sqrt((times - 1) / (Math.max(1, distinctCount) * times))
        return {
          events: events.sums(groups)[0] ?? 0,
          total: distinctCount * times,
          steps: counts.map((stepCount) => stepCount * times),
          error: zeroBits > 0 ? sampled : distinctCount > exactMax ? hashError : 0,
        }
      }),
  }
}

/** Fits the buckets of all steps of the first two groups, which are never merged. */
const bucketPlacesMax = 2 ** 21

/** Durations by bucket. When they do not fit, the smaller groups are added to `otherGroup` for good. */
export function quantileTally(steps: number, share: number, placesMax = bucketPlacesMax): Tally {
  const events = cellsOf(1)
  const merged = new Set<number>()
  let bucketPairs = pairs(placesMax)

  function shrink(): void {
    const groups = new Set<number>()
    bucketPairs.each((cell) => void groups.add(Math.floor(cell / steps)))
    const sorted = [...groups].filter((group) => group > missingGroup)
    sorted.sort((a, b) => events.of(a, 0) - events.of(b, 0))
    for (const group of sorted.slice(0, Math.ceil(sorted.length / 2))) {
      merged.add(group)
      events.add(otherGroup, 0, events.of(group, 0))
      events.add(group, 0, -events.of(group, 0))
    }
    const oldPairs = bucketPairs
    bucketPairs = pairs(placesMax)
    oldPairs.each((cell, bucket, count) => {
      const group = Math.floor(cell / steps)
      bucketPairs.add((merged.has(group) ? otherGroup : group) * steps + (cell % steps), bucket, count)
      bucketPairs.grow()
    })
  }

  return {
    add(group, step, bucket) {
      const targetGroup = merged.size > 0 && merged.has(group) ? otherGroup : group
      events.add(targetGroup, 0, 1)
      bucketPairs.add(targetGroup * steps + step, bucket)
      while (!bucketPairs.grow()) shrink()
    },
    isCut: () => merged.size > 0,
    size: (group) => events.of(group, 0),
    numbers(sets) {
      const setsByGroup = new Map<number, number[]>() // group -> sets
      for (const [set, groups] of sets.entries())
        for (const group of groups) setsByGroup.set(group, [...(setsByGroup.get(group) ?? []), set])
      const counts = sets.map(() => Array.from({ length: steps + 1 }, () => new Map<number, number>()))
      bucketPairs.each((cell, bucket, count) => {
        for (const set of setsByGroup.get(Math.floor(cell / steps)) ?? [])
          for (const step of [cell % steps, steps]) {
            const buckets = counts[set]![step]!
            buckets.set(bucket, (buckets.get(bucket) ?? 0) + count)
          }
      })
      const valueOf = (buckets: Map<number, number>) => (buckets.size === 0 ? null : quantile(buckets, share))
      return sets.map((groups, set) => {
        const values = counts[set]!.map(valueOf)
        const [total = null] = values.splice(steps)
        return { events: events.sums(groups)[0] ?? 0, total, steps: values, error: relativeError }
      })
    },
  }
}
