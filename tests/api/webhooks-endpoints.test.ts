/** Endpoints: batches and their numbers, pausing, resuming, replaying and rotating the secret. */
import { afterAll, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { Webhook } from 'standardwebhooks'
import { startReceiver, type Received, type Receiver } from '../support/receiver.ts'
import { webhookServer, type WebhookServer } from '../support/webhook-server.ts'
import { databaseContains } from '../support/engine.ts'

// Each test waits for runs and attempts, for longer on a busy machine.
setDefaultTimeout(90_000)

interface EndpointJson {
  id: string
  url: string
  status: string
  pausedReason: string | null
  position: number
  sequence: number
  pending: number
  delivered: number
  deadLetters: number
  failingSince: string | null
  nextProbeAt: string | null
}
interface Made {
  endpoint: EndpointJson
  secret: string
}
interface Batch {
  type: string
  timestamp: string
  data: { sequence: number; events: { id: string; type: string; outcome: string }[] }
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
  path = `/ok/endpoint-${++tests}`
})

const make = (overrides: Record<string, unknown> = {}) =>
  hook.api<Made>('POST', base, { url: receiver.url + path, ...overrides }, 201)
const endpointOf = async (id: string) =>
  (await hook.api<{ endpoint: EndpointJson }>('GET', `${base}/${id}`)).endpoint
const act = (id: string, verb: string, body?: unknown, status = 200) =>
  hook.api<Made>('POST', `${base}/${id}/${verb}`, body, status)
const remove = (id: string) => hook.api('DELETE', `${base}/${id}`)
const batches = () => receiver.received(path).map(({ body }) => JSON.parse(body) as Batch)
const idsOf = (batch: Batch) => batch.data.events.map(({ id }) => id)

describe('batches', () => {
  test('start at the end of the log, have at most 100 events, and are numbered without a gap', async () => {
    await hook.ingest([{ id: 'evt_before' }])
    const { endpoint, secret } = await make()
    expect(endpoint).toMatchObject({ status: 'active', sequence: 0, pending: 0 })
    expect(secret).toMatch(/^whsec_[\w+/]{43}=$/)
    await hook.run()
    expect(batches()).toEqual([])

    await hook.ingest(Array.from({ length: 250 }, (_, n) => ({ id: `many_${n}` })))
    await hook.run()
    const sentBatches = batches().toSorted((a, b) => a.data.sequence - b.data.sequence)
    expect(sentBatches.map(({ type, data }) => [type, data.sequence, data.events.length])).toEqual([
      ['trace.batch', 1, 100],
      ['trace.batch', 2, 100],
      ['trace.batch', 3, 50],
    ])
    expect(sentBatches.flatMap(idsOf)).toEqual(Array.from({ length: 250 }, (_, n) => `many_${n}`))
    for (const { body, headers } of receiver.received(path)) {
      expect(new Webhook(secret).verify(body, headers)).toBeTruthy()
    }
    expect(await endpointOf(endpoint.id)).toMatchObject({
      sequence: 3,
      delivered: 3,
      pending: 0,
      failingSince: null,
    })
    await remove(endpoint.id)
  })

  test('a smaller batch size makes more and smaller messages', async () => {
    const { endpoint } = await make({ batchSize: 2 })
    await hook.ingest([{}, {}, {}])
    await hook.run()
    expect(
      batches()
        .map(({ data }) => data.events.length)
        .toSorted(),
    ).toEqual([1, 2])
    await hook.api('PATCH', `${base}/${endpoint.id}`, { batchSize: 1 })
    await hook.ingest([{}, {}])
    await hook.run()
    expect(batches()).toHaveLength(4)
    await remove(endpoint.id)
  })

  test('filters are exact or a prefix; excluded events make no message but move the position', async () => {
    const { endpoint } = await make({
      types: ['authz.*'],
      outcomes: ['blocked'],
      classes: ['dom', ''],
      sites: ['a'],
    })
    const matching = { siteId: 'a', type: 'authz.evaluated', outcome: 'blocked', agent: { class: 'dom' } }
    await hook.ingest([
      { id: 'f_kept', ...matching },
      { id: 'f_none', ...matching, agent: {} },
      { id: 'f_type', ...matching, type: 'authzx.evaluated' },
      { id: 'f_outcome', ...matching, outcome: 'success' },
      { id: 'f_class', ...matching, agent: { class: 'crawler' } },
      { id: 'f_site', ...matching, siteId: 'b' },
    ])
    await hook.run()
    expect(batches().map(idsOf)).toEqual([['f_kept', 'f_none']])
    const { position } = await endpointOf(endpoint.id)
    expect(position).toBe(await hook.server.store.events.lastSeq(hook.server.org.id))
    await remove(endpoint.id)
  })

  test('behind a hundred pending deliveries the position waits, and moves on in the same run once they end', async () => {
    const slow = await make()
    const dead = await hook.api<Made>('POST', base, { url: `${receiver.url}/status/500/wait-${tests}` }, 201)
    for (let n = 0; n < 11; n++) {
      await hook.ingest(Array.from({ length: 1_000 }, (_, i) => ({ id: `wait_${tests}_${n}_${i}` })))
    }
    await hook.run()
    expect(await endpointOf(dead.endpoint.id)).toMatchObject({ sequence: 100, pending: 100 })
    expect(await endpointOf(slow.endpoint.id)).toMatchObject({ sequence: 110, pending: 0, delivered: 110 })
    const received = batches().flatMap(idsOf)
    expect([received.length, new Set(received).size]).toEqual([11_000, 11_000])
    await remove(dead.endpoint.id)
    await remove(slow.endpoint.id)
  }, 90_000)
})

