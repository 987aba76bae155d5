/** GET /api/live over HTTP: events, their order, a break of the connection, the end of a session. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { event, eventsInOrder } from '../support/events.ts'
import { testServer, type TestServer } from '../support/server.ts'

let server: TestServer
let ingest: string
let cookie: string

beforeAll(async () => {
  server = await testServer()
  ingest = await server.key('ingest')
  cookie = await server.signIn('viewer')
})
afterAll(() => server[Symbol.asyncDispose]())

const send = async (events: unknown[]) => {
  expect((await server.call('/v1/sdk/events', { key: ingest, body: { events } })).status).toBe(202)
}

/** Opens the stream and reads the ids of `count` events; returns them with the last position. */
async function listen(
  query: string,
  count: number,
  headers: Record<string, string> = {},
  callback?: () => Promise<void>,
) {
  const end = new AbortController()
  const response = await fetch(`${server.url}/api/live${query}`, {
    headers: { cookie, ...headers },
    signal: end.signal,
  })
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream'])
  const ids: string[] = []
  let position = ''
  let buffer = ''
  const decoder = new TextDecoder()
  for await (const chunk of response.body!) {
    buffer += decoder.decode(chunk, { stream: true })
    const messages = buffer.split('\n\n')
    buffer = messages.pop()!
    for (const message of messages) {
      position = /^id: (.+)$/m.exec(message)?.[1] ?? position
      const data = /^data: (.+)$/m.exec(message)?.[1]
      if (/^event: ready$/m.test(message)) await callback?.()
      if (!/^event: events$/m.test(message)) continue
      const { events } = JSON.parse(data!) as { events: { receivedAt: string; event: { id: string } }[] }
      ids.push(...events.map((liveEvent) => liveEvent.event.id))
    }
    if (ids.length >= count) break
  }
  end.abort()
  return { ids, position }
}

test('events committed after the page was read arrive once; after a break the stream continues at the last position', async () => {
  await send(eventsInOrder(5, 'before_'))
  const page = (await (await server.call('/api/events', { headers: { cookie } })).json()) as { live: string }
  const first = await listen(`?after=${page.live}`, 300, {}, () => send(eventsInOrder(300, 'live_')))
  expect(first.ids).toEqual(eventsInOrder(300, 'live_').map((sentEvent) => sentEvent.id))
  await send(eventsInOrder(3, 'gap_'))
  const again = await listen(`?after=${page.live}`, 3, { 'last-event-id': first.position })
  expect(again.ids).toEqual(['gap_1', 'gap_2', 'gap_3'])
})

test('filters apply, and events they exclude do not arrive after a break', async () => {
  const mixed = [event('f1', { type: 'tool.executed' }), event('f2', { outcome: 'success' }), event('f3')]
  const { ids } = await listen('?type=authz.*&outcome=blocked', 1, {}, () => send(mixed))
  expect(ids).toEqual(['f3'])
})

test('an event is on the stream within a second of its request', async () => {
  let postedMs = 0
  const since = () => performance.now() - postedMs
  let second = Promise.resolve(0)
  await listen('', 1, {}, async () => {
    postedMs = performance.now()
    second = Bun.sleep(1_000).then(since)
    await send([event('soon')])
  })
  const tookMs = since()
  expect(tookMs).toBeLessThan(await second) // longer than a second only if the machine stood still
})

test('requires a session, a valid position, known parameters', async () => {
  expect((await server.call('/api/live')).status).toBe(401)
  for (const query of ['?after=x', '?nope=1', '?type=Not']) {
    expect((await server.call(`/api/live${query}`, { headers: { cookie } })).status).toBe(400)
  }
})

test('the stream ends soon after its session', async () => {
  const response = await fetch(`${server.url}/api/live`, { headers: { cookie } })
  const reader = response.body!.getReader()
  await reader.read()
  expect((await server.call('/api/sign-out', { method: 'POST', headers: { cookie } })).status).toBe(204)
  const deadlineMs = performance.now() + 15_000
  let ended = false
  for (let i = 0; !ended && performance.now() < deadlineMs; i++, await Bun.sleep(100)) {
    await send([event(`end_${i}`)])
    ended = await Promise.race([reader.read().then(({ done }) => done), Bun.sleep(500).then(() => false)])
  }
  expect(ended).toBe(true)
}, 90_000)
