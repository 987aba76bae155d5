/** Replay: an endpoint gets stored events again, from a position on or within a range. */
import { afterAll, beforeAll, beforeEach, expect, setDefaultTimeout, test } from 'bun:test'
import fc from 'fast-check'
import { startReceiver, type Receiver } from '../support/receiver.ts'
import { webhookServer, type WebhookServer } from '../support/webhook-server.ts'
import { runs } from '../support/runs.ts'

// Each test waits for runs and attempts, for longer on a busy machine.
setDefaultTimeout(90_000)

interface Made {
  endpoint: { id: string; position: number; replayUntil: number | null }
}

interface Batch {
  data: { sequence: number; events: { id: string }[] }
}

const base = '/v1/webhooks/endpoints'
let receiver: Receiver
let hook: WebhookServer
let path: string // unique per test
let tests = 0
beforeAll(async () => {
  receiver = await startReceiver()
  hook = await webhookServer()
})
afterAll(async () => {
  await hook[Symbol.asyncDispose]()
  await receiver[Symbol.asyncDispose]()
})
beforeEach(() => {
  path = `/ok/replay-${++tests}`
})

const make = (overrides: Record<string, unknown> = {}) =>
  hook.api<Made>('POST', base, { url: receiver.url + path, ...overrides }, 201)
const endpointOf = async (id: string) => (await hook.api<Made>('GET', `${base}/${id}`)).endpoint
const replay = async (id: string, body: unknown) =>
  (await hook.api<Made>('POST', `${base}/${id}/replay`, body, 202)).endpoint
const remove = (id: string) => hook.api('DELETE', `${base}/${id}`)
const batches = () =>
  receiver
    .received(path)
    .map(({ body }) => (JSON.parse(body) as Batch).data)
    .map(({ sequence, events }) => [sequence, events.map(({ id }) => id).join(' ')])

test('from a position or a time of arrival: later events are delivered again, with new numbers', async () => {
  const { endpoint } = await make()
  const start = endpoint.position
  await hook.ingest([{ id: 'r_1' }])
  await hook.run()
  await Bun.sleep(5)
  const since = new Date(hook.server.clock.now()).toISOString()
  await hook.ingest([{ id: 'r_2' }])
  await hook.run()
  await replay(endpoint.id, { from: start })
  await hook.run()
  await replay(endpoint.id, { from: since })
  await hook.run()
  expect(batches()).toEqual([
    [1, 'r_1'],
    [2, 'r_2'],
    [3, 'r_1 r_2'],
    [4, 'r_2'],
  ])
  await remove(endpoint.id)
})

test('a range: its events are sent again, in batches of their own, then new ones', async () => {
  const { endpoint } = await make({ batchSize: 3 })
  const start = endpoint.position
  const times: string[] = []
  for (const n of [1, 2, 3, 4, 5, 6]) {
    await Bun.sleep(3)
    times.push(new Date(hook.server.clock.now()).toISOString())
    await hook.ingest([{ id: `a_${n}` }])
  }
  await hook.run()
  expect(await replay(endpoint.id, { from: start + 1, until: start + 5 })).toMatchObject({
    position: start + 1,
    replayUntil: start + 5,
    resumePosition: start + 6,
  })
  await hook.ingest([{ id: 'a_7' }])
  await hook.run()
  expect(await endpointOf(endpoint.id)).toMatchObject({ position: start + 7, replayUntil: null })
  await replay(endpoint.id, { from: times[1], until: times[3] }) // from one time, before the other
  await hook.run()
  const emptyRange = { from: times[1], until: times[1] }
  expect(await replay(endpoint.id, emptyRange)).toMatchObject({ position: start + 7, replayUntil: null })
  await hook.run()
  expect(batches()).toEqual([
    [1, 'a_1 a_2 a_3'],
    [2, 'a_4 a_5 a_6'],
    [3, 'a_2 a_3 a_4'],
    [4, 'a_5'],
    [5, 'a_7'],
    [6, 'a_2 a_3'],
  ])
  expect(await endpointOf(endpoint.id)).toMatchObject({ position: start + 7, sequence: 6, missed: 0 })
  await remove(endpoint.id)
})

test('a range with expired events counts those, and nothing beyond its end', async () => {
  const { endpoint } = await make()
  const start = endpoint.position
  await hook.ingest(Array.from({ length: 4 }, (_, n) => ({ id: `q_gone_${n}`, siteId: 'lost' })))
  await hook.ingest([{ id: 'q_kept' }])
  await hook.run()
  const { store, org } = hook.server
  const auditFields = { orgId: org.id, actor: 'cli', action: 'demo.removed', target: 'lost', metadata: {} }
  const audit = { id: 'aud_lost', ...auditFields, occurredAtMs: 1 }
  await store.events.removeSite({ orgId: org.id, siteId: 'lost', audit })
  await replay(endpoint.id, { from: start, until: start + 3 })
  await hook.run()
  expect(await endpointOf(endpoint.id)).toMatchObject({ position: start + 5, missed: 3, sequence: 1 })
  await remove(endpoint.id)
})

