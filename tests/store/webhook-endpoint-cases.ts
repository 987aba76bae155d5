/** Conformance of endpoints and rules: positions, pauses, probes, secrets, incidents. */
import { expect } from 'bun:test'
import type { AuditEntry, Store } from '../../db/contract/store.ts'
import type { Outcome } from '../../db/contract/webhooks.ts'
import { makeAudit } from './make.ts'
import { failure, writesNothing, writesOnce, type Cases } from './subject.ts'
import { drain, makeAttempt, makeClaim, makeDelivery, makeEndpoint } from './webhook-make.ts'

async function stateOf(store: Store, orgId: string, id: string) {
  return (await store.webhooks.find({ orgId, id }))!
}

const batch = (orgId: string, id: string, endpointId: string) =>
  makeDelivery(orgId, id, endpointId, { endpointId, url: 'http://receiver/' })

/** An endpoint with two batches pending, `<id>-1` and `<id>-2`. */
async function endpointWithTwo(store: Store, orgId: string, id: string): Promise<void> {
  await store.webhooks.createEndpoint({ endpoint: makeEndpoint(orgId, id), audit: makeAudit(orgId) })
  for (const n of [1, 2]) {
    const from = { position: n - 1, sequence: n - 1 }
    const delivery = batch(orgId, `${id}-${n}`, id)
    await store.webhooks.advance({ endpointId: id, from, position: n, missed: 0, delivery, pendingMax: 9 })
  }
}

