/** Measures the whole hours of a sealed segment by the codes of its path columns: each value is read once. */
import { segmentEvents } from '../../blocks/block.ts'
import type { Tally } from './groups.ts'
import type { CodedColumn } from './members.ts'

export interface CodedSegment {
  /** By position; null when all events are one group. */
  by: CodedColumn | null
  groupOf(code: number): number
  /** The columns that events are measured by, null to count events: a number, or instead the sum of two others. */
  measured: readonly CodedColumn[] | null
  /** Events must have one of the values in each column. */
  filters: readonly { column: CodedColumn; values: ReadonlySet<string> }[]
  /** The distance of each position's hour, and the step of each hour; -1: none. */
  offsets: Uint16Array
  stepOf: Int32Array
  steps: number
}

/** Cells of 12 bytes. With more values and steps events are read one by one. */
const cellsMax = 1_048_576

/** False when there are too many cells. */
export function measureSegment(segment: CodedSegment, tally: Tally): boolean {
  const { by: groupColumn, groupOf, steps } = segment
  const cells = (groupColumn?.size ?? 1) * steps
  if (cells > cellsMax || tally.addMany === undefined) return false
  const passing = positionsOf(segment)
  if (passing === 'none') return true
  const events = new Uint32Array(cells)
  const sums = segment.measured === null ? null : new Float64Array(cells)
  if (sums === null) countEvents(segment, passing, events)
  else sumAmounts(segment, passing, events, sums)
  for (let code = 0, cell = 0; cell < cells; code++) {
    let group = -1
    for (let step = 0; step < steps; step++, cell++) {
      const eventCount = events[cell]!
      if (eventCount === 0) continue
      if (group < 0) group = groupOf(code)
      tally.addMany(group, step, eventCount, sums?.[cell] ?? eventCount)
    }
  }
  return true
}

const oneGroup = new Uint16Array(segmentEvents)

/** 1 where an event passes all filters; null: all do. */
function positionsOf({ filters }: CodedSegment): Uint8Array | null | 'none' {
  let passing: Uint8Array | null = null
  for (const { column, values } of filters) {
    const passes = Uint8Array.from({ length: column.size }, (_, code) =>
      Number(values.has(column.text(code) ?? '')),
    )
    if (!passes.includes(1)) return 'none'
    if (!passes.includes(0)) continue
    const { codes } = column
    passing ??= new Uint8Array(segmentEvents).fill(1)
    for (let position = 0; position < segmentEvents; position++)
      passing[position]! &= passes[codes[position]!]!
  }
  return passing
}

function countEvents(
  { by: groupColumn, offsets, stepOf, steps }: CodedSegment,
  passing: Uint8Array | null,
  events: Uint32Array,
): void {
  const codes = groupColumn?.codes ?? oneGroup
  for (let position = 0; position < segmentEvents; position++) {
    const step = stepOf[offsets[position]!]!
    if (step >= 0 && (passing === null || passing[position] === 1)) events[codes[position]! * steps + step]!++
  }
}

function sumAmounts(
  { by: groupColumn, measured, offsets, stepOf, steps }: CodedSegment,
  passing: Uint8Array | null,
  events: Uint32Array,
  sums: Float64Array,
): void {
  const codes = groupColumn?.codes ?? oneGroup
  const [whole, ...parts] = measured!.map((column) => ({ codes: column.codes, amounts: amountsOf(column) }))
  for (let position = 0; position < segmentEvents; position++) {
    const step = stepOf[offsets[position]!]!
    if (step < 0 || (passing !== null && passing[position] === 0)) continue
    let amount = whole!.amounts[whole!.codes[position]!]!
    if (Number.isNaN(amount))
      for (const part of parts) {
        const partAmount = part.amounts[part.codes[position]!]!
        if (!Number.isNaN(partAmount)) amount = Number.isNaN(amount) ? partAmount : amount + partAmount
      }
    if (Number.isNaN(amount)) continue
    const cell = codes[position]! * steps + step
    events[cell]!++
    sums[cell]! += amount
  }
}

/** By code; NaN for what is no number. */
function amountsOf(column: CodedColumn): Float64Array {
  return Float64Array.from({ length: column.size }, (_, code) => column.number(code) ?? NaN)
}
