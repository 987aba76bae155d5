/** Queries: cached by key and reader, refreshed by live events, invalidations and running work. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import {
  createInvalidation,
  createQuery,
  prefetchQuery,
  readCache,
  refreshOnEvents,
  refreshOnInvalidate,
  refreshPushed,
  refreshWhile,
  runQuery,
  writeCache,
  type LiveSource,
  type Outcome,
  type Pushed,
  type Query,
  type QueryModel,
} from './query.ts'
import { session } from '../app/session.ts'
import { until } from '../../tests/support/until.ts'
import { ApiError, type Session } from '../api/api.ts'

afterEach(() => {
  session.value = null
})

function reader(account: string, org: string): Session {
  return {
    account: { id: account, email: 'ada@example.com', operator: false },
    org: { id: org, slug: org, name: org },
    role: 'owner',
    lacksSecondFactor: false,
    version: '1',
    ingestUrl: '',
    insecure: false,
  }
}

test('a cached response is read only under its key and only by the same person', () => {
  session.value = reader('ada', 'shop')
  writeCache('detect?range=7d', 'the week')
  expect([readCache<string>('detect?range=7d'), readCache<string>('detect?range=24h')]).toEqual([
    'the week',
    null,
  ])
  session.value = reader('bob', 'shop')
  expect(readCache<string>('detect?range=7d')).toBeNull()
  session.value = reader('ada', 'blog')
  expect(readCache<string>('detect?range=7d')).toBeNull()
  session.value = reader('ada', 'shop')
  expect(readCache<string>('detect?range=7d')).toBe('the week')
})

test('a prefetch runs once and is cached only for the person who started it', async () => {
  session.value = reader('ada', 'shop')
  const requests: string[] = []
  const week = (answer: Promise<string>) => ({
    key: 'auth?range=7d',
    fetch: () => {
      requests.push('auth?range=7d')
      return answer
    },
  })
  expect(await prefetchQuery(week(Promise.resolve('the week')))).toBe('the week')
  expect([await prefetchQuery(week(Promise.resolve('another'))), requests.length]).toEqual(['the week', 1])
  session.value = reader('bob', 'shop')
  const late = Promise.withResolvers<string>()
  const asking = prefetchQuery(week(late.promise))
  session.value = reader('eve', 'blog')
  late.resolve('the week of bob')
  await asking
  expect(readCache<string>('auth?range=7d')).toBeNull()
})

test('the oldest responses leave the cache first', () => {
  session.value = reader('ada', 'shop')
  writeCache('first', 1)
  for (let n = 0; n < 63; n++) writeCache(`further ${n}`, n)
  expect(readCache<number>('first')).toBe(1)
  writeCache('one more', 1)
  expect([readCache<number>('first'), readCache<number>('further 0'), readCache<number>('one more')]).toEqual(
    [null, 0, 1],
  )
})

let readers = 0

/** Each test has its own reader, so its cache is empty. */
beforeEach(() => {
  readers += 1
  session.value = { account: { id: `acc_${readers}` }, org: { id: 'org_1' } } as Session
})

const every = { types: [], outcomes: [] }

/** A server that answers and sends events when the test says so. */
function fakeServer() {
  const requests: { key: string; answer: (value: string) => void; fail: (error: Error) => void }[] = []
  const streams: { after: string; arrive: () => void; ended: boolean }[] = []
  let position = 0
  const query = (key: string): Query<string> => ({
    key,
    fetch: () =>
      new Promise((resolve, reject) => {
        requests.push({ key, answer: resolve, fail: reject })
      }),
  })
  const source: LiveSource = {
    newest: () => Promise.resolve({ events: [], nextCursor: null, live: `at-${++position}` }),
    live: (_, afterCursor, signal) => {
      const body = new ReadableStream<Uint8Array>({
        start(stream) {
          const entry = { after: afterCursor, ended: false, arrive: () => {} }
          const text = 'event: events\ndata: {"events":[]}\nid: next\n\n'
          entry.arrive = () => stream.enqueue(new TextEncoder().encode(text))
          signal.addEventListener('abort', () => {
            entry.ended = true
            stream.error(signal.reason)
          })
          streams.push(entry)
        },
      })
      return Promise.resolve(new Response(body))
    },
  }
  return { source, query, requests, streams }
}

