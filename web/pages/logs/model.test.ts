/** The Logs model against a small server: paused, scrolled, flooded, trimmed and disconnected. */
import { afterEach, expect, test } from 'bun:test'
import { until } from '../../../tests/support/until.ts'
import { ApiError, type EventFilter, type ReceivedEvent } from '../../api/api.ts'
import { createLogsModel, type LogsModel, type LogsSource } from './model.ts'

const firstMs = Date.parse('2026-06-23T12:00:00Z')

function received(n: number): ReceivedEvent {
  const occurredAt = new Date(firstMs + n * 1_000).toISOString()
  return {
    receivedAt: occurredAt,
    event: {
      id: `e${n}`,
      siteId: 's',
      sessionId: 'x',
      occurredAt,
      type: 'a.b',
      outcome: n % 2 ? 'success' : 'odd',
    },
  }
}

/** Holds events 1 to `size`; the cursor is the number of the next one, the live position the newest number. */
function smallServer(size: number) {
  const streams = new Set<ReadableStreamDefaultController<Uint8Array>>()
  const calls: string[] = []
  let newest = size
  const send = (...numbers: number[]): void => {
    newest = Math.max(newest, ...numbers)
    const data = JSON.stringify({ events: numbers.map(received) })
    for (const stream of streams)
      stream.enqueue(new TextEncoder().encode(`event: events\nid: ${newest}\ndata: ${data}\n\n`))
  }
  const source: LogsSource = {
    async events(_filter: EventFilter, page) {
      if (size > 5_000 && page.cursor === '300') await Bun.sleep(400) // the slow page of the test below
      calls.push(JSON.stringify(page))
      let position = page.cursor ? Number(page.cursor) : newest
      if (page.until) position = Math.min(position, Math.ceil((Date.parse(page.until) - firstMs) / 1_000) - 1)
      const events: ReceivedEvent[] = []
      while (events.length < page.limit && position > 0) events.push(received(position--))
      return { events, nextCursor: position > 0 ? `${position}` : null, live: `${newest}` }
    },
    live(_filter, _after, signal) {
      const body = new ReadableStream<Uint8Array>({
        start(controller) {
          streams.add(controller)
          signal.addEventListener('abort', () => streams.delete(controller))
        },
      })
      return Promise.resolve(new Response(body))
    },
  }
  return { source, send, calls, streams }
}

let model: LogsModel | null = null
afterEach(() => model?.stop())

async function started(server: ReturnType<typeof smallServer>): Promise<LogsModel> {
  model = createLogsModel(server.source)
  model.start({ types: [], outcomes: [] })
  await until(() => server.streams.size > 0)
  return model
}

const ids = (logs: LogsModel): string[] => logs.entries.value.map((entry) => entry.id)

test('shows the newest page, new events on top, and history to its end on demand', async () => {
  const server = smallServer(230)
  const logs = await started(server)
  expect(ids(logs)).toHaveLength(100)
  server.send(231, 232)
  await until(() => ids(logs)[0] === 'e232')
  await logs.loadOlder()
  await logs.loadOlder()
  expect(logs.hasOlder.value).toBe(false)
  expect(ids(logs)).toEqual(Array.from({ length: 232 }, (_, i) => `e${232 - i}`))
  expect([...logs.outcomesSeen.value].sort()).toEqual(['odd', 'success'])
})

test('while paused, rows stay and new events are counted; resuming shows them', async () => {
  const server = smallServer(3)
  const logs = await started(server)
  logs.pause(true)
  server.send(4)
  server.send(5, 6)
  await until(() => logs.waiting.value === 3)
  await Bun.sleep(150)
  expect(ids(logs)).toEqual(['e3', 'e2', 'e1'])
  logs.pause(false)
  expect(ids(logs)).toEqual(['e6', 'e5', 'e4', 'e3', 'e2', 'e1'])
  expect(logs.waiting.value).toBe(0)
})

