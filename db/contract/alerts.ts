/** Alert rules and alerts, as stored: rules of a fixed kind, rules that compare a measure, and their incidents. */
import type { Json } from './audit.ts'

export type RuleKind =
  'new_vendor' | 'blocked_share' | 'tool_error_rate' | 'silence' | 'key_leaked' | 'measure'

/** The settings of a rule of a fixed kind; null where its kind has none. */
export interface RuleNumbers {
  threshold: number | null // share from 0 to 1
  minutes: number | null // of silence
  eventsMin: number | null // ignored below this many events
}

/** Values by field, as in the filters of contract §6; a list matches any of its values. */
export interface RuleFilter {
  [field: string]: string[]
}

export type Measure = 'count' | 'errors' | 'share' | 'sessions' | 'subjects' | 'p95' | 'tokens'

export type Condition =
  | { kind: 'above' | 'below'; value: number }
  /** Against the same hour of the week in the past weeks: median, and deviations of the size of the usual noise. */
  | { kind: 'change'; direction: 'up' | 'down' | 'both'; deviations: number; weeks: number }
  | { kind: 'absence' }

/** A rule of the kind `measure`. */
export interface MeasureDefinition {
  filter: RuleFilter
  measure: Measure
  of: RuleFilter | null // the part of a share; null for other measures
  condition: Condition
  windowMinutes: number
  forMinutes: number // pending before it fires
  keepFiringMinutes: number // after the condition no longer holds
  noData: 'ok' | 'alert'
  eventsMin: number // ignored below this many events
  groupBy: string | null
  groupsMax: number
  notifyPending: boolean
}

export interface Rule extends RuleNumbers {
  id: string // rul_…
  orgId: string
  endpointId: string
  kind: RuleKind
  createdAtMs: number
  name: string // '' for fixed kinds without a name of their own
  definition: MeasureDefinition | null // null for fixed kinds
  fromFile: boolean // defined in the setup file, and only changed there
  silencedUntilMs: number | null // it opens no alert before
}

export type RuleChange = Partial<
  RuleNumbers & Pick<Rule, 'endpointId' | 'name' | 'definition' | 'silencedUntilMs'>
>

export interface Incident {
  id: string // inc_…
  orgId: string
  ruleId: string
  subject: string // the vendor, tool, key or group concerned; '' for the whole organization
  state: 'pending' | 'firing' // as long as it is not resolved
  openedAtMs: number // when its condition began to hold; once it fires, when it fired
  clearSinceMs: number | null // its condition no longer holds; it resolves when it stays so
  resolvedAtMs: number | null
  acknowledgedAtMs: number | null // while it was open
  acknowledgedBy: string | null // the actor, as in the audit log
  data: { [member: string]: Json }
}

export interface IncidentQuery {
  orgId: string
  isOpen: boolean | null
  limit: number
}
