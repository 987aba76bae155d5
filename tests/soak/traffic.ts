/** The traffic of a soak: numbered events that are sent until acknowledged, readers, a live stream and webhooks. */
import { classes, types, userAgent, vendors } from '../bench/engine-events.ts'
import type { Seeded } from '../crash/seeded.ts'
import type { Latencies } from './measure.ts'

/** Where the server is, and as whom to call it. They change when it starts again. */
export interface Target {
  url: string
  keys: { ingest: string; secret: string }
  cookie: string
}

export interface Traffic {
  /** Events of each writer that are acknowledged: those with a smaller number. */
  acknowledged: number[]
  /** The next number of each writer that the live stream must bring. */
  followed: number[]
  /** Sequence numbers of webhook messages that were answered with 200. */
  delivered: Set<number>
  statuses: { [status: string]: number }
  /** What must never happen, in words. */
  faults: string[]
  /** As the server counted them last. */
  stored: number
  /** The receiver answers 503 while this is set. */
  isReceiverAway: boolean
  receiverUrl: string
  /** Ends the writers once everything they sent is acknowledged, then the readers. */
  endWriters(): Promise<void>
  end(): Promise<void>
}

interface Context {
  target: Target
  traffic: Traffic
  latencies: Latencies
  random: Seeded
  nowMs(): number
  isOver: { writing: boolean; reading: boolean }
}

export const batchSizes = [1, 20, 100, 250]
const answerWithinMs = 30_000
const dayMs = 86_400_000
/** Answers of a server that starts, ends, or cannot take more at the moment. */
const passing = [429, 502, 503, 504, 507]

const reads: { name: string; path: string; asPerson?: true; sinceDay?: true }[] = [
  { name: 'metrics', path: '/v1/metrics' },
  { name: 'page of events', path: '/v1/traces?limit=200' },
  // As many as there are after the first minutes: a page that fills takes longer and longer.
  { name: 'rare vendor', path: '/v1/traces?limit=20&vendor=RareBot' },
  { name: 'sessions', path: '/v1/sessions' },
  { name: 'tools', path: '/v1/tools' },
  { name: 'explore', path: '/api/explore?measure=events&by=metadata.plan&range=24h', asPerson: true },
  { name: 'overview', path: '/api/overview', asPerson: true },
  { name: 'detect', path: '/api/detect?range=24h', asPerson: true },
  { name: 'text of 24 h', path: '/v1/traces?limit=50&q=checkout', sinceDay: true },
]

/** Begins to write when the live stream is open, because a stream without a position omits earlier events. */
export async function startTraffic(
  options: Pick<Context, 'target' | 'latencies' | 'random' | 'nowMs'>,
  rate: number,
): Promise<Traffic> {
  const isOver = { writing: false, reading: false }
  const ending = new AbortController()
  const receiver = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: (request) => receive(request, traffic),
  })
  const traffic: Traffic = {
    acknowledged: batchSizes.map(() => 0),
    followed: batchSizes.map(() => 0),
    delivered: new Set(),
    statuses: {},
    faults: [],
    stored: 0,
    isReceiverAway: false,
    receiverUrl: `http://127.0.0.1:${receiver.port}/in`,
    async endWriters() {
      isOver.writing = true
      await Promise.all(writing)
    },
    async end() {
      isOver.reading = true
      ending.abort()
      await Promise.all(reading)
      await receiver.stop(true)
    },
  }
  const context: Context = { ...options, traffic, isOver }
  const opened = Promise.withResolvers<void>()
  const following = follow(context, ending.signal, opened.resolve)
  await opened.promise
  const writing = batchSizes.map((size, writer) =>
    write(context, writer, size, rate / batchSizes.length / size),
  )
  const reading = [read(context), following]
  return traffic
}

async function receive(request: Request, traffic: Traffic): Promise<Response> {
  const { type, data } = (await request.json()) as { type: string; data: { sequence: number } }
  if (traffic.isReceiverAway) return new Response('away', { status: 503 })
  if (type === 'trace.batch') traffic.delivered.add(data.sequence)
  return new Response()
}

/** Its status is counted, and its time when it was answered well; null without an answer. */
async function call(
  { traffic, latencies }: Context,
  name: string,
  url: string,
  init: RequestInit,
): Promise<Response | null> {
  const startedMs = performance.now()
  try {
    const answer = await fetch(url, { ...init, signal: AbortSignal.timeout(answerWithinMs) })
    const body = await answer.arrayBuffer()
    const status = String(answer.status)
    traffic.statuses[status] = (traffic.statuses[status] ?? 0) + 1
    if (answer.ok) latencies.add(name, performance.now() - startedMs)
    else if (!passing.includes(answer.status) && answer.status !== 401)
      traffic.faults.push(`${name}: ${status} ${new TextDecoder().decode(body).replace(/"requestId.*/, '')}`)
    return new Response(body, { status: answer.status })
  } catch {
    if (performance.now() - startedMs >= answerWithinMs)
      traffic.faults.push(`${name}: no answer in ${answerWithinMs} ms`)
    traffic.statuses['none'] = (traffic.statuses['none'] ?? 0) + 1
    return null
  }
}

/** The id of a numbered event of a writer. */
export const soakId = (writer: number, number: number): string => `soak_${writer}_${number}`

