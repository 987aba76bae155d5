/** An endpoint as the API returns it (contract §9). */
import { isoTime } from '../../clock.ts'
import type { Endpoint, EndpointCounts } from '../../../db/contract/webhooks.ts'

const time = (ms: number | null) => (ms === null ? null : isoTime(ms))

/** Without secrets. */
export function endpointView({ endpoint, counts }: { endpoint: Endpoint; counts: EndpointCounts }) {
  const { id, orgId, url, label, types, outcomes, classes, siteIds, status, pausedReason } = endpoint
  return {
    id,
    orgId,
    url,
    label,
    types,
    outcomes,
    classes,
    sites: siteIds,
    batchSize: endpoint.batchSize,
    retryWaits: endpoint.retryWaitsMs?.map((ms) => ms / 1_000) ?? null, // seconds; null: the default of the server
    status,
    pausedReason,
    pausedAt: time(endpoint.pausedAtMs),
    position: endpoint.position,
    sequence: endpoint.sequence,
    missed: endpoint.missed,
    replayUntil: endpoint.replayUntil,
    resumePosition: endpoint.resumePosition,
    pending: counts.pending,
    delivered: counts.delivered,
    deadLetters: counts.deadLetter,
    createdAt: isoTime(endpoint.createdAtMs),
    lastSuccessAt: time(endpoint.lastSuccessAtMs),
    failingSince: time(endpoint.failingSinceMs),
    nextProbeAt: time(endpoint.nextProbeAtMs),
    oldSecretUntil: time(endpoint.previousUntilMs),
  }
}

export type EndpointView = ReturnType<typeof endpointView>
