/** Signed requests through the middleware: the verdict in handlers that ask for it, in decisions and in events. */
import { expect, test } from 'bun:test'
import type { CompleteEvent } from '../client/event.ts'
import type { Problem } from '../client/problem.ts'
import { packFormat } from '../judge/evidence-pack.ts'
import { init } from '../node.ts'
import { publishableKey } from '../../tests/support/fake-appliance.ts'
import { createSigner, type SignOptions } from '../../tests/support/sign-request.ts'
import {
  agentOf,
  createNonceMemory,
  decide,
  type EvidenceSource,
  judgedAgentOf,
  type MiddlewareOptions,
  readEvidence,
  sightglass,
} from './middleware.ts'

const seenOn = new Date().toISOString().slice(0, 10)
const signer = createSigner()
const origin = { source: 'https://example.com', seen: seenOn, digest: 'a'.repeat(64) }
const evidence = readEvidence({
  format: packFormat,
  made: `${seenOn}T00:00:00Z`,
  hosts: [],
  tokens: [],
  lists: [
    {
      list: 'gptbot',
      operator: 'OpenAI',
      products: { GPTBot: 'crawler' },
      networks: ['8.8.8.0/24'],
      ...origin,
      published: seenOn,
    },
  ],
  directories: [{ ...origin, operator: 'OpenAI', url: 'https://chatgpt.com/keys', keys: [signer.jwk] }],
})

const agents = {
  gpt: 'Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)',
  claude: 'Mozilla/5.0 (compatible; ClaudeBot/1.0; +claudebot@anthropic.com)',
  browser: 'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/156.0 Safari/537.36',
}

const proven = { method: 'signature', keyId: signer.keyId } as const

/** Headers as Node has them. */
function signed(options: SignOptions = {}): { [name: string]: string } {
  const created = Math.floor(Date.now() / 1_000)
  const { headers } = signer.sign({ created, expires: created + 300, ...options })
  return Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), value]))
}

function site(options: MiddlewareOptions<object> = {}) {
  const events: CompleteEvent[] = []
  const problems: Problem[] = []
  const onError = (problem: Problem): void => void problems.push(problem)
  const exporters = [{ export: (event: CompleteEvent) => events.push(event) }]
  const client = init({ publishableKey, siteId: 'shop', exporters, onError })
  const middleware = sightglass(client, { evidence, origins: ['https://shop.example'], onError, ...options })
  const open = (
    agent: keyof typeof agents,
    headers: object,
    { ip = '9.9.9.9', url = '/products/7' } = {},
  ) => {
    const request = { method: 'GET', url, ip, headers: { 'user-agent': agents[agent], ...headers } }
    let end = (): void => {}
    const response = {
      statusCode: 200,
      writableFinished: true,
      getHeader: () => undefined,
      once: (_: 'close', listener: () => void) => void (end = listener),
    }
    middleware(request, response, () => {})
    return { request, end: () => end() }
  }
  return { open, events, problems, client, middleware }
}

const settled = (): Promise<void> => Bun.sleep(20)

test('a valid signature is verified after the response, and the event has the final verdict', async () => {
  const { open, events } = site()
  const { request, end } = open('gpt', signed())
  expect(agentOf(request)?.verdict).toBe('contradicted') // its address is not one of OpenAI
  end()
  while (events.length < 2) await Bun.sleep(1)
  for (const event of events)
    expect(event.agent).toMatchObject({
      name: 'GPTBot',
      verdict: 'verified',
      trust: 'verified',
      evidence: proven,
    })
  expect(agentOf(request)).toMatchObject({ verdict: 'verified', evidence: proven })
})

test('a handler that asks gets the verdict, and decisions after it use it', async () => {
  const { open, events } = site()
  const policy = { rules: [{ id: 'proven', decision: 'allow' as const, verdict: 'verified' as const }] }
  const strict = { ...policy, otherwise: 'deny' as const }
  const { request } = open('gpt', signed())
  expect(decide(request, strict)).toMatchObject({ decision: 'deny', ruleId: 'default' })
  const agent = await judgedAgentOf(request)
  expect(agent).toMatchObject({
    operator: 'OpenAI',
    product: 'GPTBot',
    verdict: 'verified',
    evidence: proven,
  })
  expect(agent).toBe(agentOf(request)!)
  expect(agent).toBe((request as { agent?: never }).agent!)
  expect(decide(request, strict)).toMatchObject({ decision: 'allow', ruleId: 'proven' })
  expect(events.map(({ agent: recorded }) => `${recorded?.verdict}`)).toEqual(['contradicted', 'verified'])
  expect(await judgedAgentOf({})).toBeNull()
  expect((await judgedAgentOf(open('gpt', {}).request))?.verdict).toBe('contradicted')
})

