/** The load on a fleet: writers that resend until they are acknowledged, a follower of the live stream, readers. */
import { event } from '../../support/events.ts'
import { seeded } from '../seeded.ts'
import type { Fleet } from './fleet.ts'

export interface Load {
  /** Ids by the moment of their acknowledgement. */
  acknowledged: Set<string>
  sent: Set<string>
  followed: string[]
  /** What must never happen, in words. */
  faults: string[]
  statuses: { [status: string]: number }
  longestMs: number
  resumed: number
  reads: number
  /** Resolves when every sent event is acknowledged; writers wait until `resume`. */
  pause(): Promise<void>
  resume(): void
  end(): Promise<void>
}

interface State extends Load {
  isPaused: boolean
  isOver: boolean
  busy: number
}

const writers = 5
const batchSizes = [1, 1, 5, 20, 60]

/** A client gives up a little later than the server answers at the latest. */
const answerWithinMs = 40_000

/** Resolves when the follower is there and the writers begin. */
export async function startLoad(fleet: Fleet, seed: number): Promise<Load> {
  const state: State = {
    acknowledged: new Set(),
    sent: new Set(),
    followed: [],
    faults: [],
    statuses: {},
    longestMs: 0,
    resumed: 0,
    reads: 0,
    isPaused: false,
    isOver: false,
    busy: 0,
    async pause() {
      state.isPaused = true
      while (state.busy > 0) await Bun.sleep(20)
    },
    resume: () => void (state.isPaused = false),
    async end() {
      state.isOver = true
      following.abort()
      await Promise.all(running)
    },
  }
  const following = new AbortController()
  const ready = Promise.withResolvers<void>()
  const running = [follow(fleet, state, following.signal, ready.resolve)]
  await ready.promise
  running.push(
    ...Array.from({ length: writers }, (_, writer) => write(fleet, state, writer, seed)),
    read(fleet, state),
  )
  return state
}

/** Calls through the proxy; null when there was no answer. */
async function call(fleet: Fleet, state: State, path: string, init: RequestInit): Promise<Response | null> {
  const startedMs = performance.now()
  const signal = AbortSignal.timeout(answerWithinMs)
  const answer = await fetch(`${fleet.url}${path}`, { ...init, signal, keepalive: false }).catch(() => null)
  const tookMs = performance.now() - startedMs
  state.longestMs = Math.max(state.longestMs, tookMs)
  if (tookMs >= answerWithinMs) state.faults.push(`${path}: no answer within ${answerWithinMs} ms`)
  const status = String(answer?.status ?? 'none')
  state.statuses[status] = (state.statuses[status] ?? 0) + 1
  if (answer?.status === 503 && answer.headers.get('retry-after') === null)
    state.faults.push(`${path}: 503 without Retry-After: ${await answer.text()}`)
  return answer
}

async function write(fleet: Fleet, state: State, writer: number, seed: number): Promise<void> {
  const { below: randomBelow } = seeded(seed + writer)
  const headers = { authorization: `Bearer ${fleet.keys.ingest}`, 'content-type': 'application/json' }
  for (let number = 0; !state.isOver; number++) {
    while (state.isPaused && !state.isOver) await Bun.sleep(20)
    const count = batchSizes[writer % batchSizes.length]!
    const ids = Array.from({ length: count }, (_, n) => `evt_${writer}_${number}_${n}`)
    const occurredAt = new Date().toISOString()
    const events = ids.map((id) => event(id, { occurredAt, sessionId: `s_${writer}_${number % 50}` }))
    const body = JSON.stringify({ events })
    for (const id of ids) state.sent.add(id)
    state.busy += 1
    for (let isDone = false; !isDone && !state.isOver;) {
      const answer = await call(fleet, state, '/v1/sdk/events', { method: 'POST', headers, body })
      isDone = answer?.status === 202
      if (isDone) {
        const { accepted, deduped } = (await answer!.json()) as { accepted: number; deduped: number }
        if (accepted + deduped !== count) state.faults.push(`${ids[0]}: ${accepted} + ${deduped} of ${count}`)
        for (const id of ids) state.acknowledged.add(id)
      } else {
        const text = await answer?.text().catch(() => '')
        if (answer !== null && ![502, 503, 504, 507].includes(answer.status))
          state.faults.push(`events: ${answer.status} ${text}`)
        await Bun.sleep(100 + randomBelow(200))
      }
    }
    state.busy -= 1
    await Bun.sleep(40 + randomBelow(120))
  }
}

interface Message {
  id: string
  name: string
  data: string
}

async function* messagesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Message> {
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

/** Resumes after the last message that arrived whole, as a browser does. */
async function follow(fleet: Fleet, state: State, end: AbortSignal, ready: () => void): Promise<void> {
  let position = ''
  let receivedAt = ''
  while (!end.aborted) {
    const headers = { cookie: fleet.cookie, ...(position === '' ? {} : { 'last-event-id': position }) }
    try {
      const answer = await fetch(`${fleet.url}/api/live`, { headers, signal: end, keepalive: false })
      if (answer.status === 200) {
        for await (const { id, name, data } of messagesOf(answer.body!)) {
          position = id
          ready()
          if (name !== 'events') continue
          const { events } = JSON.parse(data) as { events: { receivedAt: string; event: { id: string } }[] }
          for (const { receivedAt: eventReceivedAt, event: followedEvent } of events) {
            if (eventReceivedAt < receivedAt)
              state.faults.push(`${followedEvent.id} was received at ${eventReceivedAt}, after ${receivedAt}`)
            receivedAt = eventReceivedAt
            state.followed.push(followedEvent.id)
          }
        }
      } else if (answer.status !== 503 && answer.status !== 502)
        // A proxy answers 502 when the node ends in the middle of its response.
        state.faults.push(`live: ${answer.status} ${await answer.text()}`)
    } catch {
      // The node, the proxy or the connection ended.
    }
    state.resumed += 1
    if (!end.aborted) await Bun.sleep(200)
  }
}

/** Every count includes what was acknowledged before, and nothing that was not sent. */
async function read(fleet: Fleet, state: State): Promise<void> {
  const headers = { authorization: `Bearer ${fleet.keys.secret}` }
  while (!state.isOver) {
    const atLeast = state.acknowledged.size
    const answer = await call(fleet, state, '/v1/metrics', { headers })
    if (answer?.status === 200) {
      const { total } = (await answer.json()) as { total: number }
      const atMost = state.sent.size
      if (total < atLeast || total > atMost)
        state.faults.push(`a count of ${total} events, ${atLeast} acknowledged and ${atMost} sent`)
      state.reads += 1
    } else {
      const text = await answer?.text().catch(() => '')
      if (answer !== null && ![502, 503, 504].includes(answer.status))
        state.faults.push(`metrics: ${answer.status} ${text}`)
    }
    await Bun.sleep(250)
  }
}
