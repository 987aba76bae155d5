/** What the audit log asks for and how it tells an entry. */
import type { AuditEntry, Metadata } from '../../identity-api.ts'

export interface AuditFilter {
  q: string
  action: string
  since: string
  until: string
}

export const noFilter: AuditFilter = { q: '', action: '', since: '', until: '' }

/** The filter as query parameters; `until` names a day that is meant whole. */
export function filterParams(filter: AuditFilter): URLSearchParams {
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries(filterBody(filter))) params.set(name, value)
  return params
}

export function filterBody({ q, action, since, until }: AuditFilter): { [member: string]: string } {
  return {
    ...(q === '' ? {} : { q }),
    ...(action === '' ? {} : { action }),
    ...(since === '' ? {} : { since }),
    ...(until === '' ? {} : { until: dayAfter(until) }),
  }
}

function dayAfter(day: string): string {
  const ms = Date.parse(`${day}T00:00:00Z`)
  return Number.isNaN(ms) ? day : new Date(ms + 86_400_000).toISOString().slice(0, 10)
}

export const actionGroups = [
  { value: '', text: 'everything' },
  { value: 'session.*', text: 'signing in and out' },
  { value: 'account.*', text: 'accounts' },
  { value: 'member.*', text: 'roles and removals' },
  { value: 'invitation.*', text: 'invitations' },
  { value: 'ingest_key.*', text: 'ingest keys' },
  { value: 'secret_key.*', text: 'secret keys' },
  { value: 'site.*', text: 'sites' },
  { value: 'org.*', text: 'the organization' },
  { value: 'webhook.*', text: 'webhooks' },
  { value: 'audit.*', text: 'exports and trims of this log' },
  { value: 'traces.*', text: 'exports of events' },
] as const

export interface Difference {
  name: string
  before: string
  after: string
}

/** What an entry says changed, member by member; empty when it tells no before and after. */
export function differences(metadata: Metadata): Difference[] {
  const before = membersOf(metadata['before'])
  const after = membersOf(metadata['after'])
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  return names
    .map((name) => ({ name, before: shown(before[name]), after: shown(after[name]) }))
    .filter((each) => each.before !== each.after)
}

/** The other members, as a person reads them. */
export function facts(metadata: Metadata): { name: string; value: string }[] {
  return Object.entries(metadata)
    .filter(([name]) => name !== 'before' && name !== 'after')
    .map(([name, value]) => ({ name, value: shown(value) }))
}

export function actorText({ actor, actorName }: Pick<AuditEntry, 'actor' | 'actorName'>): string {
  return actorName ?? actor
}

function membersOf(value: unknown): Metadata {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Metadata) : {}
}

function shown(value: unknown): string {
  if (value === undefined || value === null) return 'none'
  return typeof value === 'string' ? value : JSON.stringify(value)
}
