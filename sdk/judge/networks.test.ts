/** Addresses and networks in every notation, and the table of networks against a naive matcher. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { isIP } from 'node:net'
import { createNetworkTable, networksWith, parseAddress, parseNetwork, type Network } from './networks.ts'

const mapped = 0xffffn << 32n
const bitsOf = (words: Uint32Array): bigint => words.reduce((sum, word) => (sum << 32n) | BigInt(word), 0n)

/** The 128 bits of an address; null when it is refused. */
function parsed(text: string): bigint | null {
  const words = new Uint32Array(4)
  return parseAddress(text, words) ? bitsOf(words) : null
}

const v4Text = (bits: bigint): string =>
  [24n, 16n, 8n, 0n].map((shift) => String((bits >> shift) & 255n)).join('.')

/** Eight groups; `zeros` shortens the first longest run of zero groups to "::". */
function v6Text(bits: bigint, { zeros = false, upper = false, dotted = false, padded = false } = {}): string {
  const groups = Array.from({ length: 8 }, (_, index) => (bits >> BigInt(112 - index * 16)) & 0xffffn)
  const texts = groups.map((group) => group.toString(16).padStart(padded ? 4 : 1, '0'))
  const tail = dotted ? [v4Text(bits & 0xffff_ffffn)] : texts.slice(6)
  let text = [...texts.slice(0, 6), ...tail].join(':')
  if (zeros) text = text.replace(/(?:^|:)0{1,4}(?::0{1,4})*(?::|$)/, '::')
  return upper ? text.toUpperCase() : text
}

const v4 = fc.bigInt(0n, 0xffff_ffffn)
/** Few distinct bits, so that runs of zeros and equal prefixes are frequent. */
const v6 = fc.oneof(
  fc.bigInt(0n, (1n << 128n) - 1n),
  fc.tuple(fc.bigInt(0n, 255n), fc.integer({ min: 0, max: 120 })).map(([low, shift]) => low << BigInt(shift)),
)
const style = fc.record({
  zeros: fc.boolean(),
  upper: fc.boolean(),
  dotted: fc.boolean(),
  padded: fc.boolean(),
})

test('every notation of an address has the same bits', () => {
  fc.assert(
    fc.property(v4, (bits) => {
      expect(parsed(v4Text(bits))).toBe(mapped | bits)
      expect(parsed(`::ffff:${v4Text(bits)}`)).toBe(mapped | bits)
      expect(parsed(v6Text(mapped | bits))).toBe(mapped | bits)
    }),
  )
  fc.assert(
    fc.property(v6, style, (bits, textStyle) => {
      expect([v6Text(bits, textStyle), parsed(v6Text(bits, textStyle))]).toEqual([
        v6Text(bits, textStyle),
        bits,
      ])
    }),
    { numRuns: 2_000 },
  )
})

test('what is no address is refused, as node:net refuses it', () => {
  const piece = fc.constantFrom(
    '0',
    '1',
    '25',
    '255',
    '256',
    '01',
    'f',
    'ffff',
    '12345',
    'g',
    '',
    '::',
    ' ',
    '%0',
  )
  const text = fc
    .array(fc.tuple(piece, fc.constantFrom('.', ':', '')), { maxLength: 9 })
    .map((parts) => parts.flat().join(''))
  fc.assert(
    fc.property(text, (address) => {
      expect([address, parsed(address) !== null]).toEqual([
        address,
        isIP(address) !== 0 && !address.includes('%'),
      ])
    }),
    {
      numRuns: 20_000,
      examples: [['1.2.3.4'], ['1::2:'], [':1'], ['::1.2.3.4'], ['1:2:3:4:5:6:7::'], ['::'], ['']],
    },
  )
})