test('rows move only when the list is neither paused nor scrolled away', async () => {
  const server = smallServer(1)
  const logs = await started(server)
  logs.hold(true)
  logs.pause(true)
  server.send(2)
  await until(() => logs.waiting.value === 1)
  logs.hold(false)
  expect(ids(logs)).toEqual(['e1'])
  logs.pause(false)
  expect(ids(logs)).toEqual(['e2', 'e1'])
})

test('a long stream keeps the newest 5,000 rows; removed ones load again without gap or duplicate', async () => {
  const server = smallServer(0)
  const logs = await started(server)
  for (let n = 1; n <= 5_300; n += 100) {
    server.send(...Array.from({ length: 100 }, (_, i) => n + i))
    if (n === 3_001) await until(() => ids(logs)[0] === 'e3100')
  }
  await until(() => ids(logs)[0] === 'e5300')
  expect(ids(logs)).toHaveLength(5_000)
  expect(logs.hasOlder.value).toBe(true)
  while (logs.hasOlder.value) await logs.loadOlder()
  expect(ids(logs)).toEqual(Array.from({ length: 5_300 }, (_, i) => `e${5_300 - i}`))
})

test('rows removed while history loads leave no gap', async () => {
  const server = smallServer(5_100)
  const logs = await started(server)
  for (let n = 0; n < 48; n++) await logs.loadOlder()
  const older = logs.loadOlder()
  server.send(...Array.from({ length: 300 }, (_, i) => 5_101 + i))
  await until(() => ids(logs)[0] === 'e5400')
  await older
  while (logs.hasOlder.value) await logs.loadOlder()
  expect(ids(logs)).toEqual(Array.from({ length: 5_400 }, (_, i) => `e${5_400 - i}`))
})

test('resuming after more events than the table holds starts from the newest page', async () => {
  const server = smallServer(2)
  const logs = await started(server)
  logs.pause(true)
  for (let n = 3; n <= 6_002; n += 500) server.send(...Array.from({ length: 500 }, (_, i) => n + i))
  await until(() => logs.waiting.value === 6_000)
  logs.pause(false)
  await until(() => ids(logs)[0] === 'e6002')
  expect(ids(logs)).toHaveLength(100)
  expect(logs.hasOlder.value).toBe(true)
})

test('a failed first page is reported and retried on demand', async () => {
  const server = smallServer(1)
  let failing = true
  const source: LogsSource = {
    ...server.source,
    events: (...call) =>
      failing ? Promise.reject(new ApiError(503, 'overloaded', 'Busy.')) : server.source.events(...call),
  }
  model = createLogsModel(source)
  model.start({ types: [], outcomes: [] })
  await until(() => model?.error.value?.message === 'Busy.')
  failing = false
  model.retry()
  await until(() => model?.error.value === null && model.entries.value.length === 1)
})

test('a first page that failed because the server was away is loaded without anybody asking', async () => {
  const server = smallServer(1)
  let failing = true
  const source: LogsSource = {
    ...server.source,
    events: (...call) =>
      failing
        ? Promise.reject(new ApiError(503, 'unavailable', 'The database did not answer.'))
        : server.source.events(...call),
  }
  model = createLogsModel(source)
  model.start({ types: [], outcomes: [] })
  await until(() => model?.error.value?.code === 'unavailable')
  failing = false
  await until(() => model?.error.value === null && model.entries.value.length === 1, 10_000)
}, 15_000)

test('a changed filter discards the events of the previous one', async () => {
  const server = smallServer(2)
  const logs = await started(server)
  server.send(3)
  await Bun.sleep(5)
  logs.start({ types: ['a.*'], outcomes: [] })
  expect([logs.stale.value, logs.hasOlder.value]).toEqual([true, false])
  await until(() => !logs.stale.value)
  expect(ids(logs)).toEqual(['e3', 'e2', 'e1'])
})