describe('pause and resume', () => {
  test('nothing is sent while paused, nothing is lost, no number is missing', async () => {
    const { endpoint } = await make()
    await hook.ingest([{ id: 'p_1' }])
    await hook.run()
    expect((await act(endpoint.id, 'pause')).endpoint).toMatchObject({
      status: 'paused',
      pausedReason: 'asked',
    })
    await hook.ingest([{ id: 'p_2' }])
    await hook.run()
    expect(batches()).toHaveLength(1)
    expect((await act(endpoint.id, 'resume')).endpoint).toMatchObject({
      status: 'active',
      pausedReason: null,
    })
    await hook.ingest([{ id: 'p_3' }])
    await hook.run()
    expect(batches().map(({ data }) => data.sequence)).toEqual([1, 2])
    expect(batches().flatMap(idsOf)).toEqual(['p_1', 'p_2', 'p_3'])
    await remove(endpoint.id)
  })

  test('a 410 pauses the endpoint at once', async () => {
    path = `/status/410/${tests}`
    const { endpoint } = await make()
    await hook.ingest([{ id: 'g_1' }])
    await hook.run()
    expect(await endpointOf(endpoint.id)).toMatchObject({
      status: 'paused',
      pausedReason: 'gone',
      deadLetters: 1,
    })
    await remove(endpoint.id)
  })

  test('a successful message ends the failing state, even if others of the same run fail', async () => {
    path = `/flaky/1/ends-${tests}`
    const { endpoint } = await make()
    await hook.ingest([{ id: 'g_2' }])
    await hook.run()
    expect((await endpointOf(endpoint.id)).failingSince).not.toBeNull()
    hook.server.clock.move(5 * 24 * 3_600_000)
    await hook.ingest([{ id: 'g_3' }])
    // The second attempt of one succeeds while the first of the other fails, five days after the first failure.
    await hook.run()
    expect(await endpointOf(endpoint.id)).toMatchObject({
      status: 'active',
      pausedReason: null,
      delivered: 1,
    })
    await remove(endpoint.id)
  })

  test('one probe per hour, the oldest pending delivery first', async () => {
    path = `/flaky/3/failing-${tests}` // the third try is the first probe, which fails too
    const { endpoint } = await make()
    await hook.ingest([{ id: 'h_1' }])
    await hook.run()
    hook.server.clock.move(5 * 24 * 3_600_000)
    await hook.run()
    expect(await endpointOf(endpoint.id)).toMatchObject({
      status: 'paused',
      pausedReason: 'failing',
      pending: 1,
    })
    await hook.run()
    expect(receiver.received(path)).toHaveLength(2)
    for (const expected of [3, 4]) {
      hook.server.clock.move(3_600_000)
      await hook.run()
      await hook.run()
      expect(receiver.received(path)).toHaveLength(expected)
    }
    expect(await endpointOf(endpoint.id)).toMatchObject({
      status: 'active',
      pausedReason: null,
      pending: 0,
      delivered: 1,
    })
    expect(new Set(receiver.received(path).map(({ headers }) => headers['webhook-id'])).size).toBe(1)
    await remove(endpoint.id)
  })
})

