/** Packs from anywhere: each wrong field is named, each limit holds, and what is unknown is left out. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { packLimits, PackError, readPack } from './evidence-pack.ts'

const origin = { operator: 'Acme', source: 'https://acme.test', seen: '2026-08-20', digest: 'a'.repeat(64) }
const list = {
  list: 'acme',
  ...origin,
  products: { Bot: 'crawler' },
  published: '2026-08-01',
  networks: ['1.2.3.0/24'],
}
const hosts = {
  list: 'acme-dns',
  ...origin,
  products: { '*': 'user' },
  hostNames: ['*.acme.test', 'a-*-*.b.test'],
}
const directory = {
  ...origin,
  url: 'https://acme.test/keys',
  keys: [{ kty: 'OKP', crv: 'Ed25519', x: 'AA' }],
}
const tokens = { ...origin, tokens: ['AcmeBot'] }
const pack = {
  format: 'sightglass-evidence-1',
  made: '2026-08-21T00:00:00.000Z',
  lists: [list],
  hosts: [hosts],
  directories: [directory],
  tokens: [tokens],
}

function problem(document: unknown): string {
  try {
    readPack(document)
    return ''
  } catch (error) {
    if (!(error instanceof PackError)) throw error
    return error.message
  }
}

test('a pack is read without fields that this release does not know', () => {
  expect(readPack({ ...pack, more: 1, lists: [{ ...list, more: 1 }] }) as unknown).toEqual(pack)
  const empty = { format: pack.format, made: pack.made }
  expect(readPack(empty)).toEqual({ ...empty, lists: [], hosts: [], directories: [], tokens: [] } as never)
})

test('each wrong field is named', () => {
  const wrongList = (overrides: object): string => problem({ ...pack, lists: [{ ...list, ...overrides }] })
  const wrongHosts = (overrides: object): string => problem({ ...pack, hosts: [{ ...hosts, ...overrides }] })
  const wrongKeys = (overrides: object): string =>
    problem({ ...pack, directories: [{ ...directory, ...overrides }] })
  expect(problem(null)).toBe('the pack must be an object')
  expect(problem([])).toBe('the pack must be an object')
  expect(problem({ ...pack, format: 'sightglass-evidence-2' })).toBe('format must be "sightglass-evidence-1"')
  expect(problem({ ...pack, made: '2026' })).toStartWith('made must be a time')
  expect(problem({ ...pack, lists: {} })).toBe('lists must be a list')
  expect(problem({ ...pack, lists: [1] })).toBe('lists[0] must be an object')
  expect(problem({ ...pack, lists: [list, list] })).toBe('two lists have the name acme')
  expect(problem({ ...pack, hosts: [{ ...hosts, list: 'acme' }] })).toBe('two lists have the name acme')
  expect(wrongList({ operator: '' })).toStartWith('lists[0].operator must be a string of 1 to 100')
  expect(wrongList({ operator: 'a\u202eb' })).toStartWith('lists[0].operator must be a string')
  expect(wrongList({ operator: 'a'.repeat(101) })).toStartWith('lists[0].operator must be a string')
  expect(wrongList({ seen: '2026-13-01' })).toStartWith('lists[0].seen must be a day')
  expect(wrongList({ digest: 'A' })).toStartWith('lists[0].digest must be a SHA-256')
  expect(wrongList({ products: { Bot: 'robot' } })).toBe(
    'lists[0].products: the kind of Bot must be crawler or user',
  )
  expect(wrongList({ networks: ['1.2.3.0/24', '0.0.0.0/0'] })).toBe(
    'lists[0].networks[1] has a prefix that is too short',
  )
  expect(wrongList({ networks: [1] })).toBe('lists[0].networks[0] must be a string')
  for (const name of ['*', '*.test*', 'a..test', 'a.*', 'a.b.c/d', '(a+)+.test', 'a**.test', 'A.test', ''])
    expect([name, wrongHosts({ hostNames: [name] })]).toEqual([
      name,
      expect.stringContaining('hosts[0].hostNames'),
    ])
  expect(wrongKeys({ keys: [{ kty: 'OKP', d: 'secret' }] })).toBe('directories[0].keys[0] is a private key')
  expect(wrongKeys({ keys: [{ x: 'a'.repeat(5_000) }] })).toContain('at most 4096 characters')
})

test('each limit holds', () => {
  const repeat = <T>(value: T, count: number): T[] => Array.from({ length: count }, () => value)
  const { entriesMax, namesMax, networksMax } = packLimits
  expect(problem({ ...pack, tokens: repeat(tokens, entriesMax) })).toBe('')
  expect(problem({ ...pack, tokens: repeat(tokens, entriesMax + 1) })).toBe(
    'tokens must have at most 1000 entries',
  )
  expect(problem({ ...pack, tokens: [{ ...tokens, tokens: repeat('a', namesMax + 1) }] })).toContain(
    'at most 1000',
  )
  const half = { ...list, networks: repeat('1.2.3.4/32', networksMax / 2) }
  const lists = [half, { ...half, list: 'b' }, { ...list, list: 'c' }]
  expect(problem({ ...pack, lists })).toBe('has 1000001 networks, at most 1000000 are allowed')
})

test('no document makes it throw anything but a PackError', () => {
  const paths = ['format', 'made', 'lists', 'hosts', 'directories', 'tokens'] as const
  fc.assert(
    fc.property(fc.constantFrom(...paths), fc.jsonValue(), fc.nat(9), (name, value, field) => {
      problem({ ...pack, [name]: value })
      const [entry] = pack[name] as unknown as object[]
      const key = Object.keys(entry ?? {})[field]
      if (key !== undefined && typeof entry === 'object')
        problem({ ...pack, [name]: [{ ...entry, [key]: value }] })
    }),
    { numRuns: 1_000 },
  )
})
