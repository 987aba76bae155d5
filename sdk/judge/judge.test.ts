/** Every verdict of contract §12, and what no proof and no age may change. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { packFormat, type EvidencePack, type Products } from './evidence-pack.ts'
import { judge, listsWith, openEvidence, trustOf, type Claim, type Judgment, type Proof } from './judge.ts'

const origin = { source: 'https://example.com', seen: '2026-08-20', digest: '' }
const addresses = (list: string, operator: string, products: Products, ...networks: string[]) => ({
  list,
  operator,
  products,
  ...origin,
  published: '2026-08-01',
  networks,
})
const names = (list: string, operator: string, products: Products, ...hostNames: string[]) => ({
  list,
  operator,
  products,
  ...origin,
  hostNames,
})

const pack: EvidencePack = {
  format: packFormat,
  made: '2026-08-21T00:00:00Z',
  lists: [
    addresses('acme-bot', 'Acme', { AcmeBot: 'crawler' }, '203.0.113.0/28', '2001:db8:a::/48'),
    addresses('acme-search', 'Acme', { AcmeSearch: 'crawler' }, '203.0.113.16/28'),
    addresses('acme-user', 'Acme', { 'Acme-User': 'user' }, '203.0.113.32/28', '203.0.113.8/32'),
    addresses('other-bot', 'Other', { OtherBot: 'crawler' }, '203.0.113.0/24'),
  ],
  hosts: [
    names('acme-dns', 'Acme', { AcmeBot: 'crawler' }, 'crawl-*-*.bot.acme.test', '*.spider.acme.test'),
    names('named-dns', 'Named', { '*': 'crawler' }, '*.named.test'),
  ],
  directories: [],
  tokens: [],
}
const evidence = openEvidence(pack)
const atMs = Date.parse('2026-11-20T12:00:00Z')
const dayMs = 24 * 3_600_000

const acmeBot: Claim = { vendor: 'Acme', name: 'AcmeBot' }
const acmeUser: Claim = { vendor: 'Acme', name: 'Acme-User' }
const verdictOn = (
  claim: Claim | null,
  proof: Proof,
  overrides: { atMs?: number; maxAgeDays?: number } = {},
): Judgment => judge(claim, proof, evidence, { atMs, ...overrides })

const acmeList = { method: 'address', list: 'acme-bot', listDate: '2026-08-01' } as const

test('addresses prove, contradict or prove nothing', () => {
  const judgeAddress = (claim: Claim | null, address: string): Judgment => verdictOn(claim, { address })
  expect(judgeAddress(acmeBot, '203.0.113.5')).toEqual({ verdict: 'verified', evidence: acmeList })
  expect(judgeAddress(acmeBot, '::ffff:203.0.113.5')).toEqual({ verdict: 'verified', evidence: acmeList })
  expect(judgeAddress({ vendor: 'ACME', name: 'acmebot' }, '2001:db8:a:1::9').verdict).toBe('verified')
  // The list of the product is the evidence, even where a longer prefix of another list matches.
  expect(judgeAddress(acmeBot, '203.0.113.8')).toEqual({ verdict: 'verified', evidence: acmeList })
  // Another list of its crawlers proves the operator too.
  expect(judgeAddress(acmeBot, '203.0.113.17')).toMatchObject({
    verdict: 'verified',
    evidence: { list: 'acme-search' },
  })
  // Its fetchers request what anybody asks for.
  expect(judgeAddress(acmeBot, '203.0.113.33')).toMatchObject({
    verdict: 'consistent',
    evidence: { list: 'acme-user' },
  })
  const outside = { verdict: 'contradicted', evidence: { ...acmeList, networks: 2 } } as const
  expect(judgeAddress(acmeBot, '203.0.113.77')).toEqual(outside) // in a list of another operator
  expect(judgeAddress(acmeBot, '198.51.100.1')).toEqual(outside)
  expect(judgeAddress(acmeBot, '2001:db8:b::1')).toEqual(outside)
  expect(judgeAddress(null, '203.0.113.5')).toEqual({ verdict: 'unknown' })
  expect(judgeAddress({ vendor: 'Nobody', name: 'Bot' }, '203.0.113.5')).toEqual({ verdict: 'unverifiable' })
  expect(judgeAddress({ vendor: 'Acme', name: 'AcmeNew' }, '198.51.100.1')).toEqual({
    verdict: 'unverifiable',
  })
  expect(judgeAddress({ vendor: 'Acme', name: 'AcmeNew' }, '203.0.113.5').verdict).toBe('verified')
  for (const name of ['__proto__', 'constructor', 'toString'])
    expect(judgeAddress({ vendor: name, name }, '203.0.113.5')).toEqual({ verdict: 'unverifiable' })
})

test('fetches that a person triggers are never contradicted', () => {
  expect(verdictOn(acmeUser, { address: '203.0.113.33' }).verdict).toBe('verified')
  expect(verdictOn(acmeUser, { address: '203.0.113.5' })).toMatchObject({ verdict: 'verified' })
  expect(verdictOn(acmeUser, { address: '198.51.100.1' })).toEqual({
    verdict: 'unverifiable',
    evidence: {
      method: 'address',
      list: 'acme-user',
      listDate: '2026-08-01',
      networks: 2,
      reason: 'user-triggered',
    },
  })
})

test('an address that is not one of the internet proves nothing', () => {
  const inside = [
    '10.0.0.1',
    '127.0.0.1',
    '172.31.255.255',
    '192.168.1.1',
    '169.254.1.1',
    '100.64.0.1',
    '::1',
  ]
  const odd = [
    'fe80::1',
    'fd00::1',
    '::',
    '0.0.0.0',
    '224.0.0.1',
    '255.255.255.255',
    '',
    '-',
    'crawl.acme.test',
  ]
  for (const address of [...inside, ...odd, null, undefined])
    expect([address, verdictOn(acmeBot, { address })]).toEqual([address, { verdict: 'unverifiable' }])
  for (const address of [
    '172.32.0.1',
    '100.128.0.1',
    '11.0.0.1',
    '192.169.0.1',
    '169.253.0.1',
    '223.255.255.255',
  ])
    expect([address, verdictOn(acmeBot, { address }).verdict]).toEqual([address, 'contradicted'])
})

test('names of hosts prove, and contradict only where they are all that is published', () => {
  const dns = (claim: Claim, hostNames: string[] | undefined, address = '198.51.100.1') =>
    verdictOn(claim, { address, hostNames })
  const proof = { method: 'dns', list: 'acme-dns', listDate: '2026-08-20' } as const
  for (const name of ['crawl-1-a2.bot.acme.test', 'CRAWL-1-2.BOT.acme.test.', 'x.y.spider.acme.test'])
    expect(dns(acmeBot, ['other.test', name])).toEqual({ verdict: 'verified', evidence: proof })
  const lookalikes = [
    'bot.acme.test',
    'crawl-1.bot.acme.test',
    'crawl-1-2-3.bot.acme.test',
    'crawl-1-2.bot.acme.test.evil.test',
    'evil-crawl-1-2.bot.acme.test',
    'spider.acme.test',
    'xspider.acme.test',
    'a.spiderxacme.test',
    `${'a.'.repeat(2_000)}spider.acme.test`,
    '',
  ]
  for (const name of lookalikes) expect([name, dns(acmeBot, [name]).verdict]).toEqual([name, 'contradicted'])
  expect(dns(acmeBot, ['crawl-1-2.bot.acme.test'], '203.0.113.33').verdict).toBe('verified')
  expect(dns({ vendor: 'Acme', name: 'AcmeSearch' }, ['a.spider.acme.test']).verdict).toBe('contradicted')
  const namedAgent = { vendor: 'Named', name: 'Any' }
  expect(dns(namedAgent, ['a.named.test']).verdict).toBe('verified')
  expect(dns(namedAgent, [])).toEqual({
    verdict: 'contradicted',
    evidence: { method: 'dns', list: 'named-dns', listDate: '2026-08-20' },
  })
  expect(dns(namedAgent, undefined)).toEqual({ verdict: 'unverifiable' })
})

test('signatures outrank addresses; one of another operator contradicts the claim', () => {
  const signed = (operator: string, claim: Claim | null, address = '198.51.100.1') =>
    verdictOn(claim, { address, signature: { state: 'valid', operator, keyId: 'k1' } })
  expect(signed('Acme', acmeBot)).toEqual({
    verdict: 'verified',
    evidence: { method: 'signature', keyId: 'k1' },
  })
  expect(signed('acme', acmeUser).verdict).toBe('verified')
  expect(signed('Acme', null).verdict).toBe('verified')
  expect(signed('Other', acmeBot, '203.0.113.5').verdict).toBe('contradicted')
  for (const state of ['invalid', 'none'] as const) {
    const signature = { state, operator: 'Acme' }
    expect(verdictOn(acmeBot, { address: '198.51.100.1', signature }).verdict).toBe('contradicted')
    expect(verdictOn(acmeBot, { address: '203.0.113.5', signature }).verdict).toBe('verified')
    expect(verdictOn(null, { signature })).toEqual({ verdict: 'unknown' })
  }
})

test('age turns contradicted into unverifiable, and changes nothing else', () => {
  const seenMs = Date.parse('2026-08-20')
  const judgeAfterDays = (days: number, address: string, maxAgeDays?: number) =>
    verdictOn(acmeBot, { address }, { atMs: seenMs + days * dayMs, ...(maxAgeDays && { maxAgeDays }) })
  expect(judgeAfterDays(180, '198.51.100.1').verdict).toBe('contradicted')
  expect(judgeAfterDays(181, '198.51.100.1')).toEqual({
    verdict: 'unverifiable',
    evidence: { ...acmeList, networks: 2, reason: 'old-list' },
  })
  expect(judgeAfterDays(-181, '198.51.100.1').verdict).toBe('unverifiable') // a request long before the list
  expect(judgeAfterDays(31, '198.51.100.1', 30).verdict).toBe('unverifiable')
  const proofs = fc.record({
    address: fc.constantFrom('203.0.113.5', '203.0.113.17', '203.0.113.33', '198.51.100.1', '10.0.0.1', null),
    hostNames: fc.constantFrom(undefined, [], ['crawl-1-2.bot.acme.test'], ['x.test']),
    signature: fc.constantFrom(undefined, { state: 'valid' as const, operator: 'Acme' }),
  })
  const claims = fc.constantFrom(
    acmeBot,
    acmeUser,
    { vendor: 'Named', name: 'x' },
    { vendor: 'No', name: 'x' },
    null,
  )
  fc.assert(
    fc.property(
      claims,
      proofs,
      fc.integer({ min: 0, max: 180 }),
      fc.integer({ min: 181, max: 9_999 }),
      (...inputs) => {
        const [claim, proof, fewDays, manyDays] = inputs
        const young = verdictOn(claim, proof, { atMs: seenMs + fewDays * dayMs })
        const old = verdictOn(claim, proof, { atMs: seenMs + manyDays * dayMs })
        if (young.verdict === 'contradicted' && young.evidence?.method !== 'signature')
          expect(old.verdict).toBe('unverifiable')
        else expect(old).toEqual(young)
      },
    ),
  )
})

test('trust follows the verdict', () => {
  const verdicts = ['verified', 'consistent', 'contradicted', 'unverifiable', 'unknown'] as const
  expect(verdicts.map(trustOf)).toEqual(['verified', 'declared', 'detected', 'declared', 'detected'])
})

test('the lists with an address', () => {
  expect(listsWith(evidence, '203.0.113.8')).toEqual([
    { list: 'acme-user', index: 1 },
    { list: 'acme-bot', index: 0 },
    { list: 'other-bot', index: 0 },
  ])
  expect(listsWith(evidence, '192.0.2.1')).toEqual([])
  expect(listsWith(evidence, 'gptbot')).toBeNull()
})
