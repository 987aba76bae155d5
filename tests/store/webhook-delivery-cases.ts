/** Conformance of deliveries: leases, lanes, prefetched claims, interruptions, replay, lists, pruning. */
import { expect } from 'bun:test'
import type { Store } from '../../db/contract/store.ts'
import type { ClaimRequest, Outcome } from '../../db/contract/webhooks.ts'
import { makeAudit } from './make.ts'
import { failure, writesNothing, type Cases } from './subject.ts'
import { drain, makeAttempt, makeClaim, makeDelivery } from './webhook-make.ts'

async function stateOf(store: Store, orgId: string, id: string) {
  return (await store.webhooks.find({ orgId, id }))!
}

export const claimCases: Cases = {
  async 'a delivery id is scheduled once; a delivery to a deleted endpoint is refused'({ store, orgId }) {
    const { webhooks } = store
    const delivery = makeDelivery(orgId, 'wh_once', 'once')
    const audit = makeAudit(orgId)
    expect(await webhooks.schedule({ delivery, audit })).toBe(true)
    const second = { delivery: { ...delivery, body: '{"other":true}' }, audit: makeAudit(orgId) }
    expect(await writesNothing(store, orgId, () => webhooks.schedule(second))).toBe(false)
    expect((await stateOf(store, orgId, 'wh_once')).delivery.body).toBe('{}')
    const orphan = makeDelivery(orgId, 'wh_orphan', 'ep_none', { endpointId: 'ep_none' })
    const refused = () => failure(webhooks.schedule({ delivery: orphan, audit: makeAudit(orgId) }))
    expect((await writesNothing(store, orgId, refused)).kind).toBe('not_found')
    await drain(store)
  },

  async 'a pending delivery has the state of its queue, one that ended has none'({ store, orgId }) {
    const { webhooks } = store
    for (const id of ['queue-1', 'queue-2'])
      await webhooks.schedule({ delivery: makeDelivery(orgId, id, 'queue'), audit: makeAudit(orgId) })
    const queueOf = async (id: string) => (await stateOf(store, orgId, id)).delivery.queue
    const waiting = {
      lane: 'queue',
      lease: null,
      isReplayed: false,
      isProbe: false,
      isEndpointPaused: false,
      isEndpointHealthy: false,
      laneLeases: 0,
    }
    expect(await queueOf('queue-1')).toEqual(waiting)
    const claim = makeClaim('b/lease', { limit: 1 })
    await webhooks.recordAndClaim({ now: 2_000, outcomes: [], released: [], claim })
    const leased = { ...waiting, lease: { id: 'b/lease', untilMs: 2_500 }, laneLeases: 1 }
    expect(await queueOf('queue-1')).toEqual(leased)
    expect(await queueOf('queue-2')).toEqual({ ...waiting, laneLeases: 1 })
    const query = { orgId, status: null, endpointId: null, limit: 2, bytesMax: 1_000_000, beforeSeq: null }
    const { deliveries } = await webhooks.list(query)
    expect(deliveries.map(({ queue }) => queue)).toEqual([{ ...waiting, laneLeases: 1 }, leased])
    const dead: Outcome = {
      deliveryId: 'queue-1',
      leaseId: 'b/lease',
      attempt: makeAttempt(),
      next: { status: 'dead_letter' },
    }
    await webhooks.recordAndClaim({ now: 2_100, outcomes: [dead], released: [], claim: null })
    expect(await queueOf('queue-1')).toBeNull()
    await webhooks.replay({ orgId, id: 'queue-1', now: 2_200, audit: makeAudit(orgId) })
    expect(await queueOf('queue-1')).toEqual({ ...waiting, isReplayed: true })
    // A clock that jumped moves the times of waits, which makes no delivery a replayed one.
    await webhooks.shiftTimes({ byMs: 60_000 })
    expect(await queueOf('queue-2')).toEqual(waiting)
    await drain(store)
  },

  async 'a lane gets two at a time and delays no other; the longest due goes first'({ store, orgId }) {
    for (let i = 0; i < 40; i++)
      await store.webhooks.schedule({
        delivery: makeDelivery(orgId, `slow-${i}`, 'slow'),
        audit: makeAudit(orgId),
      })
    await store.webhooks.schedule({
      delivery: makeDelivery(orgId, 'quick-1', 'quick', { scheduledAtMs: 900 }),
      audit: makeAudit(orgId),
    })
    await store.webhooks.schedule({
      delivery: makeDelivery(orgId, 'later', 'third', { scheduledAtMs: 99_000 }),
      audit: makeAudit(orgId),
    })
    const claims = await store.webhooks.recordAndClaim({
      now: 1_000,
      outcomes: [],
      released: [],
      claim: makeClaim('l1'),
    })
    expect(claims.map(({ delivery }) => delivery.id)).toEqual(['quick-1', 'slow-0', 'slow-1'])
    expect(
      await store.webhooks.recordAndClaim({ now: 1_001, outcomes: [], released: [], claim: makeClaim('l2') }),
    ).toEqual([])
    // One outcome frees one slot, in the same call.
    const outcome: Outcome = {
      deliveryId: 'slow-1',
      leaseId: 'l1',
      attempt: makeAttempt({ status: 204, error: null }),
      next: { status: 'delivered' },
    }
    const next = await store.webhooks.recordAndClaim({
      now: 1_002,
      outcomes: [outcome],
      released: [],
      claim: makeClaim('l3'),
    })
    expect(next.map(({ delivery }) => delivery.id)).toEqual(['slow-2'])
    expect((await stateOf(store, orgId, 'slow-1')).delivery).toMatchObject({
      status: 'delivered',
      attempts: 1,
      deliveredAtMs: 1_002,
    })
    await drain(store)
  },

  async 'the limit holds over all lanes'({ store, orgId }) {
    for (let i = 0; i < 6; i++)
      await store.webhooks.schedule({
        delivery: makeDelivery(orgId, `many-${i}`, `lane-${i}`),
        audit: makeAudit(orgId),
      })
    const claims = await store.webhooks.recordAndClaim({
      now: 1_000,
      outcomes: [],
      released: [],
      claim: makeClaim('m1', { limit: 4 }),
    })
    expect(claims).toHaveLength(4)
    await drain(store)
  },

  async 'claims ahead: for quick lanes, while all have their share, never for what was interrupted'({
    store,
    orgId,
  }) {
    const take = (leaseId: string, now: number, options: Partial<ClaimRequest>) =>
      store.webhooks.recordAndClaim({ now, outcomes: [], released: [], claim: makeClaim(leaseId, options) })
    for (let i = 0; i < 6; i++) {
      await store.webhooks.schedule({
        delivery: makeDelivery(orgId, `ahead-${i}`, 'ahead'),
        audit: makeAudit(orgId),
      })
    }
    await store.webhooks.schedule({
      delivery: makeDelivery(orgId, 'beside', 'beside'),
      audit: makeAudit(orgId),
    })
    const ahead = { ahead: 3 }
    const crowded = await take('c1', 1_000, { ahead, limit: 3 })
    expect(crowded.map(({ delivery }) => delivery.id)).toEqual(['ahead-0', 'ahead-1', 'beside'])
    // All three leases expire, and these deliveries are claimed one per slot only.
    const again = await take('c2', 1_500, { ahead })
    expect(again.map(({ delivery }) => delivery.id)).toEqual([
      'ahead-0',
      'ahead-1',
      'ahead-2',
      'ahead-3',
      'ahead-4',
      'beside',
    ])
    const third = await take('c3', 2_000, { ahead })
    expect(third.map(({ delivery }) => delivery.id)).toEqual(['ahead-0', 'ahead-1', 'ahead-5', 'beside'])
    const released = [{ deliveryId: 'ahead-5', leaseId: 'c3' }]
    await store.webhooks.recordAndClaim({ now: 2_001, outcomes: [], released, claim: null })
    expect((await stateOf(store, orgId, 'ahead-5')).attempts).toEqual([])
    const fourth = await take('c4', 2_002, { ahead })
    expect(fourth.map(({ delivery }) => delivery.id)).toEqual(['ahead-5'])
    await drain(store)
  },

  async 'a lost lease is logged and not counted three times, then counted, then a dead letter'({
    store,
    orgId,
  }) {
    await store.webhooks.schedule({ delivery: makeDelivery(orgId, 'lost', 'lost'), audit: makeAudit(orgId) })
    let now = 2_000
    for (let round = 1; round <= 7; round++) {
      const claims = await store.webhooks.recordAndClaim({
        now,
        outcomes: [],
        released: [],
        claim: makeClaim(`x${round}`),
      })
      expect(claims.map(({ delivery }) => delivery.attempts)).toEqual([Math.max(0, round - 4)])
      now += 500
    }
    expect(
      await store.webhooks.recordAndClaim({ now, outcomes: [], released: [], claim: makeClaim('x8') }),
    ).toEqual([])
    const { delivery, attempts } = await stateOf(store, orgId, 'lost')
    expect(delivery).toMatchObject({ status: 'dead_letter', attempts: 4, nextAttemptAtMs: null })
    expect(attempts.map(({ counted }) => counted)).toEqual([false, false, false, true, true, true, true])
    expect(attempts[0]?.error).toStartWith('interrupted')
  },

  async 'an outcome counts only under its own lease'({ store, orgId }) {
    await store.webhooks.schedule({
      delivery: makeDelivery(orgId, 'guarded', 'guarded'),
      audit: makeAudit(orgId),
    })
    await store.webhooks.recordAndClaim({ now: 3_000, outcomes: [], released: [], claim: makeClaim('old') })
    await store.webhooks.recordAndClaim({ now: 3_500, outcomes: [], released: [], claim: makeClaim('new') })
    const late: Outcome = {
      deliveryId: 'guarded',
      leaseId: 'old',
      attempt: makeAttempt(),
      next: { status: 'dead_letter' },
    }
    await store.webhooks.recordAndClaim({ now: 3_501, outcomes: [late], released: [], claim: null })
    expect((await stateOf(store, orgId, 'guarded')).delivery).toMatchObject({
      status: 'pending',
      attempts: 0,
    })
    await drain(store)
  },

  async 'our own faults are logged, not counted, and the log of them stays short'({ store, orgId }) {
    await store.webhooks.schedule({ delivery: makeDelivery(orgId, 'ours', 'ours'), audit: makeAudit(orgId) })
    for (let round = 0; round < 30; round++) {
      const leaseId = `o${round}`
      await store.webhooks.recordAndClaim({
        now: 4_000,
        outcomes: [],
        released: [],
        claim: makeClaim(leaseId),
      })
      const outcome: Outcome = {
        deliveryId: 'ours',
        leaseId,
        attempt: makeAttempt({ atMs: round, status: null, error: 'resolver_down', counted: false }),
        next: { status: 'pending', atMs: 4_000 },
      }
      await store.webhooks.recordAndClaim({ now: 4_000, outcomes: [outcome], released: [], claim: null })
    }
    const { delivery, attempts } = await stateOf(store, orgId, 'ours')
    expect(delivery).toMatchObject({ status: 'pending', attempts: 0, lastError: 'resolver_down' })
    expect(attempts.map(({ atMs }) => atMs)).toEqual(Array.from({ length: 20 }, (_, i) => 10 + i))
    await drain(store)
  },
}

