/** The webhook verbs on a real database: leases, lanes, interruptions, positions, probes, replay. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { openStore } from '../../open.ts'
import type { AuditEntry, Store } from '../../store.ts'
import type { Attempt, ClaimRequest, Endpoint, NewDelivery, Outcome } from '../../webhook-store.ts'

const orgId = 'org_a'
let number = 0
const audit = (action = 'test.done', org = orgId): AuditEntry => {
  const id = `aud_${++number}`
  return { id, orgId: org, actor: 'system', action, target: 'x', metadata: {}, occurredAtMs: 1 }
}

const temp = tempDir('webhook-store')
let store: Store
beforeAll(async () => {
  store = await openStore({
    folder: temp.path,
    now: 1,
    bootstrap: { org: { id: orgId, slug: 'a', name: 'A', createdAtMs: 1 }, audit: audit() },
  })
})
afterAll(async () => {
  await store.close()
  temp.remove()
})

const made = (id: string, lane: string, more: Partial<NewDelivery> = {}): NewDelivery => {
  return {
    id,
    orgId,
    endpointId: null,
    url: `http://${lane}/`,
    lane,
    body: '{}',
    scheduledAtMs: 1_000,
    ...more,
  }
}
const request = (leaseId: string, more: Partial<ClaimRequest> = {}): ClaimRequest => {
  const limits = { limit: 32, perLaneMax: 2, interruptionsMax: 3, attemptsMax: 4 }
  return { leaseId, leaseMs: 500, dueMs: 10_000, ...limits, ...more }
}
const attempt = (more: Partial<Attempt> = {}): Attempt => {
  return {
    atMs: 5,
    status: 500,
    durationMs: 3,
    responseExcerpt: '',
    error: 'http_500',
    counted: true,
    ...more,
  }
}
const endpointOf = (id: string, more: Partial<Endpoint> = {}): Endpoint => ({
  id,
  orgId,
  url: 'http://receiver/',
  label: '',
  types: [],
  outcomes: [],
  classes: [],
  siteIds: [],
  status: 'active',
  pausedReason: null,
  pausedAtMs: null,
  position: 0,
  sequence: 0,
  missed: 0,
  createdAtMs: 1,
  lastSuccessAtMs: null,
  failingSinceMs: null,
  nextProbeAtMs: null,
  sealedSecret: `sealed-${id}`,
  previousSealedSecret: null,
  previousUntilMs: null,
  ...more,
})
/** Ends everything that is pending, so that tests do not meet each other's deliveries. */
async function drain(): Promise<void> {
  for (let round = 0; round < 50; round++) {
    const leaseId = `drain-${++number}`
    const far = Number.MAX_SAFE_INTEGER - 1_000
    const claims = await store.webhooks.turn({
      now: far,
      outcomes: [],
      claim: request(leaseId, { dueMs: far, perLaneMax: 32 }),
    })
    if (claims.length === 0) return
    const outcomes = claims.map(({ delivery }): Outcome => {
      return {
        deliveryId: delivery.id,
        leaseId,
        attempt: attempt({ error: null }),
        next: { status: 'delivered' },
      }
    })
    await store.webhooks.turn({ now: far, outcomes, claim: null })
  }
  throw new Error('there is always more')
}
const stateOf = async (id: string) => (await store.webhooks.find(orgId, id))!

