/** The memory table of dedupe: fingerprint -> place of every event that is in no id run yet. */

const empty = -1

export interface IdTable {
  size(): number
  add(fingerprint: number, place: number): void
  /** Whether any entry of the fingerprint has a place that `confirm` takes. */
  find(fingerprint: number, confirm: (place: number) => boolean): boolean
  each(visit: (fingerprint: number, place: number) => void): void
  /** Empties the table; one that has grown is as small as at first. */
  clear(): void
}

/** Open addressing over typed arrays: much faster and smaller than a Map. Equal keys may repeat. */
export function idTable(entriesExpected: number): IdTable {
  let slots = 1_024
  while (slots < entriesExpected * 2) slots *= 2
  const slotsMin = slots
  let keys = new Float64Array(slots).fill(empty)
  let places = new Float64Array(slots)
  let size = 0

  function put(fingerprint: number, place: number): void {
    const mask = slots - 1
    let slot = (fingerprint >>> 0) & mask
    while (keys[slot] !== empty) slot = (slot + 1) & mask
    keys[slot] = fingerprint
    places[slot] = place
  }

  function grow(): void {
    const oldKeys = keys
    const oldPlaces = places
    slots *= 2
    keys = new Float64Array(slots).fill(empty)
    places = new Float64Array(slots)
    for (let slot = 0; slot < oldKeys.length; slot++) {
      if (oldKeys[slot] !== empty) put(oldKeys[slot]!, oldPlaces[slot]!)
    }
  }

  return {
    size: () => size,
    add(fingerprint, place) {
      if (size * 5 > slots * 3) grow()
      put(fingerprint, place)
      size++
    },
    find(fingerprint, confirm) {
      const mask = slots - 1
      for (let slot = (fingerprint >>> 0) & mask; keys[slot] !== empty; slot = (slot + 1) & mask) {
        if (keys[slot] === fingerprint && confirm(places[slot]!)) return true
      }
      return false
    },
    each(visit) {
      for (let slot = 0; slot < slots; slot++) if (keys[slot] !== empty) visit(keys[slot]!, places[slot]!)
    },
    clear() {
      if (slots > slotsMin) {
        slots = slotsMin
        keys = new Float64Array(slots)
        places = new Float64Array(slots)
      }
      keys.fill(empty)
      size = 0
    },
  }
}
