/** Finds types in an endpoint's filter that no event has, to warn about typing errors. */
import type { Store } from '../../../db/contract/store.ts'
import { nearest } from '../../text/text.ts'

/** Types of our clients and of the appliance. Other types are accepted too. */
const commonTypes = [
  'agent.detected',
  'agent.missed',
  'agent.requested',
  'agent.referred',
  'auth.identity_presented',
  'auth.identity_cleared',
  'authz.evaluated',
  'authz.policies_set',
  'tool.executed',
  'tool.surfaced',
  'tool.registered',
  'tool.progressed',
  'memory.accessed',
  'memory.updated',
  'sdk.error',
] as const

export interface UnknownType {
  type: string
  suggestion: string | null
}

/** The filters that match no common type and no type that the organization ever sent. */
export async function unknownTypes(
  store: Pick<Store, 'events'>,
  orgId: string,
  filters: readonly string[],
): Promise<UnknownType[]> {
  const strange = filters.filter((filter) => !matchesOne(filter, commonTypes))
  if (strange.length === 0) return []
  const { byType } = await store.events.overview(orgId)
  const known = [...new Set([...commonTypes, ...Object.keys(byType)])]
  const prefixes = [...new Set(known.map((type) => `${type.split('.')[0]}.*`))]
  return strange
    .filter((filter) => !matchesOne(filter, known))
    .map((type) => ({ type, suggestion: nearest(type, type.endsWith('.*') ? prefixes : known) }))
}

function matchesOne(filter: string, types: readonly string[]): boolean {
  if (!filter.endsWith('.*')) return types.includes(filter)
  const start = filter.slice(0, -1)
  return types.some((type) => type.startsWith(start))
}

/** Accepted, but probably a mistake. */
export type Warning = { path: string; code: 'unknown_type'; message: string }

export function warningsOf(filters: readonly string[], unknown: readonly UnknownType[]): Warning[] {
  return unknown.map(({ type, suggestion }) => ({
    path: `types[${filters.indexOf(type)}]`,
    code: 'unknown_type',
    message: `No event has the type ${type} yet.${suggestion === null ? '' : ` Did you mean ${suggestion}?`}`,
  }))
}
