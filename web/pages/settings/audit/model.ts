/** What the audit log asks for and how it tells an entry. */
import { isoTime } from '../../../app/clock.ts'
import { dayStart } from '../../../app/zone.ts'
import type { Metadata } from '../../../api/identity-api.ts'

export interface AuditFilter {
  q: string
  action: string
  since: string
  until: string
}

export const noFilter: AuditFilter = { q: '', action: '', since: '', until: '' }

/** The filter as query parameters; days are those of the chosen zone, and `until` names one that is meant whole. */
export function filterParams(filter: AuditFilter): URLSearchParams {
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries(filterBody(filter))) params.set(name, value)
  return params
}

export function filterBody({ q, action, since, until }: AuditFilter): { [member: string]: string } {
  return {
    ...(q === '' ? {} : { q }),
    ...(action === '' ? {} : { action }),
    ...(since === '' ? {} : { since: momentOfDay(since, 0) }),
    ...(until === '' ? {} : { until: momentOfDay(until, 1) }),
  }
}

/** What is no day goes to the server as it is, which says so. */
function momentOfDay(day: string, later: number): string {
  const ms = dayStart(day, later)
  return ms === null ? day : isoTime(ms)
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
  { value: 'view.*', text: 'saved views' },
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
    .filter(([name]) => !['before', 'after', 'actorLabel'].includes(name)) // the names stand elsewhere
    .map(([name, value]) => ({ name, value: shown(value) }))
}

function membersOf(value: unknown): Metadata {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Metadata) : {}
}

function shown(value: unknown): string {
  if (value === undefined || value === null) return 'none'
  return typeof value === 'string' ? value : JSON.stringify(value)
}