test('events deleted before they were sent are counted, and the others are sent', async () => {
  const { endpoint } = await make()
  await act(endpoint.id, 'pause')
  await hook.ingest(Array.from({ length: 5 }, (_, n) => ({ id: `m_gone_${n}`, siteId: 'gone' })))
  await hook.ingest([{ id: 'm_kept' }])
  const { store, org } = hook.server
  const auditFields = { orgId: org.id, actor: 'cli', action: 'demo.removed', target: 'gone', metadata: {} }
  await store.events.removeSite({
    orgId: org.id,
    siteId: 'gone',
    audit: { id: 'aud_gone', ...auditFields, occurredAtMs: 1 },
  })
  await act(endpoint.id, 'resume')
  await hook.run()
  expect(batches().map(idsOf)).toEqual([['m_kept']])
  expect(await endpointOf(endpoint.id)).toMatchObject({ missed: 5, sequence: 1 })
  await remove(endpoint.id)
})

describe('secrets', () => {
  test('rotation signs with both for a day, then with the new one alone', async () => {
    const { endpoint, secret: older } = await make()
    const { secret: newer } = await act(endpoint.id, 'rotate-secret')
    const accepts = ({ body, headers }: Received, secret: string) => {
      const headerCopy = { ...headers }
      try {
        // The clock of this test is days ahead, beyond the verifier's tolerance, which is not under test.
        const timestamp = Number(headerCopy['webhook-timestamp'])
        const verifier = new Webhook(secret)
        return headerCopy['webhook-signature']!.split(' ').includes(
          verifier.sign(headerCopy['webhook-id']!, new Date(timestamp * 1_000), body),
        )
      } catch {
        return false
      }
    }
    await hook.ingest([{ id: 's_1' }])
    await hook.run()
    const [messageDuring] = receiver.received(path)
    expect([accepts(messageDuring!, older), accepts(messageDuring!, newer)]).toEqual([true, true])
    hook.server.clock.move(24 * 3_600_000 + 1)
    await hook.ingest([{ id: 's_2' }])
    await hook.run()
    const [, messageAfter] = receiver.received(path)
    expect([accepts(messageAfter!, older), accepts(messageAfter!, newer)]).toEqual([false, true])
    await remove(endpoint.id)
  })

  test('are shown once and nowhere else, not even in the database', async () => {
    const { endpoint, secret } = await make({ label: 'siem' })
    for (const shown of [await hook.api('GET', base), await hook.api('GET', `${base}/${endpoint.id}`)]) {
      expect(JSON.stringify(shown)).not.toContain('whsec_')
    }
    const raw = secret.slice('whsec_'.length)
    const isStored = (bytes: Buffer) => databaseContains(hook.server.dataDir, bytes)
    expect(await isStored(Buffer.from(endpoint.id))).toBe(true)
    expect([await isStored(Buffer.from(raw)), await isStored(Buffer.from(raw, 'base64'))]).toEqual([
      false,
      false,
    ])
    await remove(endpoint.id)
  })
})