function liveModel<T>(source: LiveSource) {
  const policy = refreshOnEvents<T>(source, every)
  const model: QueryModel<T> = createQuery(policy, { keepPrevious: true })
  return { model, connection: policy.connection }
}

test('fetches once, follows from the position before the fetch, and fetches again when an event arrives', async () => {
  const { source, query, requests, streams } = fakeServer()
  const { model } = liveModel<string>(source)
  model.start(query('range=7d'))
  await until(() => requests.length === 1)
  expect([requests[0]!.key, streams.length]).toEqual(['range=7d', 0])
  const answeredAtMs = performance.now()
  requests[0]!.answer('first')
  await until(() => streams.length === 1)
  expect([model.data.value, streams[0]!.after, model.stale.value]).toEqual(['first', 'at-1', false])
  streams[0]!.arrive()
  await until(() => requests.length === 2)
  expect(performance.now() - answeredAtMs).toBeGreaterThan(995) // timers count whole milliseconds
  expect([streams[0]!.ended, model.data.value]).toEqual([true, 'first'])
  requests[1]!.answer('second')
  await until(() => model.data.value === 'second')
  model.stop()
})

test('a new key marks old data as stale, and a late response of the old key is not shown', async () => {
  const { source, query, requests } = fakeServer()
  const { model } = liveModel<string>(source)
  model.start(query('range=7d'))
  await until(() => requests.length === 1)
  requests[0]!.answer('week')
  await until(() => model.data.value === 'week')
  model.start(query('range=30d'))
  model.start(query('range=24h'))
  expect([model.stale.value, model.data.value]).toEqual([true, 'week'])
  await until(() => requests.length >= 2 && requests.at(-1)!.key === 'range=24h')
  requests.at(-1)!.answer('day')
  await until(() => model.data.value === 'day')
  for (const late of requests.slice(1, -1)) late.answer('month')
  await Bun.sleep(20)
  expect([model.data.value, model.stale.value]).toEqual(['day', false])
  model.stop()
})

test('cached data is shown at once, marked stale until it is fetched again', async () => {
  const { source, query, requests } = fakeServer()
  writeCache('range=7d', 'cached week')
  const { model } = liveModel<string>(source)
  model.start(query('range=7d'))
  expect([model.data.value, model.stale.value]).toEqual(['cached week', true])
  await until(() => requests.length === 1)
  requests[0]!.answer('week')
  await until(() => model.data.value === 'week')
  expect(model.stale.value).toBe(false)
  model.stop()
})

test('equal data keeps its identity when only the clock differs, so nothing renders again', async () => {
  interface Counted {
    now: string
    count: number
  }
  const answers: Counted[] = [
    { now: '2026-11-21T10:01:00.000Z', count: 5 },
    { now: '2026-11-21T10:02:00.000Z', count: 5 },
    { now: '2026-11-21T10:03:00.000Z', count: 6 },
    { now: '2026-11-21T10:13:00.000Z', count: 6 },
  ]
  const shown: (Counted | null)[] = []
  const { source } = fakeServer()
  for (const answer of answers) {
    const { model } = liveModel<Counted>(source)
    model.start({ key: 'range=7d', fetch: () => Promise.resolve(answer) })
    await until(() => model.data.value !== null && !model.stale.value)
    shown.push(model.data.value)
    model.stop()
  }
  // The third has another number; the clock of the fourth is ten minutes later.
  expect(shown.map((answer) => answers.indexOf(answer as Counted))).toEqual([0, 0, 2, 3])
})