test.each([
  [{}, 'from'],
  [{ until: 5 }, 'from'],
  [{ from: -1 }, 'from'],
  [{ from: 1e12 }, 'from'],
  [{ from: 0.5 }, 'from'],
  [{ from: 'yesterday' }, 'from'],
  [{ from: 3, until: 2 }, 'until'],
  [{ from: 0, until: true }, 'until'],
  [{ from: 0, until: '2026-13-01T00:00:00Z' }, 'until'],
])('%j is refused at %s', async (body, issuePath) => {
  const { endpoint } = await make()
  const answer = await hook.server.call(`${base}/${endpoint.id}/replay`, { key: hook.key, body })
  const { issues } = (await answer.json()) as { issues: { path: string }[] }
  expect([answer.status, issues[0]?.path]).toEqual([400, issuePath])
  await remove(endpoint.id)
})

type Step =
  | { do: 'ingest'; passes: boolean[] } // whether the endpoint's filter lets each event pass
  | { do: 'replay'; from: number; until: number | null } // fractions of the log
  | { do: 'pause' | 'resume' | 'run' | 'restart' }

const share = fc.nat(10).map((tenths) => tenths / 10)
const passList = fc.array(fc.boolean(), { minLength: 1, maxLength: 6 })
const ingest = fc.record({ do: fc.constant('ingest' as const), passes: passList })
const replays = fc.record({ do: fc.constant('replay' as const), from: share, until: fc.option(share) })
const act = fc.record({
  do: fc.constantFrom(
    'pause' as const,
    'resume' as const,
    'run' as const,
    'run' as const,
    'restart' as const,
  ),
})
/** Sends events before the walk begins, so that there is something to replay. */
const walk = fc
  .array(fc.oneof(ingest, replays, act, act), { minLength: 4, maxLength: 14, size: 'max' })
  .map((steps): Step[] => [
    { do: 'ingest', passes: [true, false, true, true, true, false, true] },
    { do: 'run' },
    ...steps,
    { do: 'resume' },
    { do: 'run' },
  ])

/** Model of an endpoint: a position in the log, and maybe a range to send again first. */
interface EndpointModel {
  at: number
  range: { until: number; resume: number } | null
  isPaused: boolean
  received: string[]
}

function deliver(model: EndpointModel, log: { id: string; passes: boolean }[]): void {
  if (model.isPaused) return
  const go = (to: number): void => {
    model.received.push(
      ...log
        .slice(model.at, to)
        .filter(({ passes }) => passes)
        .map(({ id }) => id),
    )
    model.at = to
  }
  if (model.range !== null) {
    go(model.range.until)
    model.at = model.range.resume
    model.range = null
  }
  go(log.length)
}

test('after any replays, pauses and restarts the endpoint has received the log, numbered without a gap', async () => {
  let walks = 0
  const law = fc.asyncProperty(walk, fc.integer({ min: 1, max: 4 }), async (steps, batchSize) => {
    path = `/ok/law-${tests}-${++walks}`
    const { endpoint } = await make({ batchSize, sites: ['passing'] })
    const { id, position: start } = endpoint
    const log: { id: string; passes: boolean }[] = []
    const model: EndpointModel = { at: 0, range: null, isPaused: false, received: [] }
    for (const step of steps) {
      if (step.do === 'ingest') {
        const events = step.passes.map((passes, n) => ({ id: `l${walks}_${log.length + n}`, passes }))
        await hook.ingest(
          events.map(({ id: eventId, passes }) => ({ id: eventId, siteId: passes ? 'passing' : 'other' })),
        )
        log.push(...events)
      } else if (step.do === 'replay') {
        const reached = model.range?.resume ?? model.at
        const from = Math.round(step.from * reached)
        const until = step.until === null ? null : from + Math.round(step.until * (log.length - from))
        await replay(id, { from: start + from, until: until === null ? null : start + until })
        if (until === from) continue
        model.range = until !== null && until < reached ? { until, resume: reached } : null
        model.at = from
      } else if (step.do === 'restart') await hook.restart()
      else if (step.do === 'run') {
        await hook.run()
        deliver(model, log)
      } else {
        await hook.api('POST', `${base}/${id}/${step.do}`)
        model.isPaused = step.do === 'pause'
      }
    }
    // Batches of an endpoint may arrive in any order; their numbers say which.
    const got = batches().toSorted(([a], [b]) => Number(a) - Number(b))
    expect(got.map(([sequence]) => sequence)).toEqual(got.map((_, index) => index + 1))
    expect(got.map(([, ids]) => ids).join(' ')).toBe(model.received.join(' '))
    await remove(id)
  })
  await fc.assert(law, { numRuns: runs(25) })
}, 90_000)
