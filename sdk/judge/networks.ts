/** Finds the published networks that contain an address, in less than a microsecond however many there are. */

/*
 * An address is four 32-bit words. IPv4 addresses are in ::ffff:0:0/96, so an IPv4-mapped address equals its IPv4 form
 * and one table holds both families.
 */
const mappedWord = 0xffff
const mappedBits = 96

/** A network; `length` counts bits of the 128-bit form, so an IPv4 /24 has 120. */
export interface Network {
  words: Uint32Array
  length: number
}

/** Writes the address into `words`; false when `text` is no IPv4 or IPv6 address. Zones (`%eth0`) are refused. */
export function parseAddress(text: string, words: Uint32Array): boolean {
  if (text.length > 45) return false
  if (!text.includes(':')) {
    const v4 = parseIPv4(text, 0, text.length)
    if (v4 < 0) return false
    words[0] = 0
    words[1] = 0
    words[2] = mappedWord
    words[3] = v4
    return true
  }
  return parseIPv6(text, words)
}

/** The 32 bits of a dotted address, or -1. Leading zeros are refused, because some programs read them as octal. */
function parseIPv4(text: string, start: number, end: number): number {
  let value = 0
  let part = -1
  let parts = 1
  let digits = 0
  for (let index = start; index < end; index++) {
    const code = text.charCodeAt(index)
    if (code === 46) {
      if (part < 0 || ++parts > 4) return -1
      value = value * 256 + part
      part = -1
      digits = 0
      continue
    }
    const digit = code - 48
    if (digit < 0 || digit > 9 || part === 0 || ++digits > 3) return -1
    part = part < 0 ? digit : part * 10 + digit
    if (part > 255) return -1
  }
  return part < 0 || parts !== 4 ? -1 : value * 256 + part
}

const groups = new Uint16Array(8) // of the address being parsed

function parseIPv6(text: string, words: Uint32Array): boolean {
  let count = 0
  let gap = -1 // groups before "::"
  let position = 0
  if (text.startsWith('::')) {
    gap = 0
    position = 2
  } else if (text.startsWith(':')) return false
  while (position < text.length) {
    if (count === 8) return false
    const colon = text.indexOf(':', position)
    const end = colon < 0 ? text.length : colon
    if (colon < 0 && text.indexOf('.', position) >= 0) {
      const v4 = count > 6 ? -1 : parseIPv4(text, position, end)
      if (v4 < 0) return false
      groups[count++] = v4 >>> 16
      groups[count++] = v4 & 0xffff
      break
    }
    const group = parseGroup(text, position, end)
    if (group < 0) return false
    groups[count++] = group
    if (colon < 0) break
    position = colon + 1
    if (position === text.length) return false
    if (text.charCodeAt(position) === 58) {
      if (gap >= 0) return false
      gap = count
      position++
    }
  }
  if (gap < 0 ? count !== 8 : count > 7) return false
  const missing = 8 - count
  for (let index = 0; index < 4; index++)
    words[index] = groupAt(index * 2, gap, missing) * 65_536 + groupAt(index * 2 + 1, gap, missing)
  return true
}

/** Group `index` of the address after "::" is expanded. */
function groupAt(index: number, gap: number, missing: number): number {
  if (gap < 0 || index < gap) return groups[index]!
  return index < gap + missing ? 0 : groups[index - missing]!
}

function parseGroup(text: string, start: number, end: number): number {
  if (end === start || end - start > 4) return -1
  let value = 0
  for (let index = start; index < end; index++) {
    const code = text.charCodeAt(index) | 32 // lower case; digits stay
    const digit = code >= 48 && code <= 57 ? code - 48 : code >= 97 && code <= 102 ? code - 87 : -1
    if (digit < 0) return -1
    value = value * 16 + digit
  }
  return value
}

/** An operator that published a shorter prefix would vouch for a good part of the internet. */
const lengthMin = { v4: 8, v6: 16 }

/** A network in CIDR notation, or what is wrong with it. Bits behind the prefix are ignored. */
export function parseNetwork(text: string): Network | string {
  const [, address = '', digits = ''] = /^([0-9a-f:.]{2,45})\/(\d{1,3})$/i.exec(text) ?? []
  const words = new Uint32Array(4)
  if (!parseAddress(address, words)) return 'is not a network such as 203.0.113.0/24 or 2001:db8::/32'
  const bits = Number(digits)
  const isV4 = !address.includes(':')
  if (bits > (isV4 ? 32 : 128)) return 'has a prefix that is too long'
  if (bits < (isV4 ? lengthMin.v4 : lengthMin.v6)) return 'has a prefix that is too short'
  const length = isV4 ? bits + mappedBits : bits
  if (!isV4 && length < mappedBits && words[0]! >>> 16 === 0) return 'is not a public network'
  for (let index = 0; index < 4; index++) words[index] = (words[index]! & maskOf(length, index)) >>> 0
  return { words, length }
}

