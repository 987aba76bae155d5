/** Signatures that senders report: each counts once, for a host of the site and for its time (contract §17). */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Provenance } from '../../db/contract/provenance.ts'
import { replacePack } from '../../server/evidence/evidence.ts'
import { packFileText } from '../../server/evidence/pack-file.ts'
import bundledPack from '../../server/evidence/bundled-pack.json'
import { observeSignature, type ObservedSignature } from '../../sdk/judge/observe-signature.ts'
import { event } from '../support/events.ts'
import { testServer, type TestServer } from '../support/server.ts'
import { createSigner, type SignOptions, type Signer } from '../support/sign-request.ts'

const signer = createSigner()
const stranger = createSigner()
const origin = 'https://chatgpt.com'

let server: TestServer
let ingest: string

beforeAll(async () => {
  server = await testServer()
  ingest = await server.key('ingest')
  const { signature: _signature, ...pack } = bundledPack
  const seenDate = new Date().toISOString().slice(0, 10)
  const directory = {
    operator: 'OpenAI',
    source: origin,
    seen: seenDate,
    digest: '',
    url: origin,
    keys: [signer.jwk],
  }
  const text = packFileText({ ...pack, directories: [directory] } as never, null)
  await replacePack(server, 'test', { text, trust: true })
  const owner = { cookie: await server.signIn('owner') }
  const body = { siteId: 'shop', hosts: ['https://shop.example/x'] }
  expect((await server.call('/api/sites', { headers: owner, body })).status).toBe(400)
  for (const hosts of [['SHOP.example', 'shop.example:8443', 'www.shop.example:443']]) {
    const answer = await server.call('/api/sites', { headers: owner, body: { siteId: 'shop', hosts } })
    expect(await answer.json()).toMatchObject({
      site: { hosts: ['shop.example', 'shop.example:8443', 'www.shop.example'] },
    })
  }
})
afterAll(() => server[Symbol.asyncDispose]())

const nowSeconds = (): number => Math.floor(Date.now() / 1_000)

function signed(options: SignOptions = {}, requestSigner: Signer = signer): ObservedSignature {
  const created = nowSeconds() - 5
  const request = requestSigner.sign({ created, expires: created + 300, agent: `"${origin}"`, ...options })
  return observeSignature(request)!
}

const agent = { userAgent: 'Mozilla/5.0 (X11; Linux x86_64) Chrome/156.0' }
let count = 0

const claimed = (overrides: object = {}): { id: string } & object =>
  event(`s${count++}`, {
    siteId: 'shop',
    type: 'agent.requested',
    outcome: 'success',
    agent,
    occurredAt: new Date().toISOString(),
    sessionId: `session ${count}`,
    ...overrides,
  })

async function post(events: { id: string }[], observed: object): Promise<Provenance[]> {
  const body = { events, observed }
  const response = await server.call('/v1/sdk/events', { key: ingest, body })
  expect([response.status, await response.json()]).toMatchObject([202, { ok: true }])
  const stored = events.map(({ id }) => server.store.events.byId({ orgId: server.org.id, id }))
  return (await Promise.all(stored)).map((storedEvent) => storedEvent!.provenance!)
}

async function judged(
  signature: ObservedSignature,
  overrides: object = {},
  claimedEvent = claimed(),
): Promise<Provenance> {
  return (await post([claimedEvent], { [claimedEvent.id]: { signature, ...overrides } }))[0]!
}

const evidenceOf = ({ evidence }: Provenance): unknown => JSON.parse(evidence!)
let nonces = 0
const nonce = (): string => `nonce ${nonces++}`

test('a signature of an operator verifies a browser’s user agent, and a claim to be another is false', async () => {
  const first = await judged(signed({ nonce: nonce() }))
  expect(first).toMatchObject({ verdict: 'verified', judgedBy: 'appliance' })
  expect(evidenceOf(first)).toEqual({ method: 'signature', keyId: signer.keyId })
  const otherEvent = claimed({ agent: { userAgent: 'ClaudeBot/1.0' } })
  expect((await judged(signed({ nonce: nonce() }), {}, otherEvent)).verdict).toBe('contradicted')
})

test.each<[string, () => ObservedSignature, string]>([
  ['another host', () => signed({ nonce: nonce(), url: 'https://evil.example/' }), 'wrong-host'],
  ['another port', () => signed({ nonce: nonce(), url: 'https://shop.example:8444/' }), 'wrong-host'],
  ['no host', () => signed({ nonce: nonce(), agent: null, cover: ['"@method"'] }), 'wrong-host'],
  [
    'a future',
    () => signed({ nonce: nonce(), created: nowSeconds() + 600, expires: nowSeconds() + 900 }),
    'expired',
  ],
  [
    'two days ago',
    () => signed({ nonce: nonce(), created: nowSeconds() - 172_800, expires: nowSeconds() - 172_500 }),
    'expired',
  ],
  ['nothing', () => signed({ nonce: nonce(), agent: null, cover: [] }), 'wrong-host'],
  ['a validity of two days', () => signed({ nonce: nonce(), expires: nowSeconds() + 172_800 }), 'invalid'],
  ['no times', () => signed({ nonce: nonce(), created: null }), 'invalid'],
  ['a key that no operator has', () => signed({ nonce: nonce() }, stranger), 'unknown-key'],
  ['another directory', () => signed({ nonce: nonce(), agent: '"https://evil.example"' }), 'invalid'],
  ['another key id', () => ({ ...signed({ nonce: nonce() }), keyId: stranger.keyId }), 'invalid'],
  [
    'a stranger with the operator’s key id',
    () => signed({ nonce: nonce(), keyid: signer.keyId }, stranger),
    'invalid',
  ],
])('a signature for %s proves nothing', async (_, createSignature, reason) => {
  const record = await judged(createSignature())
  expect(record).toMatchObject({ verdict: 'unverifiable', judgedBy: 'appliance' })
  expect(evidenceOf(record)).toMatchObject({ method: 'signature', reason })
})