describe('claims', () => {
  test('a lane gets two at a time and delays no other; the longest due goes first', async () => {
    for (let i = 0; i < 40; i++)
      await store.webhooks.schedule({ delivery: made(`slow-${i}`, 'slow'), audit: audit() })
    await store.webhooks.schedule({
      delivery: made('quick-1', 'quick', { scheduledAtMs: 900 }),
      audit: audit(),
    })
    await store.webhooks.schedule({
      delivery: made('later', 'third', { scheduledAtMs: 99_000 }),
      audit: audit(),
    })
    const claims = await store.webhooks.turn({ now: 1_000, outcomes: [], claim: request('l1') })
    expect(claims.map(({ delivery }) => delivery.id)).toEqual(['quick-1', 'slow-0', 'slow-1'])
    expect(await store.webhooks.turn({ now: 1_001, outcomes: [], claim: request('l2') })).toEqual([])
    // One outcome frees one place, in the same turn.
    const done: Outcome = {
      deliveryId: 'slow-1',
      leaseId: 'l1',
      attempt: attempt({ status: 204, error: null }),
      next: { status: 'delivered' },
    }
    const next = await store.webhooks.turn({ now: 1_002, outcomes: [done], claim: request('l3') })
    expect(next.map(({ delivery }) => delivery.id)).toEqual(['slow-2'])
    expect((await stateOf('slow-1')).delivery).toMatchObject({
      status: 'delivered',
      attempts: 1,
      deliveredAtMs: 1_002,
    })
    await drain()
  })

  test('the limit holds over all lanes', async () => {
    for (let i = 0; i < 6; i++)
      await store.webhooks.schedule({ delivery: made(`many-${i}`, `lane-${i}`), audit: audit() })
    const claims = await store.webhooks.turn({ now: 1_000, outcomes: [], claim: request('m1', { limit: 4 }) })
    expect(claims).toHaveLength(4)
    await drain()
  })

  test('a lost lease is logged and not counted three times, then counted, then a dead letter', async () => {
    await store.webhooks.schedule({ delivery: made('lost', 'lost'), audit: audit() })
    let now = 2_000
    for (let round = 1; round <= 7; round++) {
      const claims = await store.webhooks.turn({ now, outcomes: [], claim: request(`x${round}`) })
      expect(claims.map(({ delivery }) => delivery.attempts)).toEqual([Math.max(0, round - 4)])
      now += 500
    }
    expect(await store.webhooks.turn({ now, outcomes: [], claim: request('x8') })).toEqual([])
    const { delivery, attempts } = await stateOf('lost')
    expect(delivery).toMatchObject({ status: 'dead_letter', attempts: 4, nextAttemptAtMs: null })
    expect(attempts.map(({ counted }) => counted)).toEqual([false, false, false, true, true, true, true])
    expect(attempts[0]?.error).toStartWith('interrupted')
  })

  test('an outcome counts only under its own lease', async () => {
    await store.webhooks.schedule({ delivery: made('guarded', 'guarded'), audit: audit() })
    await store.webhooks.turn({ now: 3_000, outcomes: [], claim: request('old') })
    await store.webhooks.turn({ now: 3_500, outcomes: [], claim: request('new') })
    const late: Outcome = {
      deliveryId: 'guarded',
      leaseId: 'old',
      attempt: attempt(),
      next: { status: 'dead_letter' },
    }
    await store.webhooks.turn({ now: 3_501, outcomes: [late], claim: null })
    expect((await stateOf('guarded')).delivery).toMatchObject({ status: 'pending', attempts: 0 })
    await drain()
  })

  test('our own faults are logged, not counted, and the log of them stays short', async () => {
    await store.webhooks.schedule({ delivery: made('ours', 'ours'), audit: audit() })
    for (let round = 0; round < 30; round++) {
      const leaseId = `o${round}`
      await store.webhooks.turn({ now: 4_000, outcomes: [], claim: request(leaseId) })
      const outcome: Outcome = {
        deliveryId: 'ours',
        leaseId,
        attempt: attempt({ atMs: round, status: null, error: 'resolver_down', counted: false }),
        next: { status: 'pending', atMs: 4_000 },
      }
      await store.webhooks.turn({ now: 4_000, outcomes: [outcome], claim: null })
    }
    const { delivery, attempts } = await stateOf('ours')
    expect(delivery).toMatchObject({ status: 'pending', attempts: 0, lastError: 'resolver_down' })
    expect(attempts.map(({ atMs }) => atMs)).toEqual(Array.from({ length: 20 }, (_, i) => 10 + i))
    await drain()
  })
})

describe('replay', () => {
  test('the same record again, attempts from 0, log kept; pending and unknown ones are refused', async () => {
    await store.webhooks.schedule({ delivery: made('again', 'again'), audit: audit() })
    await store.webhooks.turn({ now: 5_000, outcomes: [], claim: request('r1') })
    const dead: Outcome = {
      deliveryId: 'again',
      leaseId: 'r1',
      attempt: attempt(),
      next: { status: 'dead_letter' },
    }
    await store.webhooks.turn({ now: 5_001, outcomes: [dead], claim: null })
    expect((await stateOf('again')).delivery.status).toBe('dead_letter')
    await store.webhooks.replay({ orgId, id: 'again', now: 6_000, audit: audit() })
    const { delivery, attempts } = await stateOf('again')
    expect(delivery).toMatchObject({ status: 'pending', attempts: 0, nextAttemptAtMs: 6_000 })
    expect(attempts).toHaveLength(1)
    const kindOf = (promise: Promise<unknown>) =>
      promise.then(
        () => 'done',
        (error: { kind: string }) => error.kind,
      )
    expect(await kindOf(store.webhooks.replay({ orgId, id: 'again', now: 1, audit: audit() }))).toBe(
      'conflict',
    )
    expect(await kindOf(store.webhooks.replay({ orgId, id: 'none', now: 1, audit: audit() }))).toBe(
      'not_found',
    )
    const foreign = { orgId: 'org_b', id: 'again', now: 1, audit: audit() }
    expect(await kindOf(store.webhooks.replay(foreign))).toBe('not_found')
    await drain()
  })
})