test('networks in CIDR notation, and why others are refused', () => {
  const network = (text: string): [bigint, number] | string => {
    const parsedNetwork = parseNetwork(text)
    return typeof parsedNetwork === 'string'
      ? parsedNetwork
      : [bitsOf(parsedNetwork.words), parsedNetwork.length]
  }
  expect(network('203.0.113.77/24')).toEqual([mapped | 0xcb007100n, 120])
  expect(network('::ffff:203.0.113.0/120')).toEqual([mapped | 0xcb007100n, 120])
  expect(network('2001:DB8:1:2::/32')).toEqual([0x20010db8n << 96n, 32])
  expect(network('10.0.0.0/8')).toEqual([mapped | 0x0a000000n, 104])
  for (const text of ['203.0.113.1', '203.0.113.1/', '1.2.3/24', '/24', '1.2.3.4/24/5', 'a/8', '01.2.3.4/32'])
    expect(network(text)).toBe('is not a network such as 203.0.113.0/24 or 2001:db8::/32')
  expect(network('1.2.3.4/33')).toBe('has a prefix that is too long')
  expect(network('2001::/129')).toBe('has a prefix that is too long')
  expect(network('0.0.0.0/0')).toBe('has a prefix that is too short')
  expect(network('2000::/3')).toBe('has a prefix that is too short')
  expect(network('::/16')).toBe('is not a public network') // it would contain all of IPv4
})

/** Networks close to one another, so that many contain or equal others. */
const near = fc.oneof(
  fc.tuple(fc.bigInt(0n, 0xffffn), fc.integer({ min: 8, max: 32 })).map(([low, length]) => {
    return {
      text: `${v4Text(0x0a000000n | low)}/${length}`,
      bits: mapped | 0x0a000000n | low,
      length: length + 96,
    }
  }),
  fc.tuple(fc.bigInt(0n, 0xffffn), fc.integer({ min: 16, max: 128 })).map(([low, length]) => {
    const bits = (0x2001n << 112n) | low
    return { text: `${v6Text(bits)}/${length}`, bits, length }
  }),
  fc.constant({ text: 'ffff:ffff::/16', bits: 0xffffffffn << 96n, length: 16 }),
  fc.constant({ text: '255.255.255.255/32', bits: mapped | 0xffffffffn, length: 128 }),
)
const address = fc.oneof(
  fc.bigInt(0n, 0x1_ffffn).map((low) => mapped | (0x0a000000n + low)),
  fc.bigInt(0n, 0x1_ffffn).map((low) => (0x2001n << 112n) + low),
  fc.constantFrom((1n << 128n) - 1n, mapped | 0xffffffffn, mapped, mapped - 1n, 0n),
)

test('the table finds the networks of a naive matcher, longest prefix first', () => {
  fc.assert(
    fc.property(
      fc.array(near, { maxLength: 60 }),
      fc.array(address, { maxLength: 30 }),
      (networks, addresses) => {
        const table = createNetworkTable(networks.map(({ text }) => parseNetwork(text) as Network))
        const ends = networks.flatMap(({ bits, length }) => {
          const size = 1n << BigInt(128 - length)
          const start = bits & ~(size - 1n)
          return [start - 1n, start, start + size - 1n, start + size]
        })
        for (const bits of [
          ...addresses,
          ...ends.filter((endBits) => endBits >= 0n && endBits >> 128n === 0n),
        ]) {
          const matches = networksWith(table, v6Text(bits))!
          const expected = networks.flatMap((candidate, index) =>
            candidate.bits >> BigInt(128 - candidate.length) === bits >> BigInt(128 - candidate.length)
              ? [index]
              : [],
          )
          expect(matches.toSorted((a, b) => a - b)).toEqual(expected)
          const lengths = matches.map((index) => networks[index]!.length)
          expect(lengths).toEqual(lengths.toSorted((a, b) => b - a))
        }
      },
    ),
    { numRuns: 300 },
  )
})

test('a table may be empty, and text that is no address has no networks', () => {
  expect(networksWith(createNetworkTable([]), '10.1.1.1')).toEqual([])
  expect(networksWith(createNetworkTable([]), '10.1.1')).toBeNull()
})
