/** Bars of the values of a member, from a cut. */
import type { Cut, Tally } from '../api/api.ts'
import type { Bar } from './bars.tsx'
import { colourOf } from './series.ts'

export function cutBars(
  cut: Cut,
  of: {
    by: string // the filter of its values
    href: (value: string) => string | undefined // undefined: Logs has no such filter
    colour?: (value: string, index: number) => string
  },
): Bar[] {
  return cut.rows
    .filter((row) => row.value !== null && row.count > 0)
    .map((row, index) => {
      const value = row.value ?? ''
      const colour = (of.colour ?? colourOf)(value, index)
      const href = of.href(value)
      const bar = { key: value, name: value, colour, count: row.count, filter: { name: of.by, value } }
      return href === undefined ? bar : { ...bar, href }
    })
}

/** What of the whole is in no bar: values beyond the limits, and events without the member. */
export function cutRest(cut: Cut, whole: Pick<Tally, 'count'>): { names: number; count: number } {
  const barred = cut.rows.reduce((sum, row) => sum + (row.value === null ? 0 : row.count), 0)
  return { names: cut.more?.values ?? 0, count: Math.max(0, whole.count - barred) }
}

export function countOf(cut: Cut, ...values: string[]): { count: number; before: number } {
  const rows = cut.rows.filter((row) => row.value !== null && values.includes(row.value))
  return {
    count: rows.reduce((sum, row) => sum + row.count, 0),
    before: rows.reduce((sum, row) => sum + row.before, 0),
  }
}

/** Values that occur now, and in the time before. */
export function distinct(cut: Cut): { now: number; before: number; fresh: number } {
  const named = cut.rows.filter((row) => row.value !== null)
  const more = cut.more?.values ?? 0
  return {
    now: named.filter((row) => row.count > 0).length + more,
    before: named.filter((row) => row.before > 0).length,
    fresh: named.filter((row) => row.count > 0 && row.before === 0).length,
  }
}