/** The bits of word `index` that a prefix covers. */
function maskOf(length: number, index: number): number {
  const bits = Math.min(32, Math.max(0, length - index * 32))
  return bits === 0 ? 0 : (-1 << (32 - bits)) >>> 0
}

export interface NetworkTable {
  /** The number of the smallest network with an address; -1 without any. */
  smallest(words: Uint32Array): number
  /** For each network the smallest one around it, or -1. */
  around: Int32Array
}

/**
 * Networks either contain one another or are disjoint. So a sorted list of the addresses where the smallest containing
 * network changes, and for each network the smallest one around it, answer every question with one binary search.
 */
export function createNetworkTable(networks: readonly Network[]): NetworkTable {
  const { starts, smallest, count, around } = sweep(networks)
  return {
    around,
    smallest(words) {
      const a = words[0]!
      const b = words[1]!
      const c = words[2]!
      const d = words[3]!
      let low = 0
      let high = count
      while (low < high) {
        const middle = (low + high) >>> 1
        if (isAfter(starts, middle * 4, a, b, c, d)) high = middle
        else low = middle + 1
      }
      return low === 0 ? -1 : smallest[low - 1]!
    },
  }
}

/** The numbers of all networks with an address, longest prefix first; null for an invalid address. */
export function networksWith(table: NetworkTable, address: string): number[] | null {
  const words = new Uint32Array(4)
  if (!parseAddress(address, words)) return null
  const matches: number[] = []
  for (let index = table.smallest(words); index >= 0; index = table.around[index]!) matches.push(index)
  return matches
}

/** Whether the address at `offset` is after another. */
function isAfter(starts: Uint32Array, offset: number, a: number, b: number, c: number, d: number): boolean {
  if (starts[offset] !== a) return starts[offset]! > a
  if (starts[offset + 1] !== b) return starts[offset + 1]! > b
  if (starts[offset + 2] !== c) return starts[offset + 2]! > c
  return starts[offset + 3]! > d
}

function sweep(networks: readonly Network[]) {
  const order = Uint32Array.from(networks.keys()).sort((left, right) =>
    compare(networks[left]!, networks[right]!),
  )
  const starts = new Uint32Array(networks.length * 8)
  const smallest = new Int32Array(networks.length * 2)
  const around = new Int32Array(networks.length)
  const open: number[] = [] // around the current address, the smallest last
  let count = 0
  const change = (address: ArrayLike<number>, network: number): void => {
    const last = (count - 1) * 4
    const isSame = count > 0 && [0, 1, 2, 3].every((index) => starts[last + index] === address[index])
    if (!isSame) count++
    for (let index = 0; index < 4; index++) starts[(count - 1) * 4 + index] = address[index]!
    smallest[count - 1] = network
  }
  /** Ends the networks that do not contain `start`. */
  const closeBefore = (start: Uint32Array | null): void => {
    for (let top = open.at(-1); top !== undefined; top = open.at(-1)) {
      if (start !== null && contains(networks[top]!, start)) return
      open.pop()
      const next = afterEnd(networks[top]!)
      if (next !== null) change(next, open.at(-1) ?? -1)
    }
  }
  for (const number of order) {
    const network = networks[number]!
    closeBefore(network.words)
    around[number] = open.at(-1) ?? -1
    open.push(number)
    change(network.words, number)
  }
  closeBefore(null)
  return { starts, smallest, count, around }
}

/** By start; the larger of two networks with the same start comes first. */
function compare(left: Network, right: Network): number {
  for (let index = 0; index < 4; index++) {
    const difference = left.words[index]! - right.words[index]!
    if (difference !== 0) return difference
  }
  return left.length - right.length
}

function contains({ words, length }: Network, address: Uint32Array): boolean {
  for (let index = 0; index < 4; index++) {
    if ((address[index]! & maskOf(length, index)) >>> 0 !== words[index]) return false
  }
  return true
}

/** The first address behind a network; null behind the last one of all. */
function afterEnd({ words, length }: Network): number[] | null {
  const next = Array.from(words, (word, index) => (word | ~maskOf(length, index)) >>> 0)
  for (let index = 3; index >= 0; index--) {
    if (next[index]! < 0xffff_ffff) {
      next[index]!++
      return next
    }
    next[index] = 0
  }
  return null
}
