/** Endpoints and rules on a real database: positions, pauses, probes, secrets, incidents. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Store } from '../../store.ts'
import type { Outcome } from '../../webhook-store.ts'
import { attempt, audit, endpointOf, made, orgId, request, testStore } from './test-store.ts'

let store: Store
let end: () => Promise<void>
beforeAll(async () => {
  const opened = await testStore()
  store = opened.store
  end = opened.end
})
afterAll(() => end())
const stateOf = async (id: string) => (await store.webhooks.find(orgId, id))!

describe('endpoints', () => {
  const batch = (id: string, endpointId: string) =>
    made(id, endpointId, { endpointId, url: 'http://receiver/' })

  test('a position advances once, with its batch, and waits behind a hundred pending ones', async () => {
    await store.webhooks.createEndpoint({ endpoint: endpointOf('ep_1'), audit: audit() })
    const step = (position: number, sequence: number, id: string | null, pendingMax = 2) =>
      store.webhooks.advance({
        endpointId: 'ep_1',
        from: { position, sequence },
        position: position + 10,
        missed: 0,
        delivery: id === null ? null : batch(id, 'ep_1'),
        pendingMax,
      })
    expect(await step(0, 0, 'b1')).toBe('advanced')
    expect(await step(0, 0, 'b2')).toBe('stale')
    expect(await step(10, 1, null)).toBe('advanced')
    expect(await step(20, 1, 'b3')).toBe('advanced')
    expect(await step(30, 2, 'b4')).toBe('full')
    const found = await store.webhooks.endpoint(orgId, 'ep_1')
    expect(found).toMatchObject({ endpoint: { position: 30, sequence: 2 }, counts: { pending: 2 } })
    expect(await store.webhooks.endpoint('org_b', 'ep_1')).toBeNull()
  })

  test('a file belongs to one organization, whichever asked first', async () => {
    const org = { id: 'org_b', slug: 'b', name: 'B', createdAtMs: 1 }
    await store.orgs.create({ org, audit: audit() })
    const url = 'file:siem.ndjson'
    const create = (id: string, of: string) =>
      store.webhooks.createEndpoint({ endpoint: endpointOf(id, { orgId: of, url }), audit: audit() }).then(
        () => 'done',
        ({ kind }: { kind: string }) => kind,
      )
    expect([await create('ep_f1', orgId), await create('ep_f2', orgId)]).toEqual(['done', 'done'])
    expect(await create('ep_f3', 'org_b')).toBe('conflict')
    const command = { orgId, now: 1, audit: audit() }
    await store.webhooks.deleteEndpoint({ ...command, endpointId: 'ep_f1' })
    await store.webhooks.deleteEndpoint({ ...command, endpointId: 'ep_f2', audit: audit() })
    expect(await create('ep_f3', 'org_b')).toBe('done')
  })

  test('paused: nothing is claimed and nothing lost; failing: one probe; its success resumes', async () => {
    const command = { orgId, endpointId: 'ep_1', now: 7_000 }
    await store.webhooks.pauseEndpoint({ ...command, audit: audit() })
    expect(
      await store.webhooks.turn({ now: 7_000, outcomes: [], released: [], claim: request('p1') }),
    ).toEqual([])
    await store.webhooks.resumeEndpoint({ ...command, audit: audit() })
    const [claim] = await store.webhooks.turn({
      now: 7_000,
      outcomes: [],
      released: [],
      claim: request('p2', { limit: 1 }),
    })
    expect(claim).toMatchObject({ delivery: { id: 'b1' }, sealedSecrets: ['sealed-ep_1'], probe: false })
    const failed: Outcome = {
      deliveryId: 'b1',
      leaseId: 'p2',
      attempt: attempt(),
      next: { status: 'pending', atMs: 8_000 },
      pause: { reason: 'failing', nextProbeAtMs: 9_000, audit: audit('webhook_endpoint.paused') },
    }
    await store.webhooks.turn({ now: 7_001, outcomes: [failed], released: [], claim: null })
    expect((await store.webhooks.endpoint(orgId, 'ep_1'))?.endpoint).toMatchObject({
      status: 'paused',
      pausedReason: 'failing',
      failingSinceMs: 7_001,
    })
    const probes = (now: number) =>
      store.webhooks.startProbes({ now, nextProbeAtMs: now + 100, body: '{}', ids: ['pr'] })
    expect(await probes(8_999)).toBe(0)
    expect(
      await store.webhooks.turn({ now: 9_000, outcomes: [], released: [], claim: request('p3') }),
    ).toEqual([])
    expect(await probes(9_000)).toBe(1)
    const [probe, ...others] = await store.webhooks.turn({
      now: 9_000,
      outcomes: [],
      released: [],
      claim: request('p4'),
    })
    expect(probe).toMatchObject({ delivery: { id: 'b1' }, probe: true })
    expect(others).toEqual([])
    const worked: Outcome = {
      deliveryId: 'b1',
      leaseId: 'p4',
      attempt: attempt({ status: 200, error: null }),
      next: { status: 'delivered' },
      resume: audit('webhook_endpoint.resumed'),
    }
    await store.webhooks.turn({ now: 9_001, outcomes: [worked], released: [], claim: null })
    const { endpoint } = (await store.webhooks.endpoint(orgId, 'ep_1'))!
    expect(endpoint).toMatchObject({ status: 'active', pausedReason: null, failingSinceMs: null })
  })

  test('both secrets sign while one rotates; deletion ends what is pending and keeps the record', async () => {
    const command = { orgId, endpointId: 'ep_1', now: 9_100 }
    await store.webhooks.rotateEndpointSecret({
      ...command,
      sealedSecret: 'newer',
      previousUntilMs: 9_200,
      audit: audit(),
    })
    const first = await store.webhooks.turn({
      now: 9_150,
      outcomes: [],
      released: [],
      claim: request('s1', { leaseMs: 10 }),
    })
    expect(first[0]?.sealedSecrets).toEqual(['newer', 'sealed-ep_1'])
    const second = await store.webhooks.turn({ now: 9_200, outcomes: [], released: [], claim: request('s2') })
    expect(second[0]?.sealedSecrets).toEqual(['newer'])
    await store.webhooks.deleteEndpoint({ ...command, audit: audit() })
    expect(await store.webhooks.endpoint(orgId, 'ep_1')).toBeNull()
    expect((await stateOf('b3')).delivery).toMatchObject({
      status: 'dead_letter',
      lastError: expect.stringMatching(/^endpoint_deleted/),
    })
  })
})

describe('rules', () => {
  test('one message an incident, one resolve, and none for a rule that is gone', async () => {
    await store.webhooks.createEndpoint({ endpoint: endpointOf('ep_2'), audit: audit() })
    const rule = { id: 'rul_1', orgId, endpointId: 'ep_2', kind: 'silence' as const, createdAtMs: 1 }
    const numbers = { threshold: null, minutes: 5, eventsMin: null }
    await store.webhooks.createRule({ rule: { ...rule, ...numbers }, audit: audit() })
    const open = (id: string, once = false) => {
      const times = { openedAtMs: 1, resolvedAtMs: null }
      const incident = { id, orgId, ruleId: 'rul_1', subject: '', ...times, data: { minutes: 5 } }
      return store.webhooks.openIncident({
        incident,
        delivery: made(`wh-${id}`, 'ep_2', { endpointId: 'ep_2' }),
        once,
      })
    }
    const resolve = (id: string) => {
      return store.webhooks.resolveIncident({
        id,
        now: 9,
        delivery: made(`re-${id}`, 'ep_2', { endpointId: 'ep_2' }),
      })
    }
    expect([await open('i1'), await open('i2')]).toEqual([true, false])
    expect([await resolve('i1'), await resolve('i1')]).toEqual([true, false])
    expect([await open('i3', true), await open('i4')]).toEqual([false, true])
    expect(await store.webhooks.openIncidents(null)).toMatchObject([{ id: 'i4', data: { minutes: 5 } }])
    await store.webhooks.deleteRule({ orgId, ruleId: 'rul_1', audit: audit() })
    expect(await store.webhooks.openIncidents(orgId)).toEqual([])
    expect(await open('i5')).toBe(false)
  })
})
