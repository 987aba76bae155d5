/** One condition of a filter, as the codes that a row of a block must have. */

/** One field of the filter: its code must be among these, and a hash must then be confirmed. */
export interface Clause {
  member: number
  codes: ReadonlySet<number>
  hashed: ReadonlyMap<number, ReadonlySet<string>> // hash -> the texts of the filter that have it
  /** Arrival numbers, ascending, instead of codes: rows that another table names. */
  arrivals?: Float64Array
}

/** Whether one of the arrivals is in a range. */
export function hasArrival(arrivals: Float64Array, first: number, last: number): boolean {
  let low = 0
  let high = arrivals.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (arrivals[middle]! < first) low = middle + 1
    else high = middle
  }
  return low < arrivals.length && arrivals[low]! <= last
}
