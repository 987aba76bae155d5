/** Counts pairs of a cell, such as a group in a step, and a code: what distinct values and quantiles are made from. */

/** Codes are below it: hashes of 31 bits, or buckets of durations. */
export const codesSpan = 2 ** 31

/**
 * Pairs of a cell and a code, both below 2^31, by open addressing: 8 bytes per place, 12 with counts. Integers side by
 * side, because one number of both would be a double, which costs three times as much to hash.
 */
function pairTable(places: number, isCounting: boolean) {
  const pairsAt = new Int32Array(places * 2) // the cell and 1, or 0 when it is free; the code
  const counts = isCounting ? new Uint32Array(places) : null
  const mask = places - 1
  let size = 0

  return {
    size: () => size,
    isFull: () => size * 2 >= places,
    /** Whether the pair is new. */
    add(cell: number, code: number, count: number): boolean {
      const mixed = Math.imul(code ^ Math.imul(cell, 0x9e3779b1), 0x85ebca6b)
      let slot = (mixed ^ (mixed >>> 15)) & mask
      for (;;) {
        const slotCell = pairsAt[slot * 2]!
        if (slotCell === 0) break
        if (slotCell === cell + 1 && pairsAt[slot * 2 + 1] === code) {
          if (counts !== null) counts[slot]! += count
          return false
        }
        slot = (slot + 1) & mask
      }
      pairsAt[slot * 2] = cell + 1
      pairsAt[slot * 2 + 1] = code
      if (counts !== null) counts[slot] = count
      size++
      return true
    },
    each(visit: (cell: number, code: number, count: number) => void): void {
      for (let slot = 0; slot < places; slot++) {
        const cell = pairsAt[slot * 2]! - 1
        if (cell >= 0) visit(cell, pairsAt[slot * 2 + 1]!, counts === null ? 1 : counts[slot]!)
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

/** Pairs in a table that grows up to `placesMax`, a power of 2. Distinct values need no counts. */
export function pairs(placesMax: number, isCounting = true): Pairs {
  let table = pairTable(placesMin, isCounting)
  let places = placesMin

  function rebuild(size: number, isKept: (cell: number) => boolean): void {
    const oldTable = table
    places = size
    table = pairTable(places, isCounting)
    oldTable.each((cell, code, count) => void (isKept(cell) && table.add(cell, code, count)))
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
