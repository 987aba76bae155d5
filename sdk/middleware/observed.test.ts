/** What the middleware and the relay report of a request beside its events: of agents only, and never of people. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { publishableKey } from '../../tests/support/fake-appliance.ts'
import { createSigner } from '../../tests/support/sign-request.ts'
import type { CompleteEvent } from '../client/event.ts'
import type { Observed } from '../client/observed.ts'
import { createRelayHandler, init } from '../node.ts'
import { sightglass, type MiddlewareOptions } from './middleware.ts'

const gptBot = 'Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)'
const browser = 'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/156.0 Safari/537.36'
const address = '20.171.206.8'
const signer = createSigner()

interface Sent {
  event: CompleteEvent
  observed: Observed | undefined
}

function setUp(options: MiddlewareOptions<object> = {}, isJudging = true) {
  const sentEvents: Sent[] = []
  const exporter = {
    export: (event: CompleteEvent, observed?: Observed) => sentEvents.push({ event, observed }) > 0,
    flush: () => Promise.resolve(true),
    observes: () => isJudging,
  }
  const client = init({ publishableKey, siteId: 'shop', exporters: [exporter] })
  const middleware = sightglass(client, options)
  const visit = async (headers: { [name: string]: string }, overrides: object = {}): Promise<void> => {
    let end = (): void => {}
    const response = {
      statusCode: 200,
      writableFinished: true,
      getHeader: () => undefined,
      once: (_: 'close', listener: () => void) => void (end = listener),
    }
    middleware({ method: 'GET', url: '/products/7', ip: address, headers, ...overrides }, response, () => {})
    end()
    await Bun.sleep(1)
  }
  const relay = createRelayHandler({ exporter, publishableKey, origins: ['https://shop.example'] })
  return { sent: sentEvents, visit, relay }
}

function signedHeaders(host = 'shop.example'): { [name: string]: string } {
  const agent = '"https://chatgpt.com"'
  const { headers } = signer.sign({ url: `https://${host}/products/7`, agent, nonce: 'once' })
  return Object.fromEntries([...headers.map(([name, value]) => [name.toLowerCase(), value]), ['host', host]])
}

test('the address of an agent is beside the request and the start of its session', async () => {
  const { sent: sentEvents, visit } = setUp()
  await visit({ 'user-agent': gptBot })
  expect(sentEvents.map(({ event, observed }) => [event.type, observed])).toEqual([
    ['agent.detected', { address }],
    ['agent.requested', { address }],
  ])
  expect(JSON.stringify(sentEvents.map(({ event }) => event))).not.toContain(address)
})

test('the address is that of the option, and none is reported where none is known', async () => {
  const { sent: sentEvents, visit } = setUp({ address: () => '198.51.100.7' })
  await visit({ 'user-agent': gptBot })
  expect(sentEvents[0]?.observed).toEqual({ address: '198.51.100.7' })
  const otherSetup = setUp()
  await otherSetup.visit({ 'user-agent': gptBot }, { ip: undefined })
  expect(otherSetup.sent[0]?.observed).toBeUndefined()
})

test('a signature is reported with the text that was signed, for the host of the request or of the site', async () => {
  for (const options of [{}, { origins: ['https://shop.example'] }]) {
    const { sent: sentEvents, visit } = setUp(options)
    const host = 'origins' in options ? 'inside:3000' : 'shop.example'
    await visit({ 'user-agent': browser, ...signedHeaders(), host })
    const { event, observed } = sentEvents.at(-1)!
    expect(event).toMatchObject({
      type: 'agent.requested',
      agent: { vendor: 'chatgpt.com', userAgent: browser },
    })
    expect(observed?.signature?.keyId).toBe(signer.keyId)
    expect(observed?.signature?.base).toStartWith(
      '"@authority": shop.example\n"signature-agent": "https://chatgpt.com"\n',
    )
  }
})

test('an appliance that does not judge gets no event that only a signature claims', async () => {
  const { sent: sentEvents, visit } = setUp({}, false)
  await visit({ 'user-agent': browser, ...signedHeaders() })
  expect(sentEvents).toEqual([])
})

test('law: whatever headers people send, no event and no address of theirs is reported', async () => {
  const name = fc.constantFrom(
    'signature',
    'signature-agent',
    'x-forwarded-for',
    'forwarded',
    'from',
    'accept',
  )
  const value = fc.oneof(fc.string(), fc.constantFrom(address, '"https://chatgpt.com"', 'sig=:AAAA:'))
  await fc.assert(
    fc.asyncProperty(fc.dictionary(name, value), async (headers) => {
      const { sent: sentEvents, visit, relay } = setUp()
      await visit({ ...headers, 'user-agent': browser })
      expect(sentEvents).toEqual([])
      const body = JSON.stringify({
        publishableKey,
        events: [{ id: 'p', type: 'a', agent: { name: 'GPTBot' } }],
      })
      const origin = { origin: 'https://shop.example', 'user-agent': browser }
      const plain = Object.fromEntries(Object.entries(headers).filter(([, text]) => /^[!-~]*$/.test(text)))
      const request = new Request('https://shop.example/traces', {
        method: 'POST',
        body,
        headers: { ...plain, ...origin },
      })
      expect((await relay(request, { address })).status).toBe(202)
      expect(sentEvents.map(({ observed }) => observed)).toEqual([undefined])
    }),
    { numRuns: 60 },
  )
})

test('the relay reports the address of an agent’s request, and its signature once', async () => {
  const { sent: sentEvents, relay } = setUp()
  const { headers } = signer.sign({ method: 'POST', url: 'https://shop.example/traces', nonce: 'n' })
  const events = ['a', 'b'].map((id) => ({ id, type: 'agent.detected', siteId: 'shop' }))
  const request = new Request('https://shop.example/traces', {
    method: 'POST',
    body: JSON.stringify({ publishableKey, events, observed: { a: { address: '192.0.2.1' } } }),
    headers: [
      ...headers,
      ['origin', 'https://shop.example'],
      ['user-agent', gptBot],
      ['host', 'shop.example'],
    ],
  })
  expect((await relay(request, { address })).status).toBe(202)
  expect(sentEvents[0]?.observed).toMatchObject({ address, signature: { keyId: signer.keyId } })
  expect(sentEvents[1]?.observed).toEqual({ address })
})
