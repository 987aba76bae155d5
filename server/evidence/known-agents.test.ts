/**
 * The bundled lists against more than 500 real user agents, each from a true and a false address, and 10,000 forged
 * claims. What is right is computed here, bit by bit from the lists, without the judge's table.
 */
import { beforeAll, expect, test } from 'bun:test'
import crawlers from 'crawler-user-agents'
import fc from 'fast-check'
import { type DetectedAgent, detectAgent } from '../../sdk/agents/detect-agent.ts'
import type { AddressList, EvidencePack } from '../../sdk/judge/evidence-pack.ts'
import { type Evidence, judge, type Proof, type Verdict } from '../../sdk/judge/judge.ts'
import { type SignatureResult, verifySignature } from '../../sdk/judge/signature.ts'
import { createKeyring } from '../../sdk/judge/signature-keys.ts'
import { createSigner, signedAtSeconds } from '../../tests/support/sign-request.ts'
import { chatGptRequest } from '../../tests/support/signature-vectors.ts'
import { bundledEvidence } from './evidence.ts'

let pack: EvidencePack
let evidence: Evidence
beforeAll(async () => {
  const inForce = await bundledEvidence()
  pack = inForce.pack
  evidence = inForce.evidence()
})

/** A time at which no list is old. */
const atMs = Date.UTC(2026, 9, 1)
const agents = [...new Set(crawlers.flatMap(({ instances = [] }) => instances))]
  .map(detectAgent)
  .filter((agent) => agent !== null)

interface Range {
  bits: 32 | 128
  first: bigint
  last: bigint
}

function rangeOf(network: string): Range {
  const [address = '', length] = network.split('/')
  const bits = address.includes(':') ? 128 : 32
  const size = 1n << BigInt(bits - Number(length))
  const first = (numberOf(address) / size) * size
  return { bits, first, last: first + size - 1n }
}

function numberOf(address: string): bigint {
  if (!address.includes(':')) return address.split('.').reduce((sum, part) => sum * 256n + BigInt(part), 0n)
  const [head = '', tail = ''] = address.split('::').map((half) => half.split(':').filter(Boolean))
  const zeros = Array<string>(8 - head.length - tail.length).fill('0')
  return [...head, ...zeros, ...tail].reduce((sum, part) => sum * 65_536n + BigInt(`0x${part}`), 0n)
}

function addressOf(number: bigint, bits: 32 | 128): string {
  const size = bits === 32 ? 8 : 16
  const parts = Array.from({ length: bits / size }, (_, index) =>
    ((number >> BigInt(bits - size * (index + 1))) & ((1n << BigInt(size)) - 1n)).toString(
      bits === 32 ? 10 : 16,
    ),
  )
  return parts.join(bits === 32 ? '.' : ':')
}

const parsed = new Map<AddressList, Range[]>()
function rangesOf(list: AddressList): Range[] {
  const ranges = parsed.get(list) ?? list.networks.map(rangeOf)
  parsed.set(list, ranges)
  return ranges
}

function isIn(lists: AddressList[], address: string): boolean {
  const number = numberOf(address)
  const bits = address.includes(':') ? 128 : 32
  return lists.some((list) =>
    rangesOf(list).some((range) => range.bits === bits && range.first <= number && number <= range.last),
  )
}

const ofOperator = ({ vendor }: DetectedAgent): AddressList[] =>
  pack.lists.filter(({ operator }) => operator === vendor)
const ofProduct = (agent: DetectedAgent): AddressList[] =>
  ofOperator(agent).filter(({ products }) => (products[agent.name] ?? products['*']) !== undefined)
const isForPeople = (agent: DetectedAgent): boolean =>
  ofProduct(agent).some(({ products }) => (products[agent.name] ?? products['*']) === 'user')

const verdictOf = (agent: DetectedAgent, proof: Proof): Verdict =>
  judge(agent, proof, evidence, { atMs }).verdict

test('a request that ChatGPT signed is verified by the bundled keys', async () => {
  const { request, keyId, atMs: signedAtMs } = chatGptRequest
  const keyring = await createKeyring(pack.directories)
  const signature = await verifySignature(request, { keyring, nowMs: () => signedAtMs })
  expect(signature).toEqual({ state: 'valid', operator: 'OpenAI', keyId })
  expect(judge({ vendor: 'OpenAI', name: 'ChatGPT-User' }, { signature }, evidence, { atMs })).toEqual({
    verdict: 'verified',
    evidence: { method: 'signature', keyId },
  })
})