test('an agent with the user agent of a browser is known by its signature alone', async () => {
  const { open, events } = site()
  const { request, end } = open('browser', signed())
  expect(agentOf(request)).toBeNull()
  expect(await judgedAgentOf(request)).toEqual({
    operator: 'OpenAI',
    product: null,
    purpose: null,
    verdict: 'verified',
    evidence: proven,
  })
  expect((request as { agent?: unknown }).agent).toBe(agentOf(request))
  end()
  while (events.length < 2) await Bun.sleep(1)
  expect(events[1]).toMatchObject({
    type: 'agent.requested',
    agent: { vendor: 'OpenAI', verdict: 'verified', trust: 'verified', userAgent: agents.browser },
  })
})

test('a signature of another operator contradicts the claim', async () => {
  const { open } = site()
  expect(await judgedAgentOf(open('claude', signed()).request)).toMatchObject({
    operator: 'Anthropic',
    verdict: 'contradicted',
    evidence: proven,
  })
})

test.each<[string, () => { [name: string]: string }, string?]>([
  ['for another site', () => signed({ url: 'https://other.example/products/7' })],
  ['for another path', () => signed({ url: 'https://shop.example/', cover: ['"@authority"', '"@path"'] })],
  ['expired', () => signed({ created: 1_600_000_000, expires: 1_600_000_300 })],
  ['of an unknown key', () => signed({ keyid: createSigner().keyId })],
  ['that is cut off', () => ({ ...signed(), signature: 'sig1=:AA==:' })],
  ['that is no signature', () => ({ 'signature-input': '"' })],
  ['for another purpose', () => signed({ tag: 'other' })],
  ['of 1 MiB', () => ({ 'signature-input': 'x'.repeat(2 ** 20) })],
])('a signature %s proves nothing, and people with it are not recorded', async (_, headers) => {
  const { open, events, problems } = site()
  expect((await judgedAgentOf(open('gpt', headers()).request))?.verdict).toBe('contradicted')
  const person = open('browser', headers())
  expect(await judgedAgentOf(person.request)).toBeNull()
  person.end()
  await settled()
  expect([events, problems]).toEqual([[], []])
})

test('the host is one of the origins, whatever a proxy or a sender puts into the Host header', async () => {
  const { open } = site({ origins: ['https://shop.example', 'http://localhost:3000'] })
  const verdict = async (headers: object) => (await judgedAgentOf(open('gpt', headers).request))?.verdict
  expect(await verdict({ ...signed(), host: '10.0.0.7:8080' })).toBe('verified')
  expect(await verdict({ ...signed(), host: 'SHOP.example' })).toBe('verified')
  expect(await verdict({ ...signed({ url: 'https://evil.example/' }), host: 'evil.example' })).toBe(
    'contradicted',
  )
  const local = signed({ url: 'http://localhost:3000/products/7', cover: ['"@target-uri"'] })
  expect(await verdict({ ...local, host: 'localhost:3000' })).toBe('verified')
  expect(await verdict({ ...local, host: 'shop.example' })).toBe('contradicted')
})

test('with a memory of nonces, a replayed request proves nothing', async () => {
  const { open } = site({ nonces: createNonceMemory() })
  const headers = signed({ nonce: 'once' })
  const verdict = async (overrides: object) => (await judgedAgentOf(open('gpt', overrides).request))?.verdict
  expect(await verdict(headers)).toBe('verified')
  for (const unproven of [headers, signed()]) expect(await verdict(unproven)).toBe('contradicted')
})

test('Fetch handlers get the same verdict, and the response does not wait for one that nobody asked for', async () => {
  let load = (_: boolean): void => {}
  let isLoaded = false
  const slow: EvidenceSource = {
    current: () => (isLoaded ? evidence.current() : null),
    load: () =>
      new Promise((resolve) => {
        load = (isDone) => {
          isLoaded = true
          resolve(isDone)
        }
      }),
  }
  const { middleware, events } = site({ evidence: slow })
  const answer = middleware.fetch(async (request) => {
    const isAsked = new URL(request.url).pathname === '/asks'
    const agent = isAsked ? await judgedAgentOf(request) : agentOf(request)
    return new Response(agent?.verdict)
  })
  const ask = (path: string) => {
    const url = `http://10.0.0.7${path}`
    const headers = { 'user-agent': agents.gpt, ...signed({ url: `https://shop.example${path}` }) }
    return answer(new Request(url, { headers }))
  }
  expect(await (await ask('/')).text()).toBe('unverifiable')
  await settled()
  expect(events).toEqual([])
  load(true)
  while (events.length < 2) await Bun.sleep(1)
  expect(events[1]?.agent).toMatchObject({ verdict: 'verified' })
  expect(await (await ask('/asks')).text()).toBe('verified')
})

test('without evidence every claim is unverifiable, and a source that fails is a problem', async () => {
  const failing: EvidenceSource = { current: () => null, load: () => Promise.reject(new Error('disk')) }
  const { open, problems, events } = site({ evidence: failing })
  const { request, end } = open('gpt', signed())
  end()
  expect((await judgedAgentOf(request))?.verdict).toBe('unverifiable')
  while (events.length < 2) await Bun.sleep(1)
  expect(problems.map(({ code, message }) => [code, message])).toEqual([
    ['evidence_failed', 'A request could not be judged: disk.'],
  ])
})
