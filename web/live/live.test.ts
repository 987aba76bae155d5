/** Following the stream: no break skips or repeats an event. */
import { describe, expect, test } from 'bun:test'
import { ApiError, type ReceivedEvent } from '../api/api.ts'
import { followLive, type LiveState } from './live.ts'

function received(n: number): ReceivedEvent {
  const occurredAt = '2026-06-23T12:00:00.000Z'
  return {
    receivedAt: occurredAt,
    event: {
      id: `e${n}`,
      siteId: 's',
      sessionId: 'x',
      occurredAt: occurredAt,
      type: 'a.b',
      outcome: 'success',
    },
  }
}

const message = (n: number): string =>
  `id: ${n}\nevent: events\ndata: ${JSON.stringify({ events: [received(n)] })}\n\n`

/** A server of events 1 to `last`, whose connections break after the given numbers of characters. */
function brokenServer(last: number, breaks: number[]) {
  const requested: string[] = []
  const doneSignal = Promise.withResolvers<void>()
  const open = (afterCursor: string): Promise<Response> => {
    requested.push(afterCursor)
    const from = Number(afterCursor)
    let text = ': hello\n\n'
    for (let n = from + 1; n <= last; n++) text += message(n)
    const cut = breaks.shift()
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(new TextEncoder().encode(cut === undefined ? text : text.slice(0, cut)))
        if (cut !== undefined) controller.error(new Error('cut'))
        else if (from === last) doneSignal.resolve()
        else controller.close()
      },
    })
    return Promise.resolve(new Response(body))
  }
  return { open, requested, done: doneSignal.promise }
}

async function follow(
  open: (afterCursor: string, signal: AbortSignal) => Promise<Response>,
  until: Promise<void>,
) {
  const stop = new AbortController()
  const seenIds: string[] = []
  const states: LiveState['state'][] = []
  let forgotten = 0
  const following = followLive({
    after: '0',
    open,
    onEvents: (events) => seenIds.push(...events.map((item) => item.event.id)),
    onState: ({ state }) => states.push(state),
    onForgotten: () => (forgotten += 1),
    signal: stop.signal,
    wait: () => Promise.resolve(),
  })
  await Promise.race([until, following])
  stop.abort()
  return { seen: seenIds, states, forgotten }
}

test('law: events arrive once and in order, wherever the connection breaks', async () => {
  const whole = message(1).length
  for (const breaks of [[], [0], [5, 20], [9 + whole, 9 + whole - 1, 40], [whole, whole, whole, whole]]) {
    const server = brokenServer(6, [...breaks])
    const { seen: seenIds } = await follow(server.open, server.done)
    expect(seenIds).toEqual(['e1', 'e2', 'e3', 'e4', 'e5', 'e6'])
  }
})

test('a silent connection is closed and opened again', async () => {
  let opened = 0
  const twice = Promise.withResolvers<void>()
  const stop = new AbortController()
  const following = followLive({
    after: '0',
    open: () => {
      opened += 1
      if (opened === 2) twice.resolve()
      return Promise.resolve(new Response(new ReadableStream({})))
    },
    onEvents: () => {},
    onState: () => {},
    onForgotten: () => {},
    signal: stop.signal,
    wait: () => Promise.resolve(),
    silenceMsMax: 20,
  })
  await twice.promise
  stop.abort()
  await following
  expect(opened).toBeGreaterThanOrEqual(2)
})

describe('responses that are not a stream', () => {
  const failing = (status: number) => () => Promise.reject(new ApiError(status, 'invalid_query', 'no'))

  test('an unknown position restarts the page', async () => {
    const { forgotten } = await follow(failing(400), new Promise(() => {}))
    expect(forgotten).toBe(1)
  })

  test('an ended sign-in stops the stream', async () => {
    const { forgotten, states } = await follow(failing(401), new Promise(() => {}))
    expect(forgotten).toBe(0)
    expect(states).toEqual(['connecting'])
  })

  test('an overloaded server is retried, and the state shows it', async () => {
    let failuresLeft = 3
    const server = brokenServer(1, [])
    const open = (afterCursor: string): Promise<Response> =>
      failuresLeft-- > 0
        ? Promise.reject(new ApiError(503, 'overloaded', 'busy', { retryAfterS: 1 }))
        : server.open(afterCursor)
    const { seen: seenIds, states } = await follow(open, server.done)
    expect(seenIds).toEqual(['e1'])
    expect(states.slice(0, 2)).toEqual(['connecting', 'lost'])
    expect(states).toContain('live')
  })
})
