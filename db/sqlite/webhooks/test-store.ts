/** A store of one organization and the shapes that tests of the webhook verbs begin with. */
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { openStore } from '../../open.ts'
import type { AuditEntry, Store } from '../../store.ts'
import type { Attempt, ClaimRequest, Endpoint, NewDelivery, Outcome } from '../../webhook-store.ts'

export const orgId = 'org_a'
let number = 0
export const audit = (action = 'test.done', org = orgId): AuditEntry => {
  const id = `aud_${++number}`
  return { id, orgId: org, actor: 'system', action, target: 'x', metadata: {}, occurredAtMs: 1 }
}

/** `orgId` exists in it; ends with the files it made. */
export async function testStore(): Promise<{ store: Store; end(): Promise<void> }> {
  const temp = tempDir('webhook-store')
  const org = { id: orgId, slug: 'a', name: 'A', createdAtMs: 1 }
  const store = await openStore({ folder: temp.path, now: 1, bootstrap: { org, audit: audit() } })
  return {
    store,
    async end() {
      await store.close()
      temp.remove()
    },
  }
}

export const made = (id: string, lane: string, more: Partial<NewDelivery> = {}): NewDelivery => {
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
export const request = (leaseId: string, more: Partial<ClaimRequest> = {}): ClaimRequest => {
  const limits = { limit: 32, perLaneMax: 2, ahead: {}, interruptionsMax: 3, attemptsMax: 4 }
  return { leaseId, leaseMs: 500, dueMs: 10_000, ...limits, ...more }
}
export const attempt = (more: Partial<Attempt> = {}): Attempt => {
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
export const endpointOf = (id: string, more: Partial<Endpoint> = {}): Endpoint => ({
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
export async function drain(store: Store): Promise<void> {
  for (let round = 0; round < 50; round++) {
    const leaseId = `drain-${++number}`
    const far = Number.MAX_SAFE_INTEGER - 1_000
    const claims = await store.webhooks.turn({
      now: far,
      outcomes: [],
      released: [],
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
    await store.webhooks.turn({ now: far, outcomes, released: [], claim: null })
  }
  throw new Error('there is always more')
}
