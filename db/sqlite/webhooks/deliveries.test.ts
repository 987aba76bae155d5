/** Deliveries on a real database: leases, lanes, interruptions, replay, lists, pruning. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Store } from '../../store.ts'
import type { ClaimRequest, Outcome } from '../../webhook-store.ts'
import { attempt, audit, drain, made, orgId, request, testStore } from './test-store.ts'

let store: Store
let end: () => Promise<void>
beforeAll(async () => {
  const opened = await testStore()
  store = opened.store
  end = opened.end
})
afterAll(() => end())
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
    const claims = await store.webhooks.turn({ now: 1_000, outcomes: [], released: [], claim: request('l1') })
    expect(claims.map(({ delivery }) => delivery.id)).toEqual(['quick-1', 'slow-0', 'slow-1'])
    expect(
      await store.webhooks.turn({ now: 1_001, outcomes: [], released: [], claim: request('l2') }),
    ).toEqual([])
    // One outcome frees one place, in the same turn.
    const done: Outcome = {
      deliveryId: 'slow-1',
      leaseId: 'l1',
      attempt: attempt({ status: 204, error: null }),
      next: { status: 'delivered' },
    }
    const next = await store.webhooks.turn({
      now: 1_002,
      outcomes: [done],
      released: [],
      claim: request('l3'),
    })
    expect(next.map(({ delivery }) => delivery.id)).toEqual(['slow-2'])
    expect((await stateOf('slow-1')).delivery).toMatchObject({
      status: 'delivered',
      attempts: 1,
      deliveredAtMs: 1_002,
    })
    await drain(store)
  })

  test('the limit holds over all lanes', async () => {
    for (let i = 0; i < 6; i++)
      await store.webhooks.schedule({ delivery: made(`many-${i}`, `lane-${i}`), audit: audit() })
    const claims = await store.webhooks.turn({
      now: 1_000,
      outcomes: [],
      released: [],
      claim: request('m1', { limit: 4 }),
    })
    expect(claims).toHaveLength(4)
    await drain(store)
  })

  test('claims ahead: for quick lanes, while all have their share, never for what was interrupted', async () => {
    const take = (leaseId: string, now: number, more: Partial<ClaimRequest>) =>
      store.webhooks.turn({ now, outcomes: [], released: [], claim: request(leaseId, more) })
    for (let i = 0; i < 6; i++) {
      await store.webhooks.schedule({ delivery: made(`ahead-${i}`, 'ahead'), audit: audit() })
    }
    await store.webhooks.schedule({ delivery: made('beside', 'beside'), audit: audit() })
    const ahead = { ahead: 3 }
    const crowded = await take('c1', 1_000, { ahead, limit: 3 })
    expect(crowded.map(({ delivery }) => delivery.id)).toEqual(['ahead-0', 'ahead-1', 'beside'])
    // All three leases run out, and these deliveries are claimed one for each place only.
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
    await store.webhooks.turn({ now: 2_001, outcomes: [], released, claim: null })
    expect((await stateOf('ahead-5')).attempts).toEqual([])
    const fourth = await take('c4', 2_002, { ahead })
    expect(fourth.map(({ delivery }) => delivery.id)).toEqual(['ahead-5'])
    await drain(store)
  })

  test('a lost lease is logged and not counted three times, then counted, then a dead letter', async () => {
    await store.webhooks.schedule({ delivery: made('lost', 'lost'), audit: audit() })
    let now = 2_000
    for (let round = 1; round <= 7; round++) {
      const claims = await store.webhooks.turn({
        now,
        outcomes: [],
        released: [],
        claim: request(`x${round}`),
      })
      expect(claims.map(({ delivery }) => delivery.attempts)).toEqual([Math.max(0, round - 4)])
      now += 500
    }
    expect(await store.webhooks.turn({ now, outcomes: [], released: [], claim: request('x8') })).toEqual([])
    const { delivery, attempts } = await stateOf('lost')
    expect(delivery).toMatchObject({ status: 'dead_letter', attempts: 4, nextAttemptAtMs: null })
    expect(attempts.map(({ counted }) => counted)).toEqual([false, false, false, true, true, true, true])
    expect(attempts[0]?.error).toStartWith('interrupted')
  })

  test('an outcome counts only under its own lease', async () => {
    await store.webhooks.schedule({ delivery: made('guarded', 'guarded'), audit: audit() })
    await store.webhooks.turn({ now: 3_000, outcomes: [], released: [], claim: request('old') })
    await store.webhooks.turn({ now: 3_500, outcomes: [], released: [], claim: request('new') })
    const late: Outcome = {
      deliveryId: 'guarded',
      leaseId: 'old',
      attempt: attempt(),
      next: { status: 'dead_letter' },
    }
    await store.webhooks.turn({ now: 3_501, outcomes: [late], released: [], claim: null })
    expect((await stateOf('guarded')).delivery).toMatchObject({ status: 'pending', attempts: 0 })
    await drain(store)
  })

  test('our own faults are logged, not counted, and the log of them stays short', async () => {
    await store.webhooks.schedule({ delivery: made('ours', 'ours'), audit: audit() })
    for (let round = 0; round < 30; round++) {
      const leaseId = `o${round}`
      await store.webhooks.turn({ now: 4_000, outcomes: [], released: [], claim: request(leaseId) })
      const outcome: Outcome = {
        deliveryId: 'ours',
        leaseId,
        attempt: attempt({ atMs: round, status: null, error: 'resolver_down', counted: false }),
        next: { status: 'pending', atMs: 4_000 },
      }
      await store.webhooks.turn({ now: 4_000, outcomes: [outcome], released: [], claim: null })
    }
    const { delivery, attempts } = await stateOf('ours')
    expect(delivery).toMatchObject({ status: 'pending', attempts: 0, lastError: 'resolver_down' })
    expect(attempts.map(({ atMs }) => atMs)).toEqual(Array.from({ length: 20 }, (_, i) => 10 + i))
    await drain(store)
  })
})

describe('replay', () => {
  test('the same record again, attempts from 0, log kept; pending and unknown ones are refused', async () => {
    await store.webhooks.schedule({ delivery: made('again', 'again'), audit: audit() })
    await store.webhooks.turn({ now: 5_000, outcomes: [], released: [], claim: request('r1') })
    const dead: Outcome = {
      deliveryId: 'again',
      leaseId: 'r1',
      attempt: attempt(),
      next: { status: 'dead_letter' },
    }
    await store.webhooks.turn({ now: 5_001, outcomes: [dead], released: [], claim: null })
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
    await drain(store)
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
    await drain(store)
  })
})

describe('pruning', () => {
  test('what ended long ago goes with its attempts, what is pending stays', async () => {
    await store.webhooks.schedule({ delivery: made('young', 'young'), audit: audit() })
    await store.webhooks.schedule({ delivery: made('old', 'old'), audit: audit() })
    const claims = await store.webhooks.turn({ now: 20_000, outcomes: [], released: [], claim: request('z') })
    expect(claims.map(({ delivery }) => delivery.id)).toContain('old')
    const ended: Outcome = {
      deliveryId: 'old',
      leaseId: 'z',
      attempt: attempt({ error: null }),
      next: { status: 'delivered' },
    }
    await store.webhooks.turn({ now: 20_000, outcomes: [ended], released: [], claim: null })
    const prune = (deliveredBeforeMs: number) =>
      store.webhooks.prune({ deliveredBeforeMs, deadBeforeMs: 0, incidentsBeforeMs: 0, limit: 1_000 })
    await prune(20_000)
    expect(await store.webhooks.find(orgId, 'old')).not.toBeNull()
    expect(await prune(20_001)).toBeGreaterThan(0)
    expect(await store.webhooks.find(orgId, 'old')).toBeNull()
    expect(await store.webhooks.find(orgId, 'young')).not.toBeNull()
  })
})