test('a rejected query is not fetched again; an outage keeps the data and is retried', async () => {
  const { source, query, requests } = fakeServer()
  const { model, connection } = liveModel<string>(source)
  model.start(query('range=never'))
  await until(() => requests.length === 1)
  requests[0]!.fail(new ApiError(400, 'invalid_query', 'range must be one of'))
  await until(() => model.error.value !== null)
  expect([model.error.value?.code, connection.value.state]).toEqual(['invalid_query', 'lost'])
  model.start(query('range=7d'))
  await until(() => requests.length === 2)
  requests[1]!.fail(new ApiError(503, 'overloaded', 'busy'))
  await until(() => model.error.value?.code === 'overloaded')
  await until(() => requests.length === 3)
  requests[2]!.answer('back')
  await until(() => model.data.value === 'back')
  expect(model.error.value).toBeNull()
  model.stop()
}, 20_000)

test('a stopped query does not consume the invalidation of the next one', async () => {
  const invalidation = createInvalidation()
  const old = new AbortController()
  const next = new AbortController()
  const published: (string | null)[] = []
  const answers = { old: 0, next: 0 }
  const query = (name: 'old' | 'next') => ({ key: name, fetch: async () => `${name} ${++answers[name]}` })
  const publish = ({ data }: Outcome<string>): void => void published.push(data)
  const restMs = 40
  void runQuery(query('old'), refreshOnInvalidate<string>(invalidation, restMs), publish, old.signal)
  await until(() => published.length === 1)
  // Stopped during its rest, which would end after the next query waits already.
  old.abort()
  void runQuery(query('next'), refreshOnInvalidate<string>(invalidation, 0), publish, next.signal)
  await Bun.sleep(2 * restMs)
  invalidation.invalidate()
  await until(() => published.length === 3)
  expect(published).toEqual(['old 1', 'next 1', 'next 2'])
  next.abort()
})

test('an empty pushed list is polled; a filled one is fetched again only when it is no longer fresh', async () => {
  const invalidation = createInvalidation()
  const stop = new AbortController()
  const lists: string[][] = [[], ['a tool'], ['a tool', 'another']]
  const fetchedMs: number[] = []
  const query: Query<Pushed<string>> = {
    key: 'tools',
    fetch: async () => {
      fetchedMs.push(performance.now())
      return { list: lists[Math.min(fetchedMs.length - 1, 2)] ?? [], hasMore: false }
    },
  }
  const freshMs = 100
  void runQuery(query, refreshPushed<string>(invalidation, freshMs), () => {}, stop.signal)
  await until(() => fetchedMs.length === 2)
  invalidation.invalidate()
  await until(() => fetchedMs.length === 3)
  // Timers may end a millisecond early.
  expect(fetchedMs[2]! - fetchedMs[1]!).toBeGreaterThanOrEqual(freshMs - 1)
  await Bun.sleep(1.5 * freshMs)
  expect(fetchedMs.length).toBe(3)
  invalidation.invalidate()
  await until(() => fetchedMs.length === 4)
  stop.abort()
}, 20_000)

test('work is polled while it runs, also after a failed fetch, and no longer when it has ended', async () => {
  let fetched = 0
  const query: Query<{ runs: boolean }> = {
    key: 'backups',
    fetch: async () => {
      fetched += 1
      if (fetched === 2) throw new ApiError(0, 'unreachable', 'no answer')
      return { runs: fetched < 4 }
    },
  }
  const outcomes: (boolean | null)[] = []
  const policy = refreshWhile<{ runs: boolean }>(({ runs }) => runs, 10)
  await runQuery(query, policy, ({ data }) => outcomes.push(data?.runs ?? null), new AbortController().signal)
  expect(outcomes).toEqual([true, null, true, false])
})

test('the answer of a change is shown and cached at once, and wins over a fetch that began before it', async () => {
  const { query, requests } = fakeServer()
  const model = createQuery<string>(
    refreshWhile((data) => data === 'running', 10),
    { keepPrevious: true },
  )
  model.start(query('backups'))
  await until(() => requests.length === 1)
  expect(model.busy.value).toBe(true)
  model.replace('running')
  await until(() => model.data.value === 'running')
  expect([readCache<string>('backups'), model.busy.value]).toEqual(['running', false])
  requests[0]?.answer('older')
  await until(() => requests.length === 2)
  expect(model.data.value).toBe('running')
  requests[1]?.answer('ended')
  await until(() => model.data.value === 'ended')
  await Bun.sleep(50)
  expect(requests.length).toBe(2)
  model.stop()
})
