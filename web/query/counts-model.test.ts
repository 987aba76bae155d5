/** Counts follow the range and the stream: old ones stay until new ones come, an outage is waited out. */
import { expect, test } from 'bun:test'
import { until } from '../../tests/support/until.ts'
import { ApiError } from '../api/api.ts'
import { type CountsSource, createCounts } from './counts-model.ts'

/** A server whose answers wait until the test gives them, and whose streams the test wakes. */
function fakeServer() {
  const asked: { params: string; answer: (value: string) => void; fail: (error: Error) => void }[] = []
  const streams: { after: string; arrive: () => void; ended: boolean }[] = []
  let position = 0
  const source: CountsSource<string> = {
    newest: () => Promise.resolve({ events: [], nextCursor: null, live: `at-${++position}` }),
    counts: (params) =>
      new Promise((resolve, reject) => {
        asked.push({ params: `${params}`, answer: resolve, fail: reject })
      }),
    live: (_, after, signal) => {
      const body = new ReadableStream<Uint8Array>({
        start(stream) {
          const entry = { after, ended: false, arrive: () => {} }
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
  return { source, asked, streams }
}

test('counts once, follows from the place before counting, and counts again when an event comes', async () => {
  const { source, asked, streams } = fakeServer()
  const model = createCounts(source, ['agent.*'])
  model.start(new URLSearchParams('range=7d'))
  await until(() => asked.length === 1)
  expect([asked[0]!.params, streams.length]).toEqual(['range=7d', 0])
  asked[0]!.answer('first')
  await until(() => streams.length === 1)
  expect([model.data.value, streams[0]!.after, model.stale.value]).toEqual(['first', 'at-1', false])
  const wokenAtMs = performance.now()
  streams[0]!.arrive()
  await until(() => asked.length === 2)
  expect(performance.now() - wokenAtMs).toBeGreaterThan(900)
  expect([streams[0]!.ended, model.data.value]).toEqual([true, 'first'])
  asked[1]!.answer('second')
  await until(() => model.data.value === 'second')
  model.stop()
})

test('a new range dims what is shown, and a late answer for the old one is not shown', async () => {
  const { source, asked } = fakeServer()
  const model = createCounts(source, [])
  model.start(new URLSearchParams('range=7d'))
  await until(() => asked.length === 1)
  asked[0]!.answer('week')
  await until(() => model.data.value === 'week')
  model.start(new URLSearchParams('range=30d'))
  model.start(new URLSearchParams('range=24h'))
  expect([model.stale.value, model.data.value]).toEqual([true, 'week'])
  await until(() => asked.length >= 2 && asked.at(-1)!.params === 'range=24h')
  asked.at(-1)!.answer('day')
  await until(() => model.data.value === 'day')
  for (const late of asked.slice(1, -1)) late.answer('month')
  await Bun.sleep(20)
  expect([model.data.value, model.stale.value]).toEqual(['day', false])
  model.stop()
})

test('remembered counts of a range are shown at once, dimmed, until they are counted anew', async () => {
  const { source, asked } = fakeServer()
  const kept = new Map([['range=7d', 'week as it was']])
  const recall = (params: URLSearchParams) => kept.get(`${params}`) ?? null
  const remember = (params: URLSearchParams, counted: string) => void kept.set(`${params}`, counted)
  const model = createCounts({ ...source, recall, remember }, [])
  model.start(new URLSearchParams('range=7d'))
  expect([model.data.value, model.stale.value]).toEqual(['week as it was', true])
  await until(() => asked.length === 1)
  asked[0]!.answer('week')
  await until(() => model.data.value === 'week')
  expect([model.stale.value, kept.get('range=7d')]).toEqual([false, 'week'])
  model.stop()
})

test('the same counts a minute later are no other counts: nothing is drawn anew', async () => {
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
  const { newest, live } = fakeServer().source
  for (const answer of answers) {
    const recall = () => shown.at(-1) ?? null
    const model = createCounts<Counted>({ newest, live, counts: async () => answer, recall }, [])
    model.start(new URLSearchParams('range=7d'))
    await until(() => model.data.value !== null && !model.stale.value)
    shown.push(model.data.value)
    model.stop()
  }
  // The third has another number, the fourth a clock that has gone on visibly.
  expect(shown.map((one) => answers.indexOf(one as Counted))).toEqual([0, 0, 2, 3])
})

test('a refused range is told and not asked again; an outage keeps the numbers and is asked again', async () => {
  const { source, asked } = fakeServer()
  const model = createCounts(source, [])
  model.start(new URLSearchParams('range=never'))
  await until(() => asked.length === 1)
  asked[0]!.fail(new ApiError(400, 'invalid_query', 'range must be one of'))
  await until(() => model.error.value !== null)
  expect([model.error.value?.code, model.connection.value.state]).toEqual(['invalid_query', 'lost'])
  model.start(new URLSearchParams('range=7d'))
  await until(() => asked.length === 2)
  asked[1]!.fail(new ApiError(503, 'overloaded', 'busy'))
  await until(() => model.error.value?.code === 'overloaded')
  await until(() => asked.length === 3)
  asked[2]!.answer('back')
  await until(() => model.data.value === 'back')
  expect(model.error.value).toBeNull()
  model.stop()
}, 20_000)