export const endpointCases: Cases = {
  async 'a position advances once, with its batch, and waits behind a hundred pending ones'({
    store,
    orgId,
  }) {
    await store.webhooks.createEndpoint({ endpoint: makeEndpoint(orgId, 'ep_1'), audit: makeAudit(orgId) })
    const step = (position: number, sequence: number, id: string | null, pendingMax = 2) =>
      store.webhooks.advance({
        endpointId: 'ep_1',
        from: { position, sequence },
        position: position + 10,
        missed: 0,
        delivery: id === null ? null : batch(orgId, id, 'ep_1'),
        pendingMax,
      })
    expect(await step(0, 0, 'b1')).toBe('advanced')
    expect(await step(0, 0, 'b2')).toBe('stale')
    expect(await step(10, 1, null)).toBe('advanced')
    expect(await step(20, 1, 'b3')).toBe('advanced')
    expect(await step(30, 2, 'b4')).toBe('full')
    const storedEndpoint = await store.webhooks.endpoint({ orgId, id: 'ep_1' })
    expect(storedEndpoint).toMatchObject({ endpoint: { position: 30, sequence: 2 }, counts: { pending: 2 } })
    expect(await store.webhooks.endpoint({ orgId: 'org_none', id: 'ep_1' })).toBeNull()
    await drain(store)
  },

  async 'a range is walked once more, then the endpoint goes on where it was'({ store, orgId }) {
    const { webhooks } = store
    const endpoint = makeEndpoint(orgId, 'ep_r', { position: 50, sequence: 3 })
    await webhooks.createEndpoint({ endpoint, audit: makeAudit(orgId) })
    const move = (position: number, until: number | null) =>
      webhooks.moveEndpoint({ orgId, endpointId: 'ep_r', now: 5, position, until, audit: makeAudit(orgId) })
    const fields = { endpointId: 'ep_r', missed: 0, pendingMax: 9 }
    const step = (position: number, sequence: number, to: number) =>
      webhooks.advance({ ...fields, from: { position, sequence }, position: to, delivery: null })
    const state = async () => {
      const { position, replayUntil, resumePosition } = (await webhooks.endpoint({ orgId, id: 'ep_r' }))!
        .endpoint
      return [position, replayUntil, resumePosition]
    }
    expect(await move(10, 20)).toMatchObject({ position: 10, replayUntil: 20, resumePosition: 50 })
    expect(await step(10, 3, 15)).toBe('advanced')
    expect(await state()).toEqual([15, 20, 50])
    // A second range before the first is complete: the endpoint still continues where it was before both.
    await move(5, 12)
    expect(await state()).toEqual([5, 12, 50])
    expect(await step(5, 3, 12)).toBe('advanced')
    expect(await state()).toEqual([50, null, null])
    await move(10, 50) // up to its position: no range, it only moves back
    expect(await state()).toEqual([10, null, null])
    await move(5, 8)
    await move(3, null)
    expect(await state()).toEqual([3, null, null])
  },

  async 'a file belongs to one organization, whichever asked first'({ store, orgId }) {
    const org = { id: 'org_b', slug: 'b', name: 'B', createdAtMs: 1 }
    await store.orgs.create({ org, audit: makeAudit(orgId) })
    const url = 'file:siem.ndjson'
    const create = (id: string, ownerOrgId: string) =>
      store.webhooks
        .createEndpoint({
          endpoint: makeEndpoint(orgId, id, { orgId: ownerOrgId, url }),
          audit: makeAudit(orgId),
        })
        .then(
          () => 'done',
          ({ kind }: { kind: string }) => kind,
        )
    expect([await create('ep_f1', orgId), await create('ep_f2', orgId)]).toEqual(['done', 'done'])
    expect(await create('ep_f3', 'org_b')).toBe('conflict')
    const command = { orgId, now: 1, audit: makeAudit(orgId) }
    await store.webhooks.deleteEndpoint({ ...command, endpointId: 'ep_f1' })
    await store.webhooks.deleteEndpoint({ ...command, endpointId: 'ep_f2', audit: makeAudit(orgId) })
    expect(await create('ep_f3', 'org_b')).toBe('done')
  },

  async 'paused: nothing is claimed and nothing lost; failing: one probe; its success resumes'({
    store,
    orgId,
  }) {
    await endpointWithTwo(store, orgId, 'ep_p')
    const command = { orgId, endpointId: 'ep_p', now: 7_000 }
    await store.webhooks.pauseEndpoint({ ...command, audit: makeAudit(orgId) })
    expect(
      await store.webhooks.recordAndClaim({ now: 7_000, outcomes: [], released: [], claim: makeClaim('p1') }),
    ).toEqual([])
    await store.webhooks.resumeEndpoint({ ...command, audit: makeAudit(orgId) })
    const [claim] = await store.webhooks.recordAndClaim({
      now: 7_000,
      outcomes: [],
      released: [],
      claim: makeClaim('p2'),
    })
    expect(claim).toMatchObject({
      delivery: { id: 'ep_p-1' },
      encryptedSecrets: ['sealed-ep_p'],
      probe: false,
    })
    const failed: Outcome = {
      deliveryId: 'ep_p-1',
      leaseId: 'p2',
      attempt: makeAttempt(),
      next: { status: 'pending', atMs: 8_000 },
      pause: {
        reason: 'failing',
        failingSinceMs: 7_001,
        nextProbeAtMs: 9_000,
        audit: makeAudit(orgId, { action: 'webhook_endpoint.paused' }),
      },
    }
    // Another sender saw it succeed meanwhile, so this failure no longer counts.
    const stale: Outcome = {
      ...failed,
      deliveryId: 'ep_p-2',
      next: { status: 'pending', atMs: 50_000 },
      pause: { ...failed.pause!, failingSinceMs: 6_000 },
    }
    await store.webhooks.recordAndClaim({ now: 7_001, outcomes: [stale], released: [], claim: null })
    expect((await store.webhooks.endpoint({ orgId, id: 'ep_p' }))?.endpoint.status).toBe('active')
    await store.webhooks.recordAndClaim({ now: 8_001, outcomes: [failed], released: [], claim: null })
    expect((await store.webhooks.endpoint({ orgId, id: 'ep_p' }))?.endpoint).toMatchObject({
      status: 'paused',
      pausedReason: 'failing',
      failingSinceMs: 7_001,
    })
    const probes = (now: number) =>
      store.webhooks.startProbes({ now, nextProbeAtMs: now + 100, body: '{}', ids: ['pr'] })
    expect(await probes(8_999)).toBe(0)
    expect(
      await store.webhooks.recordAndClaim({ now: 9_000, outcomes: [], released: [], claim: makeClaim('p3') }),
    ).toEqual([])
    expect(await probes(9_000)).toBe(1)
    const [probe, ...otherClaims] = await store.webhooks.recordAndClaim({
      now: 9_000,
      outcomes: [],
      released: [],
      claim: makeClaim('p4'),
    })
    expect(probe).toMatchObject({ delivery: { id: 'ep_p-1' }, probe: true })
    expect(otherClaims).toEqual([])
    const worked: Outcome = {
      deliveryId: 'ep_p-1',
      leaseId: 'p4',
      attempt: makeAttempt({ status: 200, error: null }),
      next: { status: 'delivered' },
      resume: makeAudit(orgId, { action: 'webhook_endpoint.resumed' }),
    }
    await store.webhooks.recordAndClaim({ now: 9_001, outcomes: [worked], released: [], claim: null })
    const { endpoint } = (await store.webhooks.endpoint({ orgId, id: 'ep_p' }))!
    expect(endpoint).toMatchObject({ status: 'active', pausedReason: null, failingSinceMs: null })
    await drain(store)
  },

  async 'both secrets sign while one rotates; deletion ends what is pending and keeps the record'({
    store,
    orgId,
  }) {
    await endpointWithTwo(store, orgId, 'ep_s')
    const command = { orgId, endpointId: 'ep_s', now: 9_100 }
    await store.webhooks.rotateEndpointSecret({
      ...command,
      encryptedSecret: 'newer',
      previousUntilMs: 9_200,
      audit: makeAudit(orgId),
    })
    const first = await store.webhooks.recordAndClaim({
      now: 9_150,
      outcomes: [],
      released: [],
      claim: makeClaim('s1', { leaseMs: 10 }),
    })
    expect(first[0]?.encryptedSecrets).toEqual(['newer', 'sealed-ep_s'])
    const second = await store.webhooks.recordAndClaim({
      now: 9_200,
      outcomes: [],
      released: [],
      claim: makeClaim('s2'),
    })
    expect(second[0]?.encryptedSecrets).toEqual(['newer'])
    await store.webhooks.deleteEndpoint({ ...command, audit: makeAudit(orgId) })
    expect(await store.webhooks.endpoint({ orgId, id: 'ep_s' })).toBeNull()
    expect((await stateOf(store, orgId, 'ep_s-2')).delivery).toMatchObject({
      status: 'dead_letter',
      lastError: expect.stringMatching(/^endpoint_deleted/),
    })
  },
}

