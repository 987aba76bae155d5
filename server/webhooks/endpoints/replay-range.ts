/** Replays a range of the event log, or everything from a position, to an endpoint. */
import { auditEntry, type Actor } from '../../audit/entry.ts'
import { parseTime } from '../../clock.ts'
import { wrongField } from '../../http/validate.ts'
import { findEndpoint, type EndpointJson, type EndpointServices } from './endpoints.ts'
import type { EventStore } from '../../../db/contract/store.ts'

/**
 * `from` and `until` are positions or times of arrival. Events after the position `from` are delivered again, up to and
 * including `until`, by default up to the endpoint's position. For times: from `from`, before `until`.
 */
export async function replayEndpoint(
  services: EndpointServices,
  actor: Actor,
  id: string,
  body: { [name: string]: unknown },
): Promise<EndpointJson> {
  const endpoint = await findEndpoint(services, actor.orgId, id)
  const { events } = services.store
  const position = await readPosition(events, actor.orgId, 'from', body['from'])
  if (position === null) throw wrongField('from', 'from is required: a position or a time', 'required')
  const until = await readPosition(events, actor.orgId, 'until', body['until'])
  const reached = endpoint.resumePosition ?? endpoint.position
  if (position > reached)
    throw wrongField('from', `from must be at most ${reached}, the position of the endpoint`)
  if (until !== null && until < position) throw wrongField('until', 'until must not be before from')
  if (until === position) return endpoint // an empty range
  const now = services.clock.now()
  const metadata = { label: String(endpoint.label || endpoint.url), before: reached, after: position, until }
  const audit = auditEntry(actor, { action: 'webhook_endpoint.moved', target: id, metadata }, now)
  await services.store.webhooks.moveEndpoint({
    orgId: actor.orgId,
    endpointId: id,
    now,
    position,
    until,
    audit,
  })
  return findEndpoint(services, actor.orgId, id)
}

/** Null when missing. */
async function readPosition(
  events: Pick<EventStore, 'tail' | 'lastSeq'>,
  orgId: string,
  name: 'from' | 'until',
  value: unknown,
): Promise<number | null> {
  if (value === undefined || value === null) return null
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value
  const atMs = typeof value === 'string' ? parseTime(value) : null
  if (atMs === null) {
    const form = 'a whole number from 0 or a time such as 2026-06-23T12:00:00Z'
    throw wrongField(name, `${name} must be ${form}`)
  }
  return positionBefore(events, orgId, atMs)
}

/** The position just before the first event that arrived at or after `sinceMs`, or the end of the log. */
export async function positionBefore(
  events: Pick<EventStore, 'tail' | 'lastSeq'>,
  orgId: string,
  sinceMs: number,
): Promise<number> {
  const arrivedAfter = async (seq: number): Promise<number | null> => {
    const { events: laterEvents } = await events.tail({ orgId, filter: {}, afterSeq: seq, limit: 1 })
    return laterEvents[0]?.receivedAtMs ?? null
  }
  // Binary search, because arrival times increase with arrival numbers.
  let low = 0
  let high = await events.lastSeq(orgId)
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    const next = await arrivedAfter(middle)
    if (next !== null && next < sinceMs) low = middle + 1
    else high = middle
  }
  return low
}
