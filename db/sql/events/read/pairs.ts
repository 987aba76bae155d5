/** Counts pairs of a cell, such as a group in a step, and a code: what distinct values and quantiles are made from. */

/** Codes are below it: hashes of 31 bits, or buckets of durations. */
export const codesSpan = 2 ** 31

/** Pairs of a cell and a code below 2^31 with a count, by open addressing: 12 bytes per place. */
function pairTable(places: number) {
  const keys = new Float64Array(places) // the key and 1; 0: free
  const counts = new Uint32Array(places)
  const mask = places - 1
  let size = 0

  function placeOf(key: number): number {
    const mixed = Math.imul((key | 0) ^ Math.imul(key / 4_294_967_296, 0x9e3779b1), 0x85ebca6b)
    let at = (mixed ^ (mixed >>> 15)) & mask
    while (keys[at] !== 0 && keys[at] !== key + 1) at = (at + 1) & mask
    return at
  }

  return {
    size: () => size,
    isFull: () => size * 2 >= places,
    /** Whether the pair is new. */
    add(cell: number, code: number, count: number): boolean {
      const key = cell * codesSpan + code
      const at = placeOf(key)
      counts[at]! += count
      if (keys[at] !== 0) return false
      keys[at] = key + 1
      size++
      return true
    },
    each(visit: (cell: number, code: number, count: number) => void): void {
      for (let at = 0; at < places; at++) {
        const key = keys[at]! - 1
        if (key >= 0) visit(Math.floor(key / codesSpan), key % codesSpan, counts[at]!)
      }
    },
  }
}

const placesMin = 2 ** 12

export interface Pairs {
  /** Whether the pair is new. `grow` makes room for the next one. */
  add(cell: number, code: number, count?: number): boolean
  each(visit: (cell: number, code: number, count: number) => void): void
  /** Whether half of the table is used. */
  isFull(): boolean
  /** Makes room for more pairs; false when half of the largest table is used. */
  grow(): boolean
  /** Removes pairs of other cells. False when too few are removed to go on for long. */
  keep(isKept: (cell: number) => boolean): boolean
}

/** Pairs in a table that grows up to `placesMax`, a power of 2. */
export function pairs(placesMax: number): Pairs {
  let table = pairTable(placesMin)
  let places = placesMin

  function rebuild(size: number, isKept: (cell: number) => boolean): void {
    const before = table
    places = size
    table = pairTable(places)
    before.each((cell, code, count) => void (isKept(cell) && table.add(cell, code, count)))
  }

  return {
    isFull: () => table.isFull(),
    add: (cell, code, count = 1) => table.add(cell, code, count),
    each: (visit) => table.each(visit),
    grow() {
      if (!table.isFull()) return true
      if (places >= placesMax) return false
      rebuild(Math.min(places * 4, placesMax), () => true)
      return true
    },
    keep(isKept) {
      rebuild(places, isKept)
      return table.size() * 4 < places
    },
  }
}