describe('changing and rejecting', () => {
  test('a change applies to pending deliveries; deletion ends them and keeps the record', async () => {
    path = `/status/500/change-${tests}`
    const { endpoint } = await make()
    await hook.ingest([{ id: 'c_1' }])
    await hook.run()
    const url = `${receiver.url}/ok/changed-${tests}`
    const changed = await hook.api<Made>('PATCH', `${base}/${endpoint.id}`, { url, label: 'new' })
    expect(changed.endpoint).toMatchObject({ url, label: 'new', pending: 1 })
    hook.server.clock.move(2_000)
    await hook.run()
    expect(receiver.received(`/ok/changed-${tests}`)).toHaveLength(1)
    await hook.ingest([{ id: 'c_2' }])
    await act(endpoint.id, 'pause')
    await act(endpoint.id, 'resume')
    await remove(endpoint.id)
    expect((await hook.server.call(`${base}/${endpoint.id}`, { key: hook.key })).status).toBe(404)
    const matching = await hook.api<{ deliveries: unknown[] }>(
      'GET',
      `/v1/webhooks?endpointId=${endpoint.id}`,
    )
    expect(matching.deliveries).toHaveLength(1)
    const { id } = matching.deliveries[0] as { id: string }
    expect(
      (await hook.server.call(`/v1/webhooks/${id}/replay`, { key: hook.key, method: 'POST' })).status,
    ).toBe(409)
  })

  test.each([
    [{}, 'url', 'required'],
    [{ url: 'http://10.0.0.1/' }, 'url', 'url_blocked'],
    [{ url: 'file:x.ndjson' }, 'url', 'url_blocked'],
    [{ url: 'syslog+udp://10.0.0.1' }, 'url', 'url_blocked'],
    [{ url: 'http://127.0.0.1/', types: 'authz.*' }, 'types', 'wrong_type'],
    [{ url: 'http://127.0.0.1/', types: ['*'] }, 'types[0]', 'wrong_format'],
    [{ url: 'http://127.0.0.1/', types: ['a', 5] }, 'types[1]', 'wrong_type'],
    [{ url: 'http://127.0.0.1/', sites: ['x'.repeat(300)] }, 'sites[0]', 'too_long'],
    [{ url: 'http://127.0.0.1/', classes: Array(101).fill('x') }, 'classes', 'too_many'],
    [{ url: 'http://127.0.0.1/', label: 'x'.repeat(81) }, 'label', 'too_long'],
    [{ url: 'http://127.0.0.1/', batchSize: 101 }, 'batchSize', 'wrong_format'],
  ])('%j is refused at %s', async (body, issuePath, code) => {
    const response = await hook.server.call(base, { key: hook.key, body })
    const { issues } = (await response.json()) as { issues: { path: string; code: string }[] }
    expect([response.status, issues[0]]).toEqual([400, expect.objectContaining({ path: issuePath, code })])
  })

  test('endpoints of another organization and unknown ones are not found; read keys may not write', async () => {
    const { endpoint } = await make()
    const reader = await hook.server.key('secret', { scopes: ['webhooks:read'] })
    for (const verb of ['pause', 'resume', 'rotate-secret']) {
      const foreign = await hook.server.call(`${base}/ep_none/${verb}`, { key: hook.key, method: 'POST' })
      const read = await hook.server.call(`${base}/${endpoint.id}/${verb}`, { key: reader, method: 'POST' })
      expect([verb, foreign.status, read.status]).toEqual([verb, 404, 403])
    }
    expect((await hook.server.call(`${base}/${endpoint.id}`, { key: reader })).status).toBe(200)
    expect(
      (await hook.server.call(`${base}/${endpoint.id}`, { key: hook.key, method: 'PATCH', body: {} })).status,
    ).toBe(400)
    await remove(endpoint.id)
  })
})