test('a signature that leaves out the Signature-Agent of its request is not reported', () => {
  const request = signer.sign({ agent: `"${origin}"`, cover: ['"@authority"'] })
  expect(observeSignature(request)).toBeNull()
})

test('a report may be a day late, and the address of the agent may decide without the signature', async () => {
  const created = nowSeconds() - 80_000
  expect((await judged(signed({ nonce: nonce(), created, expires: created + 300 }))).verdict).toBe('verified')
  const gpt = claimed({ agent: { userAgent: 'GPTBot/1.2' } })
  const wrong = signed({ nonce: nonce(), url: 'https://evil.example/' })
  expect((await judged(wrong, { address: '20.171.206.7' }, gpt)).verdict).toBe('verified')
})

test('a nonce or a base counts once; what is sent again keeps its verdict', async () => {
  for (const nonceSignature of [signed({ nonce: nonce() }), signed({ nonce: null })]) {
    const event = claimed()
    expect((await judged(nonceSignature, {}, event)).verdict).toBe('verified')
    expect((await judged(nonceSignature, {}, event)).verdict).toBe('verified')
    const replayed = await judged(nonceSignature)
    expect(replayed.verdict).toBe('unverifiable')
    expect(evidenceOf(replayed)).toMatchObject({ reason: 'replayed' })
  }
  const again = nonce()
  expect((await judged(signed({ nonce: again }))).verdict).toBe('verified')
  expect((await judged(signed({ nonce: again, url: 'https://www.shop.example/' }))).verdict).toBe(
    'unverifiable',
  )
})

test('the request and the start of its session share a signature', async () => {
  const nonceSignature = signed({ nonce: nonce() })
  const sharedFields = { occurredAt: new Date().toISOString(), sessionId: 'both' }
  const start = claimed(sharedFields)
  const request = claimed(sharedFields)
  const observed = { [start.id]: { signature: nonceSignature }, [request.id]: { signature: nonceSignature } }
  expect((await post([start, request], observed)).map(({ verdict }) => verdict)).toEqual([
    'verified',
    'verified',
  ])
  const otherSignature = signed({ nonce: nonce() })
  const a = claimed()
  const b = claimed()
  const verdicts = await post([a, b], {
    [a.id]: { signature: otherSignature },
    [b.id]: { signature: otherSignature },
  })
  expect(verdicts.map(({ verdict }) => verdict).sort()).toEqual(['unverifiable', 'verified'])
})

test('of 40 requests at once with one signature, one counts', async () => {
  const nonceSignature = signed({ nonce: nonce() })
  const records = await Promise.all(Array.from({ length: 40 }, () => judged(nonceSignature)))
  expect(records.filter(({ verdict }) => verdict === 'verified').length).toBe(1)
})

test('law: no change of a report verifies', async () => {
  const change = fc.record({
    field: fc.constantFrom('base', 'signature', 'keyId'),
    at: fc.double({ min: 0, max: 0.999, noNaN: true }),
    text: fc.string({ unit: 'binary', maxLength: 4 }),
    cut: fc.nat(3),
  })
  await fc.assert(
    fc.asyncProperty(change, async ({ field, at: position, text, cut }) => {
      const whole = signed({ nonce: nonce() })
      const old = whole[field as 'base']
      const start = Math.floor(position * old.length)
      const changed = old.slice(0, start) + text + old.slice(start + cut)
      fc.pre(changed !== old && changed.isWellFormed())
      const claimedEvent = claimed()
      const body = {
        events: [claimedEvent],
        observed: { [claimedEvent.id]: { signature: { ...whole, [field]: changed } } },
      }
      expect((await server.call('/v1/sdk/events', { key: ingest, body })).status).toBe(202)
      const stored = (await server.store.events.byId({ orgId: server.org.id, id: claimedEvent.id }))!
        .provenance!
      // Padding of base64 is no part of the signature's bytes.
      const isSame =
        field === 'signature' && Buffer.from(changed, 'base64').equals(Buffer.from(old, 'base64'))
      if (!isSame) expect(stored.verdict).not.toBe('verified')
    }),
    { numRuns: 150 },
  )
}, 60_000)

test('a use is its owner’s, and is deleted once it has expired', async () => {
  const hash = (digit: string): string => digit.repeat(64)
  const uses = [{ hash: hash('a'), owner: hash('b'), expiresAtMs: 1_000 }]
  expect(await server.store.signatures.use({ uses })).toEqual([true])
  // The request is sent again because its events could not be stored; another request cannot use it.
  expect(await server.store.signatures.use({ uses })).toEqual([true])
  expect(await server.store.signatures.use({ uses: [{ ...uses[0]!, owner: hash('c') }] })).toEqual([false])
  expect(await server.store.signatures.prune({ now: 999 })).toBe(0)
  expect(await server.store.signatures.prune({ now: 1_000 })).toBe(2)
})
