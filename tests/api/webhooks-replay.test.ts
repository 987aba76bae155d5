/** Going back in the event log: an endpoint gets what it had before once more, from a place on or in a range. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { startReceiver, type Receiver } from '../support/receiver.ts'
import { webhookServer, type WebhookServer } from '../support/webhook-server.ts'

interface Made {
  endpoint: { id: string; position: number; replayUntil: number | null }
}

interface Batch {
  data: { sequence: number; events: { id: string }[] }
}

const base = '/v1/webhooks/endpoints'
let receiver: Receiver
let hook: WebhookServer
let path: string // of this test alone
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

const make = (more: Record<string, unknown> = {}) =>
  hook.api<Made>('POST', base, { url: receiver.url + path, ...more }, 201)
const look = async (id: string) => (await hook.api<Made>('GET', `${base}/${id}`)).endpoint
const replay = async (id: string, body: unknown) =>
  (await hook.api<Made>('POST', `${base}/${id}/replay`, body, 202)).endpoint
const remove = (id: string) => hook.api('DELETE', `${base}/${id}`)
const batches = () =>
  receiver
    .received(path)
    .map(({ body }) => (JSON.parse(body) as Batch).data)
    .map(({ sequence, events }) => [sequence, events.map(({ id }) => id).join(' ')])

test('to a position or a time of arrival: what follows is delivered again, under new numbers', async () => {
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

test('a range: what lies in it goes out again, in its own batches, then what is new', async () => {
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
  expect(await look(endpoint.id)).toMatchObject({ position: start + 7, replayUntil: null })
  await replay(endpoint.id, { from: times[1], until: times[3] }) // from the one time on, before the other
  await hook.run()
  const nothing = { from: times[1], until: times[1] }
  expect(await replay(endpoint.id, nothing)).toMatchObject({ position: start + 7, replayUntil: null })
  await hook.run()
  expect(batches()).toEqual([
    [1, 'a_1 a_2 a_3'],
    [2, 'a_4 a_5 a_6'],
    [3, 'a_2 a_3 a_4'],
    [4, 'a_5'],
    [5, 'a_7'],
    [6, 'a_2 a_3'],
  ])
  expect(await look(endpoint.id)).toMatchObject({ position: start + 7, sequence: 6, missed: 0 })
  await remove(endpoint.id)
})

test('a range that retention has passed counts what is gone, and nothing behind its end', async () => {
  const { endpoint } = await make()
  const start = endpoint.position
  await hook.ingest(Array.from({ length: 4 }, (_, n) => ({ id: `q_gone_${n}`, siteId: 'lost' })))
  await hook.ingest([{ id: 'q_kept' }])
  await hook.run()
  const { store, org } = hook.server
  const about = { orgId: org.id, actor: 'cli', action: 'demo.removed', target: 'lost', metadata: {} }
  const audit = { id: 'aud_lost', ...about, occurredAtMs: 1 }
  await store.events.removeSite({ orgId: org.id, siteId: 'lost', audit })
  await replay(endpoint.id, { from: start, until: start + 3 })
  await hook.run()
  expect(await look(endpoint.id)).toMatchObject({ position: start + 5, missed: 3, sequence: 1 })
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