test('more than 500 known agents from a true and a false address: each has the right verdict', () => {
  expect(agents.length).toBeGreaterThan(500)
  const counts: { [verdict: string]: number } = {}
  for (const [index, agent] of agents.entries()) {
    const lists = ofProduct(agent)
    const ranges = lists.flatMap(rangesOf)
    const range = ranges[index % Math.max(1, ranges.length)]
    // Without a list no address can prove or contradict anything.
    const truth =
      range === undefined ? '20.171.206.4' : addressOf([range.first, range.last][index % 2]!, range.bits)
    const lie = ['203.0.113.9', '2001:db8::7', '8.8.8.8'][index % 3]!
    expect(isIn(ofOperator(agent), lie)).toBe(false)
    const right: [Verdict, Verdict] =
      range === undefined
        ? ['unverifiable', 'unverifiable']
        : ['verified', isForPeople(agent) ? 'unverifiable' : 'contradicted']
    const isTruthForeign = range === undefined && isIn(ofOperator(agent), truth)
    if (isTruthForeign) right[0] = 'verified' // another crawler of the operator comes from there
    const verdicts = [verdictOf(agent, { address: truth }), verdictOf(agent, { address: lie })]
    expect(verdicts, `${agent.vendor} ${agent.name} ${truth} ${lie}`).toEqual(right)
    for (const verdict of verdicts) counts[verdict] = (counts[verdict] ?? 0) + 1
  }
  console.log(`${agents.length} user agents`, counts)
  expect(counts['verified']).toBeGreaterThan(50)
  expect(counts['contradicted']).toBeGreaterThan(45)
})

/** Results for requests that are signed wrongly, each in another way, and for one that is not signed. */
async function forgedSignatures(): Promise<SignatureResult[]> {
  const signer = createSigner()
  const keyring = await createKeyring([
    { operator: 'OpenAI', url: 'https://chatgpt.com', keys: [signer.jwk] },
  ])
  const options = { keyring, hosts: ['shop.example'], nowMs: () => (signedAtSeconds + 30) * 1_000 }
  return Promise.all(
    [
      createSigner().sign({ keyid: signer.keyId }),
      signer.sign({ created: signedAtSeconds - 900, expires: signedAtSeconds }),
      { ...signer.sign({ url: 'https://other.example/' }), url: 'https://shop.example/' },
      signer.sign({ url: 'https://other.example/' }),
      signer.sign({ cover: ['"@method"', '"@path"'] }),
      signer.sign({ agent: '"https://chatgpt.com"', cover: ['"@authority"'] }),
      { ...signer.sign({ cover: ['"@authority"', '"@method"'] }), method: 'DELETE' },
      { method: 'GET', url: 'https://shop.example/', headers: [] },
    ].map((request) => verifySignature(request, options)),
  )
}

test('a signed request of ChatGPT proves its operator, and no other', async () => {
  const { key, keyId, request, atMs: signedMs } = chatGptRequest
  const keyring = await createKeyring([{ operator: 'OpenAI', url: 'https://chatgpt.com', keys: [key] }])
  const signature = await verifySignature(request, { keyring, nowMs: () => signedMs })
  const verdict = (claim: { vendor: string; name: string } | null) =>
    judge(claim, { address: '203.0.113.9', signature }, evidence, { atMs })
  const proof = { method: 'signature', keyId } as const
  expect(verdict(null)).toEqual({ verdict: 'verified', evidence: proof })
  expect(verdict({ vendor: 'OpenAI', name: 'ChatGPT-User' })).toEqual({
    verdict: 'verified',
    evidence: proof,
  })
  expect(verdict({ vendor: 'Google', name: 'Googlebot' })).toMatchObject({ verdict: 'contradicted' })
})

test('10,000 forged claims: none is verified', async () => {
  const forged = await forgedSignatures()
  const address = fc.oneof(
    fc.ipV4(),
    fc.ipV6(),
    fc.ipV4().map((v4) => `::ffff:${v4}`),
    fc.constantFrom(
      '',
      '1.2.3',
      '20.171.206.4.',
      '020.171.206.4',
      '20.171.206.4/24',
      'localhost',
      '::1',
      '127.0.0.1',
    ),
  )
  const host = fc.constantFrom(
    'crawl-1-2-3-4.googlebot.com.evil.test',
    'googlebot.com',
    'crawl-1-2-3-4.xgooglebot.com',
    'evil.test',
    'msn.com',
    'search.msn.com.',
    'x.search.msn.com.evil.test',
    '*.search.msn.com',
    '',
    'x\n.search.msn.com',
  )
  const claims = agents.filter((agent) => ofOperator(agent).length > 0)
  let count = 0
  fc.assert(
    fc.property(
      fc.constantFrom(...claims),
      address,
      fc.option(fc.array(host, { maxLength: 3 }), { nil: undefined }),
      fc.constantFrom(...forged),
      (agent, sender, hostNames, signature) => {
        const v4 = sender.replace(/^::ffff:(?=\d+\.)/, '')
        const isAddress = /^(?:\d+\.\d+\.\d+\.\d+|[0-9a-f:]+:[0-9a-f:]*)$/.test(v4)
        fc.pre(!isAddress || !isIn(ofOperator(agent), v4))
        const verdict = verdictOf(agent, { address: sender, hostNames, signature })
        expect(verdict, `${agent.name} ${sender} ${hostNames}`).not.toBe('verified')
        count++
      },
    ),
    { numRuns: 10_000 },
  )
  expect(count).toBe(10_000)
  expect(
    new Set(forged.map((result) => (result.state === 'invalid' ? result.reason.code : result.state))).size,
  ).toBe(6)
})
