/** Whether an event is one that a filter asks for, as GET /v1/traces decides it (contract §6). */
import type { EventFilter, ReceivedEvent, TraceEvent } from '../api/event-shapes.ts'
import { fieldFilters } from '../api/field-filters.ts'
import { eventTimeMs } from '../text/event-time.ts'

type Member = (event: TraceEvent) => unknown

/** As the appliance derives it where the event names no decision. */
function decisionOf({ type, outcome, policy }: TraceEvent): unknown {
  if (policy?.decision) return policy.decision
  if (type !== 'authz.evaluated') return null
  return outcome === 'blocked' ? 'deny' : outcome === 'success' ? 'allow' : null
}

const byParameter = Object.fromEntries(fieldFilters.map(({ parameter, valueOf }) => [parameter, valueOf]))

const members: { readonly [name: string]: Member } = {
  ...byParameter,
  class: byParameter['agentClass']!, // the same function: values of both names are alternatives
  decision: decisionOf,
}

const isOneOf = (wanted: readonly string[], value: unknown): boolean =>
  wanted.length === 0 || wanted.includes(typeof value === 'string' ? value : '')

const isOfType = (wanted: readonly string[], type: string): boolean =>
  wanted.length === 0 ||
  wanted.some((one) => (one.endsWith('.*') ? type.startsWith(one.slice(0, -1)) : type === one))

/** A filter that it does not know lets everything through: an event too many is better than one too few. */
export function isWanted(
  { types, outcomes, where = [] }: EventFilter,
  { event, receivedAt }: ReceivedEvent,
): boolean {
  if (!isOfType(types, event.type) || !isOneOf(outcomes, event.outcome)) return false
  const asked = new Map<Member, string[]>()
  const atMs = eventTimeMs(Date.parse(event.occurredAt), Date.parse(receivedAt))
  for (const { name, value } of where) {
    if (name === 'since' && atMs < Date.parse(value)) return false
    if (name === 'until' && atMs >= Date.parse(value)) return false
    const member = Object.hasOwn(members, name) ? members[name] : undefined
    if (member) asked.set(member, [...(asked.get(member) ?? []), value])
  }
  return [...asked].every(([member, wanted]) => isOneOf(wanted, member(event)))
}