function eventText(writer: number, n: number, atMs: number): string {
  const vendor = n % 10_000 === 0 ? 'RareBot' : vendors[n % vendors.length]
  const event = {
    id: soakId(writer, n),
    siteId: `shop-${n % 3}`,
    sessionId: `s_${writer}_${Math.floor(n / 40)}`,
    occurredAt: new Date(atMs).toISOString(),
    type: types[n % types.length],
    durationMs: n % 900,
    outcome: n % 11 === 0 ? 'blocked' : 'success',
    agent: { class: classes[n % classes.length], trust: 'detected', vendor, userAgent },
    ...(n % 6 === 3 ? { tool: `cart.${n % 17}` } : {}),
    metadata: { page: `/checkout/${n % 500}`, plan: `plan-${n % 7}`, 'cart.items': n % 9 },
  }
  return JSON.stringify(event)
}

async function write(context: Context, writer: number, size: number, batchesPerS: number): Promise<void> {
  const { target, traffic, isOver, random, nowMs } = context
  const name = size === 1 ? 'single event' : `batch of ${size}`
  for (let first = 0; !isOver.writing; first += size) {
    const startedMs = performance.now()
    const atMs = nowMs()
    const events = Array.from({ length: size }, (_, n) => eventText(writer, first + n, atMs))
    const body = `{"events":[${events.join(',')}]}`
    for (let isDone = false; !isDone;) {
      const headers = { authorization: `Bearer ${target.keys.ingest}`, 'content-type': 'application/json' }
      const answer = await call(context, name, `${target.url}/v1/sdk/events`, {
        method: 'POST',
        headers,
        body,
      })
      if (answer?.status === 202) {
        const { accepted, deduped } = (await answer.json()) as { accepted: number; deduped: number }
        if (accepted + deduped !== size)
          traffic.faults.push(`${soakId(writer, first)}: ${accepted} + ${deduped} of ${size}`)
        traffic.acknowledged[writer] = first + size
        isDone = true
      } else await Bun.sleep(100 + random.below(200))
    }
    const restMs = 1_000 / batchesPerS - (performance.now() - startedMs)
    if (restMs > 0) await Bun.sleep(restMs)
  }
}

async function read(context: Context): Promise<void> {
  const { target, isOver, nowMs, traffic } = context
  while (!isOver.reading) {
    for (const { name, path, asPerson, sinceDay } of reads) {
      const headers: Record<string, string> = asPerson
        ? { cookie: target.cookie }
        : { authorization: `Bearer ${target.keys.secret}` }
      const since = sinceDay ? `&since=${new Date(nowMs() - dayMs).toISOString()}` : ''
      const answer = await call(context, name, `${target.url}${path}${since}`, { headers })
      if (name === 'metrics' && answer?.ok)
        traffic.stored = ((await answer.json()) as { total: number }).total
      if (answer?.status === 401) target.cookie = await signIn(target.url).catch(() => target.cookie)
      await Bun.sleep(150)
    }
  }
}

export const owner = { email: 'owner@example.com', password: 'a window in a vessel' }

export async function signIn(url: string): Promise<string> {
  const headers = { 'content-type': 'application/json', origin: url }
  const answer = await fetch(`${url}/api/sign-in`, { method: 'POST', headers, body: JSON.stringify(owner) })
  if (answer.status !== 200) throw new Error(`${answer.status} ${await answer.text()}`)
  return answer.headers.get('set-cookie')?.split(';')[0] ?? ''
}

/** Follows the live stream and resumes it after each end: every number of a writer comes once and in order. */
async function follow(
  { target, traffic, isOver }: Context,
  end: AbortSignal,
  onOpen: () => void,
): Promise<void> {
  let position = ''
  while (!isOver.reading) {
    const headers = { cookie: target.cookie, ...(position === '' ? {} : { 'last-event-id': position }) }
    try {
      const answer = await fetch(`${target.url}/api/live`, { headers, signal: end })
      if (answer.status === 200)
        for await (const { id, name, data } of messagesOf(answer.body!)) {
          position = id
          onOpen()
          if (name !== 'events') continue
          const { events } = JSON.parse(data) as { events: { event: { id: string } }[] }
          for (const { event } of events) markSeen(traffic, event.id)
        }
      else if (answer.status === 401) target.cookie = await signIn(target.url)
      else await answer.body?.cancel()
    } catch {
      // The server or the connection ended.
    }
    if (!isOver.reading) await Bun.sleep(200)
  }
}

function markSeen({ followed, faults }: Traffic, id: string): void {
  const [, writer, number] = /^soak_(\d)_(\d+)$/.exec(id) ?? []
  if (writer === undefined) return
  const expected = followed[Number(writer)]!
  if (Number(number) !== expected) faults.push(`live: ${id} instead of ${soakId(Number(writer), expected)}`)
  followed[Number(writer)] = Number(number) + 1
}

/** The messages of a stream of server-sent events. */
async function* messagesOf(
  body: ReadableStream<Uint8Array>,
): AsyncGenerator<{ id: string; name: string; data: string }> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of body) {
    text += decoder.decode(chunk, { stream: true })
    const parts = text.split('\n\n')
    text = parts.pop()!
    for (const part of parts) {
      const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(part)?.[1] ?? ''
      if (field('event') !== '') yield { id: field('id'), name: field('event'), data: field('data') }
    }
  }
}