describe('lists', () => {
  test('walk every delivery once, newest first, within bytes and filters', async () => {
    for (let i = 0; i < 7; i++) {
      const body = JSON.stringify({ text: 'ü'.repeat(200) })
      await store.webhooks.schedule({ delivery: made(`page-${i}`, 'page', { body }), audit: audit() })
    }
    const seen: string[] = []
    let beforeSeq: number | null = null
    do {
      const query = {
        orgId,
        status: 'pending' as const,
        endpointId: null,
        limit: 3,
        bytesMax: 900,
        beforeSeq,
      }
      const page = await store.webhooks.list(query)
      expect(page.deliveries.length).toBeLessThanOrEqual(2) // 413 bytes each
      seen.push(...page.deliveries.map(({ id }) => id))
      beforeSeq = page.next
    } while (beforeSeq !== null)
    expect(seen).toEqual(['page-6', 'page-5', 'page-4', 'page-3', 'page-2', 'page-1', 'page-0'])
    const foreign = {
      orgId: 'org_b',
      status: null,
      endpointId: null,
      limit: 9,
      bytesMax: 900,
      beforeSeq: null,
    }
    expect(await store.webhooks.list(foreign)).toEqual({ deliveries: [], next: null })
    await drain()
  })
})

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

  test('paused: nothing is claimed and nothing lost; failing: one probe; its success resumes', async () => {
    const command = { orgId, endpointId: 'ep_1', now: 7_000 }
    await store.webhooks.pauseEndpoint({ ...command, audit: audit() })
    expect(await store.webhooks.turn({ now: 7_000, outcomes: [], claim: request('p1') })).toEqual([])
    await store.webhooks.resumeEndpoint({ ...command, audit: audit() })
    const [claim] = await store.webhooks.turn({
      now: 7_000,
      outcomes: [],
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
    await store.webhooks.turn({ now: 7_001, outcomes: [failed], claim: null })
    expect((await store.webhooks.endpoint(orgId, 'ep_1'))?.endpoint).toMatchObject({
      status: 'paused',
      pausedReason: 'failing',
      failingSinceMs: 7_001,
    })
    const probes = (now: number) =>
      store.webhooks.startProbes({ now, nextProbeAtMs: now + 100, body: '{}', ids: ['pr'] })
    expect(await probes(8_999)).toBe(0)
    expect(await store.webhooks.turn({ now: 9_000, outcomes: [], claim: request('p3') })).toEqual([])
    expect(await probes(9_000)).toBe(1)
    const [probe, ...others] = await store.webhooks.turn({ now: 9_000, outcomes: [], claim: request('p4') })
    expect(probe).toMatchObject({ delivery: { id: 'b1' }, probe: true })
    expect(others).toEqual([])
    const worked: Outcome = {
      deliveryId: 'b1',
      leaseId: 'p4',
      attempt: attempt({ status: 200, error: null }),
      next: { status: 'delivered' },
      resume: audit('webhook_endpoint.resumed'),
    }
    await store.webhooks.turn({ now: 9_001, outcomes: [worked], claim: null })
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
      claim: request('s1', { leaseMs: 10 }),
    })
    expect(first[0]?.sealedSecrets).toEqual(['newer', 'sealed-ep_1'])
    const second = await store.webhooks.turn({ now: 9_200, outcomes: [], claim: request('s2') })
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

describe('pruning', () => {
  test('what ended long ago goes with its attempts, what is pending stays', async () => {
    await store.webhooks.schedule({ delivery: made('young', 'young'), audit: audit() })
    await store.webhooks.schedule({ delivery: made('old', 'old'), audit: audit() })
    const claims = await store.webhooks.turn({ now: 20_000, outcomes: [], claim: request('z') })
    expect(claims.map(({ delivery }) => delivery.id)).toContain('old')
    const ended: Outcome = {
      deliveryId: 'old',
      leaseId: 'z',
      attempt: attempt({ error: null }),
      next: { status: 'delivered' },
    }
    await store.webhooks.turn({ now: 20_000, outcomes: [ended], claim: null })
    const prune = (deliveredBeforeMs: number) =>
      store.webhooks.prune({ deliveredBeforeMs, deadBeforeMs: 0, incidentsBeforeMs: 0, limit: 1_000 })
    await prune(20_000)
    expect(await store.webhooks.find(orgId, 'old')).not.toBeNull()
    expect(await prune(20_001)).toBeGreaterThan(0)
    expect(await store.webhooks.find(orgId, 'old')).toBeNull()
    expect(await store.webhooks.find(orgId, 'young')).not.toBeNull()
  })
})