export const webhookAuditCases: Cases = {
  async 'every change of an endpoint is one audit entry, and pausing twice is one'({ store, orgId }) {
    const command = () => ({ orgId, endpointId: 'ep_a', now: 5, audit: makeAudit(orgId) })
    const { webhooks } = store
    const writesEntry = <C extends { audit: AuditEntry }>(
      verb: (command: C) => Promise<unknown>,
      auditedCommand: C,
    ) => writesOnce(store, auditedCommand.audit, () => verb(auditedCommand))
    await writesEntry(webhooks.createEndpoint, {
      endpoint: makeEndpoint(orgId, 'ep_a'),
      audit: makeAudit(orgId),
    })
    await writesEntry(webhooks.changeEndpoint, { ...command(), change: { label: 'new' } })
    await writesEntry(webhooks.pauseEndpoint, command())
    await writesNothing(store, orgId, () => webhooks.pauseEndpoint(command()))
    await writesEntry(webhooks.resumeEndpoint, command())
    await writesNothing(store, orgId, () => webhooks.resumeEndpoint(command()))
    await writesEntry(webhooks.moveEndpoint, { ...command(), position: 0, until: null })
    await writesEntry(webhooks.rotateEndpointSecret, {
      ...command(),
      encryptedSecret: 's',
      previousUntilMs: 9,
    })
    await writesEntry(webhooks.deleteEndpoint, command())
    const pauseError = await writesNothing(store, orgId, () => failure(webhooks.pauseEndpoint(command())))
    expect(pauseError.kind).toBe('not_found')
  },

  async 'the secret of an organization is made once, and rotation keeps the one before'({ store, orgId }) {
    const { webhooks } = store
    expect(await webhooks.findOrgSecret(orgId)).toBeNull()
    const rotate = { orgId, encryptedSecret: 'two', previousUntilMs: 9, audit: makeAudit(orgId) }
    const early = await writesNothing(store, orgId, () => failure(webhooks.rotateOrgSecret(rotate)))
    expect(early.kind).toBe('not_found')
    const audit = makeAudit(orgId)
    await writesOnce(store, audit, () => webhooks.orgSecret({ orgId, encryptedIfNone: 'one', audit }))
    const again = { orgId, encryptedIfNone: 'other', audit: makeAudit(orgId) }
    const keptSecret = await writesNothing(store, orgId, () => webhooks.orgSecret(again))
    expect(keptSecret).toEqual({
      encryptedSecret: 'one',
      previousEncryptedSecret: null,
      previousUntilMs: null,
    })
    await writesOnce(store, rotate.audit, () => webhooks.rotateOrgSecret(rotate))
    const rotated = { encryptedSecret: 'two', previousEncryptedSecret: 'one', previousUntilMs: 9 }
    expect(await webhooks.findOrgSecret(orgId)).toEqual(rotated)
  },

  async 'a delivery whose audit entry cannot be written is not scheduled'({ store, orgId }) {
    const takenEntry = makeAudit(orgId)
    await store.audit.append(takenEntry)
    const delivery = makeDelivery(orgId, 'wh_untold', 'untold')
    const error = await failure(store.webhooks.schedule({ delivery, audit: takenEntry }))
    expect([error.kind, await store.webhooks.find({ orgId, id: 'wh_untold' })]).toEqual(['conflict', null])
  },

  async 'all dead letters are replayed by one entry, those of deleted endpoints stay'({ store, orgId }) {
    await endpointWithTwo(store, orgId, 'ep_d1')
    await endpointWithTwo(store, orgId, 'ep_d2')
    const command = { orgId, endpointId: 'ep_d2', now: 3, audit: makeAudit(orgId) }
    const claims = await store.webhooks.recordAndClaim({
      now: 2,
      outcomes: [],
      released: [],
      claim: makeClaim('d1'),
    })
    const outcomes = claims.map(({ delivery, leaseId }): Outcome => {
      return { deliveryId: delivery.id, leaseId, attempt: makeAttempt(), next: { status: 'dead_letter' } }
    })
    await store.webhooks.recordAndClaim({ now: 2, outcomes, released: [], claim: null })
    await store.webhooks.deleteEndpoint(command)
    const replay = () => ({ orgId, endpointId: null, now: 9, audit: makeAudit(orgId) })
    const first = replay()
    const entry = { ...first.audit, metadata: { ...first.audit.metadata, count: 2 } }
    expect(await writesOnce(store, entry, () => store.webhooks.replayDead(first))).toBe(2)
    expect(await writesNothing(store, orgId, () => store.webhooks.replayDead(replay()))).toBe(0)
    expect((await stateOf(store, orgId, 'ep_d2-1')).delivery.status).toBe('dead_letter')
    await drain(store)
  },
}
