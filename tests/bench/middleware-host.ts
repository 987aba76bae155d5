/**
 * A program that measures, in the runtime that starts it, what the middleware adds to a request and a recorder to a
 * call of a WebMCP tool. Argument: the number of requests. Prints one line of JSON.
 */
import { randomUUID } from 'node:crypto'
import { argv, cpuUsage, stdout } from 'node:process'
import type { ModelContext, PageWindow } from '../../sdk/browser/model-context.ts'
import { testModelContext } from '../../sdk/browser/test-model-context.ts'
import { captureOn } from '../../sdk/browser/webmcp.ts'
import { packFormat } from '../../sdk/judge/evidence-pack.ts'
import { readEvidence, sightglass } from '../../sdk/middleware/middleware.ts'
import { createIntelExporter, init } from '../../sdk/node.ts'
import { createSigner } from '../support/sign-request.ts'

export interface Times {
  p50: number
  p99: number
}

/** µs. `floor`: an id, the time and the event as text, which is the least that a recorder does. */
export interface MiddlewareCosts {
  floor: Times
  agent: Times
  /** What an agent waits for: the part before the response. */
  before: Times
  person: Times
  signed: Times
  /** Processor time per request by an agent, with batches and delivery to a server that answers at once. */
  whole: number
  bareTool: Times
  recordedTool: Times
}

const requests = Number(argv[2])
const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

const rounds = 10

type Act = (index: number) => unknown

/**
 * Times of each call, with event-loop ticks in between, as in a server. Of ten rounds the best: on a shared machine it
 * says most about the code. All take turns, so that a quick or a slow moment of the machine has some of each.
 */
async function measure<N extends string>(acts: { [name in N]: Act }): Promise<{ [name in N]: Times }> {
  const best = new Map<string, Times>()
  for (let round = 0; round < rounds; round++) {
    for (const [name, act] of Object.entries<Act>(acts)) {
      const times: number[] = []
      for (let index = 0; index < requests / rounds; index++) {
        const startedMs = performance.now()
        const result = act(index)
        if (result !== undefined) await result
        times.push((performance.now() - startedMs) * 1_000)
        if (index % 100 === 99) await tick()
      }
      times.sort((left, right) => left - right)
      const { p50, p99 } = best.get(name) ?? { p50: Infinity, p99: Infinity }
      const quantileAt = (share: number) => times[Math.floor(times.length * share)]!
      best.set(name, { p50: Math.min(p50, quantileAt(0.5)), p99: Math.min(p99, quantileAt(0.99)) })
    }
  }
  return Object.fromEntries(best) as { [name in N]: Times }
}

const accepts = async (): Promise<Response> =>
  Response.json({ ok: true, accepted: 500, deduped: 0 }, { status: 202 })
const exporter = createIntelExporter({
  url: 'http://127.0.0.1:9',
  ingestKey: `agtx_ik_${'i'.repeat(32)}`,
  fetch: accepts,
  queueEventsMax: 10_000_000,
  queueBytesMax: 2 ** 31,
})
const client = init({ publishableKey: `agtx_pk_${'p'.repeat(32)}`, siteId: 'shop', exporters: [exporter] })

const signer = createSigner()
const day = new Date().toISOString().slice(0, 10)
const origin = { source: 'https://example.com', seen: day, digest: 'a'.repeat(64), operator: 'OpenAI' }
const networks = Array.from({ length: 3_000 }, (_, index) => `8.${index >> 8}.${index & 255}.0/24`)
const evidence = readEvidence({
  format: packFormat,
  made: `${day}T00:00:00Z`,
  hosts: [],
  tokens: [],
  lists: [{ ...origin, list: 'gptbot', products: { GPTBot: 'crawler' }, networks, published: day }],
  directories: [{ ...origin, url: 'https://chatgpt.com', keys: [signer.jwk] }],
})
const middleware = sightglass(client, { evidence, origins: ['https://shop.example'] })

const userAgents = {
  gpt: 'Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)',
  person: 'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/156.0 Safari/537.36',
}
const created = Math.floor(Date.now() / 1_000)
const { headers: signature } = signer.sign({ created, expires: created + 3_600 })
const signed = Object.fromEntries(signature.map(([name, value]) => [name.toLowerCase(), value]))

/** One request of one of 500 senders, from its start to its end. */
const request = (userAgent: string, overrides: object = {}, isClosed = true) => {
  const plain = { host: 'shop.example', accept: '*/*', 'accept-encoding': 'gzip, br', ...overrides }
  const headers = { ...plain, 'user-agent': userAgent }
  return (index: number): void => {
    const ip = `8.${index % 10}.${index % 50}.7`
    const raw = { method: 'GET', url: `/products/${index % 200}?ref=mail`, ip, headers }
    let close = (): void => {}
    const response = {
      statusCode: 200,
      writableFinished: true,
      getHeader: () => '5120',
      once: (_: 'close', listener: () => void) => void (close = listener),
    }
    middleware(raw, response, () => {})
    if (isClosed) close()
  }
}

let length = 0
const floor = (index: number): void => {
  const event = {
    id: `trc_${randomUUID()}`,
    siteId: 'shop',
    sessionId: 's',
    type: 'agent.requested',
    outcome: 'success',
    occurredAt: new Date().toISOString(),
    durationMs: 1,
    agent: { vendor: 'OpenAI', name: 'GPTBot' },
    metadata: {
      page: `/products/${index % 200}`,
      method: 'GET',
      status: 200,
      bytes: 5_120,
      host: 'shop.example',
    },
  }
  length += JSON.stringify(event).length
}

/** Calls of a tool as an agent makes them. */
async function toolCalls(isRecorded: boolean): Promise<Act> {
  const context = testModelContext({ casts: true })
  const page = Object.assign(new EventTarget(), {
    setTimeout,
    location: { pathname: '/cart' },
    performance,
    SubmitEvent: { prototype: { respondWith() {} } },
    document: { forms: [], modelContext: context as ModelContext },
  }) as unknown as PageWindow
  if (isRecorded) captureOn(page, client)
  await context.registerTool({
    name: 'cart.add',
    description: 'Adds a product',
    inputSchema: { type: 'object' },
    execute: async ({ sku }: { sku: string }) => `added ${sku}`,
  })
  return (index) => context.executeTool('cart.add', { sku: `s${index % 100}` })
}

const agent = request(userAgents.gpt)
const costs: Omit<MiddlewareCosts, 'whole'> = await measure({
  floor,
  agent,
  person: request(userAgents.person),
  before: request(userAgents.gpt, {}, false),
  signed: request(userAgents.gpt, signed, false),
  bareTool: await toolCalls(false),
  recordedTool: await toolCalls(true),
})
await client.flush()
const started = cpuUsage()
await measure({ agent })
await client.flush()
const { user, system } = cpuUsage(started)
const whole = (user + system) / requests
await client.close()
if (length === 0 || exporter.stats().dropped > 0) throw new Error('nothing was measured')
stdout.write(`${JSON.stringify({ ...costs, whole })}\n`)
