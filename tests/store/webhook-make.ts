/** Makes the records of the webhook cases, and ends pending deliveries between them. */
import type { Store } from '../../db/contract/store.ts'
import type { Attempt, ClaimRequest, Endpoint, NewDelivery, Outcome } from '../../db/contract/webhooks.ts'

let drains = 0

/** The rest of a rule of a fixed kind. */
export const fixedRule = { name: '', definition: null, fromFile: false, silencedUntilMs: null }

/** The rest of an incident that has just fired. */
export const openFiring = {
  state: 'firing' as const,
  openedAtMs: 1,
  clearSinceMs: null,
  resolvedAtMs: null,
  acknowledgedAtMs: null,
  acknowledgedBy: null,
}

export const makeDelivery = (
  orgId: string,
  id: string,
  lane: string,
  fields: Partial<NewDelivery> = {},
): NewDelivery => {
  return {
    id,
    orgId,
    endpointId: null,
    url: `http://${lane}/`,
    lane,
    body: '{}',
    scheduledAtMs: 1_000,
    ...fields,
  }
}
export const makeClaim = (leaseId: string, options: Partial<ClaimRequest> = {}): ClaimRequest => {
  const limits = { limit: 32, perLaneMax: 2, ahead: {}, interruptionsMax: 3, attemptsMax: 4 }
  const reserved = { forFirstSend: 0, forFirstTries: 0, forQuick: 0, forUntried: 0 }
  const share = { held: {}, slow: 0, paces: {}, reserved }
  return { leaseId, leaseMs: 500, dueMs: 10_000, share, ...limits, ...options }
}
export const makeAttempt = (fields: Partial<Attempt> = {}): Attempt => {
  return {
    atMs: 5,
    status: 500,
    durationMs: 3,
    responseExcerpt: '',
    error: 'http_500',
    counted: true,
    ...fields,
  }
}
export const makeEndpoint = (orgId: string, id: string, fields: Partial<Endpoint> = {}): Endpoint => ({
  id,
  orgId,
  url: 'http://receiver/',
  label: '',
  types: [],
  outcomes: [],
  classes: [],
  siteIds: [],
  batchSize: 100,
  retryWaitsMs: null,
  status: 'active',
  pausedReason: null,
  pausedAtMs: null,
  position: 0,
  sequence: 0,
  missed: 0,
  replayUntil: null,
  resumePosition: null,
  createdAtMs: 1,
  lastSuccessAtMs: null,
  failingSinceMs: null,
  nextProbeAtMs: null,
  encryptedSecret: `sealed-${id}`,
  previousEncryptedSecret: null,
  previousUntilMs: null,
  ...fields,
})
/** Ends all pending deliveries, so that tests do not see each other's. */
export async function drain(store: Store): Promise<void> {
  for (let round = 0; round < 50; round++) {
    const leaseId = `drain-${++drains}`
    const far = Number.MAX_SAFE_INTEGER - 1_000
    const claims = await store.webhooks.recordAndClaim({
      now: far,
      outcomes: [],
      released: [],
      claim: makeClaim(leaseId, { dueMs: far, perLaneMax: 32 }),
    })
    if (claims.length === 0) return
    const outcomes = claims.map(({ delivery }): Outcome => {
      return {
        deliveryId: delivery.id,
        leaseId,
        attempt: makeAttempt({ error: null }),
        next: { status: 'delivered' },
      }
    })
    await store.webhooks.recordAndClaim({ now: far, outcomes, released: [], claim: null })
  }
  throw new Error('there is always more')
}
