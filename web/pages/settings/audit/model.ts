/** The filters of the audit log, and how the fields of an entry are shown. */
import { isoTime } from '../../../app/clock.ts'
import { dayStart } from '../../../app/clock.ts'
import type { Metadata } from '../../../api/identity-api.ts'

export interface AuditFilter {
  q: string
  action: string
  since: string
  until: string
}

export const noFilter: AuditFilter = { q: '', action: '', since: '', until: '' }

/** The filter as query parameters. Days are in the chosen time zone; `until` includes its whole day. */
export function filterParams(filter: AuditFilter): URLSearchParams {
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries(filterBody(filter))) params.set(name, value)
  return params
}

export function filterBody({ q, action, since, until }: AuditFilter): { [field: string]: string } {
  return {
    ...(q === '' ? {} : { q }),
    ...(action === '' ? {} : { action }),
    ...(since === '' ? {} : { since: momentOfDay(since, 0) }),
    ...(until === '' ? {} : { until: momentOfDay(until, 1) }),
  }
}

/** An invalid day is sent unchanged, so that the server's error names it. */
function momentOfDay(day: string, later: number): string {
  const ms = dayStart(day, later)
  return ms === null ? day : isoTime(ms)
}

export const actionGroups = [
  { value: '', text: 'All actions' },
  { value: 'session.*', text: 'Sign-ins and sign-outs' },
  { value: 'account.*', text: 'Accounts' },
  { value: 'member.*', text: 'Roles and removals' },
  { value: 'invitation.*', text: 'Invitations' },
  { value: 'ingest_key.*', text: 'Ingest keys' },
  { value: 'secret_key.*', text: 'Secret keys' },
  { value: 'site.*', text: 'Sites' },
  { value: 'view.*', text: 'Saved views' },
  { value: 'org.*', text: 'Organization' },
  { value: 'webhook.*', text: 'Webhooks' },
  { value: 'audit.*', text: 'Audit log exports and trims' },
  { value: 'traces.*', text: 'Event exports' },
] as const

export interface Difference {
  name: string
  before: string
  after: string
}

/** The changed fields of an entry; empty if it has no before and after. */
export function differences(metadata: Metadata): Difference[] {
  const before = fieldsOf(metadata['before'])
  const after = fieldsOf(metadata['after'])
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  return names
    .map((name) => ({ name, before: shown(before[name]), after: shown(after[name]) }))
    .filter((each) => each.before !== each.after)
}

/** All other fields of an entry's metadata, as text. */
export function facts(metadata: Metadata): { name: string; value: string }[] {
  return Object.entries(metadata)
    .filter(([name]) => !['before', 'after', 'actorLabel'].includes(name)) // shown elsewhere in the dialog
    .map(([name, value]) => ({ name, value: shown(value) }))
}

function fieldsOf(value: unknown): Metadata {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Metadata) : {}
}

function shown(value: unknown): string {
  if (value === undefined || value === null) return 'none'
  return typeof value === 'string' ? value : JSON.stringify(value)
}