export const deliveryCases: Cases = {
  async 'the same record again, attempts from 0, log kept; pending and unknown ones are refused'({
    store,
    orgId,
  }) {
    await store.webhooks.schedule({
      delivery: makeDelivery(orgId, 'again', 'again'),
      audit: makeAudit(orgId),
    })
    await store.webhooks.recordAndClaim({ now: 5_000, outcomes: [], released: [], claim: makeClaim('r1') })
    const dead: Outcome = {
      deliveryId: 'again',
      leaseId: 'r1',
      attempt: makeAttempt(),
      next: { status: 'dead_letter' },
    }
    await store.webhooks.recordAndClaim({ now: 5_001, outcomes: [dead], released: [], claim: null })
    expect((await stateOf(store, orgId, 'again')).delivery.status).toBe('dead_letter')
    await store.webhooks.replay({ orgId, id: 'again', now: 6_000, audit: makeAudit(orgId) })
    const { delivery, attempts } = await stateOf(store, orgId, 'again')
    expect(delivery).toMatchObject({ status: 'pending', attempts: 0, nextAttemptAtMs: 6_000 })
    expect(attempts).toHaveLength(1)
    const kindOf = (promise: Promise<unknown>) =>
      promise.then(
        () => 'done',
        (error: { kind: string }) => error.kind,
      )
    expect(await kindOf(store.webhooks.replay({ orgId, id: 'again', now: 1, audit: makeAudit(orgId) }))).toBe(
      'conflict',
    )
    expect(await kindOf(store.webhooks.replay({ orgId, id: 'none', now: 1, audit: makeAudit(orgId) }))).toBe(
      'not_found',
    )
    const foreign = { orgId: 'org_b', id: 'again', now: 1, audit: makeAudit(orgId) }
    expect(await kindOf(store.webhooks.replay(foreign))).toBe('not_found')
    await drain(store)
  },
  async 'walk every delivery once, newest first, within bytes and filters'({ store, orgId }) {
    for (let i = 0; i < 7; i++) {
      const body = JSON.stringify({ text: 'ü'.repeat(200) })
      await store.webhooks.schedule({
        delivery: makeDelivery(orgId, `page-${i}`, 'page', { body }),
        audit: makeAudit(orgId),
      })
    }
    const seenIds: string[] = []
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
      seenIds.push(...page.deliveries.map(({ id }) => id))
      beforeSeq = page.next
    } while (beforeSeq !== null)
    expect(seenIds).toEqual(['page-6', 'page-5', 'page-4', 'page-3', 'page-2', 'page-1', 'page-0'])
    const foreign = {
      orgId: 'org_b',
      status: null,
      endpointId: null,
      limit: 9,
      bytesMax: 900,
      beforeSeq: null,
    }
    expect(await store.webhooks.list(foreign)).toEqual({ deliveries: [], next: null })
    await drain(store)
  },
  async 'due times and leases move with the clock, what has ended does not'({ store, orgId }) {
    await drain(store)
    const audit = makeAudit(orgId)
    await store.webhooks.schedule({ delivery: makeDelivery(orgId, 'moved', 'moved'), audit })
    await store.webhooks.shiftTimes({ byMs: 50_000 })
    const turn = (now: number, dueMs: number) =>
      store.webhooks.recordAndClaim({
        now,
        outcomes: [],
        released: [],
        claim: makeClaim(`m${now}`, { dueMs }),
      })
    expect(await turn(50_999, 50_999)).toEqual([])
    const [claim] = await turn(51_000, 51_000)
    expect(claim).toMatchObject({ delivery: { id: 'moved' }, pendingSinceMs: 51_000 })
    await store.webhooks.shiftTimes({ byMs: -50_000 })
    expect((await store.webhooks.find({ orgId, id: 'moved' }))?.delivery.nextAttemptAtMs).toBe(1_000)
    expect(await turn(1_499, 10_000)).toEqual([]) // its lease of 500 ms moved too
    expect((await turn(1_500, 10_000)).map(({ delivery }) => delivery.id)).toEqual(['moved'])
    await drain(store)
  },
  async 'what ended long ago goes with its attempts, what is pending stays'({ store, orgId }) {
    await store.webhooks.schedule({
      delivery: makeDelivery(orgId, 'young', 'young'),
      audit: makeAudit(orgId),
    })
    await store.webhooks.schedule({ delivery: makeDelivery(orgId, 'old', 'old'), audit: makeAudit(orgId) })
    const claims = await store.webhooks.recordAndClaim({
      now: 20_000,
      outcomes: [],
      released: [],
      claim: makeClaim('z'),
    })
    expect(claims.map(({ delivery }) => delivery.id)).toContain('old')
    const ended: Outcome = {
      deliveryId: 'old',
      leaseId: 'z',
      attempt: makeAttempt({ error: null }),
      next: { status: 'delivered' },
    }
    await store.webhooks.recordAndClaim({ now: 20_000, outcomes: [ended], released: [], claim: null })
    const prune = (deliveredBeforeMs: number) =>
      store.webhooks.prune({ deliveredBeforeMs, deadBeforeMs: 0, incidentsBeforeMs: 0, limit: 1_000 })
    await prune(20_000)
    expect(await store.webhooks.find({ orgId, id: 'old' })).not.toBeNull()
    expect(await prune(20_001)).toBeGreaterThan(0)
    expect(await store.webhooks.find({ orgId, id: 'old' })).toBeNull()
    expect(await store.webhooks.find({ orgId, id: 'young' })).not.toBeNull()
  },
  async 'a node that starts again ends the leases of its process before, and only those'({ store, orgId }) {
    const own = `own-${orgId}`
    const other = `other-${orgId}`
    for (const id of [own, other])
      await store.webhooks.schedule({ delivery: makeDelivery(orgId, id, id), audit: makeAudit(orgId) })
    const claim = async (leaseId: string, limit: number): Promise<string[]> => {
      const command = { now: 1_000, outcomes: [], released: [], claim: makeClaim(leaseId, { limit }) }
      return (await store.webhooks.recordAndClaim(command)).map(({ delivery: { id } }) => id)
    }
    const name = `claimer-${orgId}`
    const first = await claim(`${name}/1`, 1)
    const second = await claim(`${name}-2/1`, 1)
    expect([...first, ...second].toSorted()).toEqual([other, own])
    expect(await claim('late/1', 2)).toEqual([])
    const node = { name, version: '1.0.0', role: 'all' as const }
    const { startedAtMs } = await store.nodes.register({ node, now: Date.now() })
    await store.nodes.leave({ name, startedAtMs })
    expect(await claim('late/2', 2)).toEqual(first)
    await drain(store)
  },
}
