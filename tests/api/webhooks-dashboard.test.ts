/** The dashboard's webhook API: the public one by session and role, with the secret, notices, request, snippets. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { Webhook } from 'standardwebhooks'
import { auditCount, makeOrg, person, type Person } from '../support/people.ts'
import { startReceiver, type Receiver } from '../support/receiver.ts'
import { webhookServer, type WebhookServer } from '../support/webhook-server.ts'

// Each test waits for runs and attempts, for longer on a busy machine.
setDefaultTimeout(90_000)

let hook: WebhookServer
let receiver: Receiver
let admin: Person
let viewer: Person
beforeAll(async () => {
  receiver = await startReceiver()
  hook = await webhookServer()
  const { server } = hook
  admin = await person(server, server.org, 'admin')
  viewer = await person(server, server.org, 'viewer')
})
afterAll(async () => {
  await hook[Symbol.asyncDispose]()
  await receiver[Symbol.asyncDispose]()
})

async function jsonOf<T>(answer: Promise<Response>, status = 200): Promise<T> {
  const response = await answer
  const text = await response.text()
  if (response.status !== status) throw new Error(`${response.status} ${text}`)
  return JSON.parse(text) as T
}

test('an admin sends, reads, replays and rotates; each change is one audit row', async () => {
  const countBefore = await auditCount(hook.server)
  const { secret } = await jsonOf<{ secret: string }>(admin.call('/api/webhooks/secret'))
  const body = { url: `${receiver.url}/status/500/d`, payload: { n: 1 } }
  const { deliveryId } = await jsonOf<{ deliveryId: string }>(admin.post('/api/webhooks/test', body), 202)
  await hook.run()
  const list = await jsonOf<{ deliveries: { id: string }[] }>(admin.call('/api/webhooks?status=pending'))
  expect(list.deliveries.map(({ id }) => id)).toEqual([deliveryId])
  interface Shown {
    attemptLog: { status: number }[]
    nextAttemptAt: string
  }
  const shown = await jsonOf<Shown>(viewer.call(`/api/webhooks/${deliveryId}`))
  expect(shown).toMatchObject({ attemptLog: [{ status: 500 }], nextAttemptAt: expect.any(String) })

  interface RequestJson {
    method: string
    url: string
    headers: Record<string, string>
    body: string
  }
  const request = await jsonOf<RequestJson>(admin.call(`/api/webhooks/${deliveryId}/request`))
  const [received] = receiver.received('/status/500/d')
  expect(request).toMatchObject({ method: 'POST', url: body.url, body: received!.body })
  expect(received!.headers).toMatchObject({ ...request.headers, 'user-agent': expect.any(String) })
  expect(new Webhook(secret).verify(request.body, request.headers)).toEqual({ n: 1 })

  const rotated = await jsonOf<{ secret: string; oldSecretUntil: string }>(
    admin.post('/api/webhooks/secret/rotate'),
  )
  expect(rotated).toEqual({ secret: expect.not.stringMatching(secret), oldSecretUntil: expect.any(String) })
  for (let i = 0; i < 3; i++) {
    hook.server.clock.move(2_000)
    await hook.run()
  }
  expect(await jsonOf<{ replayed: number }>(admin.post('/api/webhooks/replay-dead'), 202)).toMatchObject({
    replayed: 1,
  })
  expect(await jsonOf<{ replayed: number }>(admin.post('/api/webhooks/replay-dead'), 202)).toMatchObject({
    replayed: 0,
  })
  // The secret, the delivery, the rotation and the replay.
  expect((await auditCount(hook.server)) - countBefore).toBe(4)
})

test('notices name the endpoints that need attention', async () => {
  const url = `${receiver.url}/status/410/n`
  const { endpoint } = await jsonOf<{ endpoint: { id: string } }>(
    admin.post('/api/webhooks/endpoints', { url }),
    201,
  )
  await hook.ingest([{}])
  await hook.run()
  const { notices } = await jsonOf<{ notices: unknown[] }>(viewer.call('/api/webhooks/notices'))
  expect(notices).toEqual([
    { code: 'endpoint_paused_gone', endpointId: endpoint.id, message: expect.stringContaining('410') },
  ])
  await jsonOf(admin.call(`/api/webhooks/endpoints/${endpoint.id}`, { method: 'DELETE' }))
  expect(await jsonOf<{ notices: unknown[] }>(viewer.call('/api/webhooks/notices'))).toEqual({ notices: [] })
})

test('an open alert is a notice until it is resolved', async () => {
  const url = `${receiver.url}/ok/alerts`
  const creation = admin.post('/api/webhooks/endpoints', { url, types: ['sdk.error'] })
  const { endpoint } = await jsonOf<{ endpoint: { id: string } }>(creation, 201)
  const rule = { kind: 'blocked_share', threshold: 0.5, eventsMin: 3, endpointId: endpoint.id }
  await jsonOf(admin.post('/api/webhooks/rules', rule), 201)
  hook.server.clock.move(2 * 3_600_000) // beyond the window of other tests' events
  await hook.ingest([{ outcome: 'blocked' }, { outcome: 'blocked' }, { outcome: 'blocked' }])
  await hook.run()
  const noticesOf = async () =>
    (await jsonOf<{ notices: { code: string; message: string }[] }>(viewer.call('/api/webhooks/notices')))
      .notices
  expect(await noticesOf()).toMatchObject([
    {
      code: 'alert_open',
      message: expect.stringContaining('High blocked share: 100 % of 3 events in the last hour'),
    },
  ])
  await hook.ingest(Array.from({ length: 5 }, () => ({ outcome: 'success' })))
  await hook.run()
  expect(await noticesOf()).toEqual([])
  await jsonOf(admin.call(`/api/webhooks/endpoints/${endpoint.id}`, { method: 'DELETE' }))
})

test('a viewer reads, changes nothing and never sees a secret', async () => {
  const refused = [
    viewer.call('/api/webhooks/secret'),
    viewer.call('/api/webhooks/wh_none/request'),
    viewer.post('/api/webhooks/secret/rotate'),
    viewer.post('/api/webhooks/replay-dead'),
    viewer.post('/api/webhooks/test', { url: receiver.url, payload: {} }),
    viewer.post('/api/webhooks/endpoints', { url: receiver.url }),
    viewer.post('/api/webhooks/rules', { kind: 'new_vendor', endpointId: 'x' }),
    viewer.post('/api/webhooks/wh_none/replay'),
  ]
  expect((await Promise.all(refused)).map(({ status }) => status)).toEqual(refused.map(() => 403))
  for (const path of ['', '/endpoints', '/rules', '/incidents', '/notices', '/snippets']) {
    const answer = await viewer.call(`/api/webhooks${path}`)
    expect([path, answer.status, (await answer.text()).includes('whsec_M')]).toEqual([path, 200, false])
    expect((await hook.server.call(`/api/webhooks${path}`)).status).toBe(401)
  }
})

test('another organization sees nothing of it', async () => {
  const otherOwner = await person(hook.server, await makeOrg(hook.server, 'other'), 'owner')
  const { endpoint } = await jsonOf<{ endpoint: { id: string } }>(
    admin.post('/api/webhooks/endpoints', { url: receiver.url }),
    201,
  )
  const { deliveries } = await jsonOf<{ deliveries: { id: string }[] }>(admin.call('/api/webhooks'))
  expect(deliveries.length).toBeGreaterThan(0)
  expect(await jsonOf<unknown>(otherOwner.call('/api/webhooks'))).toEqual({
    deliveries: [],
    nextCursor: null,
  })
  expect(await jsonOf<unknown>(otherOwner.call('/api/webhooks/endpoints'))).toEqual({ endpoints: [] })
  const { id } = deliveries[0]!
  const paths = [`/${id}`, `/${id}/request`, `/endpoints/${endpoint.id}`]
  for (const path of paths)
    expect([path, (await otherOwner.call(`/api/webhooks${path}`)).status]).toEqual([path, 404])
  const acts = [`/${id}/replay`, `/endpoints/${endpoint.id}/pause`, `/endpoints/${endpoint.id}/rotate-secret`]
  for (const path of acts)
    expect([path, (await otherOwner.post(`/api/webhooks${path}`)).status]).toEqual([path, 404])
  expect(await jsonOf<{ replayed: number }>(otherOwner.post('/api/webhooks/replay-dead'), 202)).toMatchObject(
    {
      replayed: 0,
    },
  )
})

test('five days of failures pause an endpoint, and a notice reports it', async () => {
  const url = `${receiver.url}/status/503/five-days`
  const creation = admin.post('/api/webhooks/endpoints', { url })
  const { endpoint } = await jsonOf<{ endpoint: { id: string } }>(creation, 201)
  const noticesOf = async (member: Person) => {
    const allNotices = jsonOf<{ notices: { code: string; endpointId: string; message: string }[] }>(
      member.call('/api/webhooks/notices'),
    )
    return (await allNotices).notices.filter(({ endpointId }) => endpointId === endpoint.id)
  }
  await hook.ingest([{}])
  await hook.run()
  expect(await noticesOf(viewer)).toMatchObject([{ code: 'endpoint_failing' }])
  hook.server.clock.move(5 * 24 * 3_600_000)
  await hook.run()
  // The older session has expired.
  const later = await person(hook.server, hook.server.org, 'viewer')
  expect(await noticesOf(later)).toMatchObject([
    {
      code: 'endpoint_paused_failing',
      message: expect.stringContaining('It is paused and retried once per hour.'),
    },
  ])
})
