/** The responses behind the Detect, Auth, Authz and Analytics pages; the dashboard imports these types. */

import type { CountedName } from '../../db/contract/store.ts'
export type { CountedName }

export type RangeName = '24h' | '7d' | '30d' | '90d' | '12m' | 'all' | 'custom'

/** Times are ISO 8601; step `n` is between `edges[n]` and `edges[n + 1]`. */
export interface PeriodView {
  range: RangeName
  zone: string // the time zone of the steps
  since: string
  until: string // exclusive
  before: { since: string; until: string } // the previous period; empty for "all" and where counts expired
  now: string // the server's time of counting
  stepHours: number // a day is always 24, a month 730, a year 8,760
  edges: number[] // in milliseconds; the last is the end of the last step
  onTheHour: boolean // false: days of the zone start inside a UTC hour, so steps are rounded down to it
  siteIds: string[] // [] = every site
  filters: { name: string; value: string }[]
  expired: number // upper bound of the matching events that retention deleted
  complete: boolean // false: too many events to count in time; nothing was counted
  sites: { siteId: string; name: string | null }[] // to choose from
}

export type UnitName = 'requests' | 'visits'

/** The unit in which sites, agents and pages are compared (contract §19). Requests and visits are never added. */
export interface Unit {
  name: UnitName
  /** The events that are counted: of the unit, or of the one other type that the page's filter names. */
  type: string
  label: string // of `type`: "Requests"
  comparable: boolean // false: a site was counted in the other unit in the previous period
  beside: { visits: number; sites: number } | null // visits of sites without requests, among sites with requests
}

/** In every response of counts, so that the navigation shows the same numbers as the page. */
export interface Totals {
  period: PeriodView
  totals: { [type: string]: number } // events of the period by type
  unit: Unit
}

export interface PeriodCount {
  count: number
  before: number // in the previous period
  steps: number[]
}

/** Events of one or several types. */
export interface EventCounts extends PeriodCount {
  outcomes: { [outcome: string]: PeriodCount }
}

export interface BreakdownRow {
  value: string | null // null: all values beyond 1,000 per hour
  count: number
  before: number
  outcomes: { [outcome: string]: number }
  steps: number[] | null // of the largest values only
}

/** Events by the values of one field. Events without the field are in no row. */
export interface BreakdownView {
  rows: BreakdownRow[] // most first
  more: { values: number; count: number; before: number } | null // values beyond the maximum of rows
}

export interface DetectCounts extends Totals {
  detected: EventCounts
  missed: EventCounts
  classes: BreakdownView
  vendors: BreakdownView
  decided: BreakdownView // decisions by vendor, for their blocked share
  names: BreakdownView
  purposes: BreakdownView
  agents: AgentRow[] // most first
  requested: EventCounts // requests by agents in access logs
  referred: EventCounts // people whom an assistant sent
}

/** Requests by agents in access logs, and people whom an assistant sent. */
export interface DetectRequests {
  verdicts: BreakdownView // of the appliance, and those stored before judges were recorded
  judgements: JudgementCount[] // who gave verdicts, and who saw what was judged; most first
  unjudged: Unjudged | null // null: the judge of every verdict is recorded
  purposes: BreakdownView
  referrers: BreakdownView // assistants
  all: { requests: PeriodTotal; agents: PeriodTotal } | null // null: the range has no access log, or filters
}

/** Requests with one verdict, by its judge and the key behind it. */
export interface JudgementCount extends PeriodTotal {
  verdict: string | null // null: a word of the sender that is no known verdict
  judgedBy: 'appliance' | 'sender'
  by: string | null // the observer of the appliance's verdict, or the key of the sender; null: beyond the limit
  label: string | null // of the key; null: it was deleted, or `by` is no key
}

/** Verdicts that were stored before the appliance recorded judges. They count as its own. */
export interface Unjudged {
  count: number
  before: string | null // when an upgrade began to record judges; null: in another database, before a copy
}

export interface PeriodTotal {
  count: number
  before: number
}

/** The stored requests, counted one by one. */
export interface DetectClaims {
  agents: AgentRequests[] // most first
  pages: PageRequests[] // most first
  impostors: Impostor[] // most first
  complete: boolean // false: too many events to count in time; nothing was counted
}

export interface RequestCounts {
  requests: number
  refused: number
  failed: number
}

export interface AgentRequests extends RequestCounts {
  vendor: CountedName
  name: CountedName
  verified: number
  claimed: number // consistent or unverifiable
  contradicted: number
  disallowed: number // by the robots.txt in force
}

/** Responses to the newest requests by agents, by class of status, and their bytes. */
export interface DetectResponses {
  agents: AgentResponses[] // most requests first
  looked: number // requests
  complete: boolean // they are all requests of the period
}

export interface AgentResponses {
  vendor: string | null
  name: string | null
  requests: number
  success: number // 1xx and 2xx
  redirect: number // 3xx
  refusal: number // 4xx
  failure: number // 5xx
  bytes: number
}

/** A page, or pages of one shape: `/products/*`. */
export interface PageRequests extends RequestCounts {
  page: string | null // null: pages beyond the limit
  pages: number // more than 1 for a shape
}

/** Requests that claim to be an agent and are not. */
export interface Impostor {
  vendor: string | null
  name: string | null
  requests: number
  lastAt: string | null // null: older than the newest requests that were read
  pages: Named[] // of the newest requests, most first
  evidence: { [field: string]: string | number } | null // of the newest one
}

/** Detections of one name and purpose of a vendor; detections with neither are in no row. */
export interface AgentRow {
  vendor: CountedName
  name: CountedName
  purpose: CountedName
  count: number
  before: number
  blocked: number // of its decisions
}

export interface AuthCounts extends Totals {
  presented: EventCounts
  cleared: EventCounts
  protocols: BreakdownView
  trusts: BreakdownView
  vendors: BreakdownView
}

export interface AuthzCounts extends Totals {
  evaluated: EventCounts
  decisions: BreakdownView
  tools: BreakdownView
  rules: BreakdownView
  reasons: BreakdownView
  vendors: BreakdownView
}

export interface WeekCounts extends Totals {
  all: EventCounts // events of every type: for an empty range only, because requests and visits are never added
  counted: EventCounts // in the unit
  types: { [type: string]: EventCounts }
  headlines: HeadlineCount[] // the unit first; without those that have no events in the range and the previous one
}

/** A number of events of one type. */
export interface HeadlineCount {
  name: string
  count: number
  before: number | null // null: not comparable, because the previous period was counted in another unit
  type: string
  outcomes: string[] | null // null: every outcome
}

export interface AnalyticsCounts extends WeekCounts {
  classes: BreakdownView // in the unit, as vendors and pages
  vendors: BreakdownView
  tools: BreakdownView
  pages: BreakdownView
  protocols: BreakdownView
  rules: BreakdownView
}

/** Durations of calls, within 2 %; blocked and failed calls count when they have a duration. */
export interface Quantiles {
  count: number // calls with a duration, exact
  p50Ms: number
  p95Ms: number
  p99Ms: number
}

/** Durations of tool calls per step, within 2 %. Null: no call had a duration. */
export interface CallDurations {
  period: PeriodView
  whole: Quantiles | null
  steps: (Quantiles | null)[]
}

/** Active agents per UTC month and day, the current one last. Sessions and subjects have a standard error of 1.6 %. */
export interface ActiveAgents {
  months: { month: string; vendors: number; detections: number; sessions: number; subjects: number }[]
  days: { day: string; sessions: number; subjects: number }[] // the last thirty
  now: string
}

export interface Named {
  name: string
  count: number
}

/** Detections by class and vendor; vendors beyond the maximum count as `other`. */
export interface DetectMatrix {
  counted: number // all except those that retention deleted before an upgrade added these counts
  cells: { class: CountedName; vendor: CountedName; count: number }[]
}

/** Detections by the highest trust of any event in their session. */
export interface DetectTrust {
  rows: { trust: string | null; count: number; sessions: number }[] // highest first; null: no known trust
  complete: boolean // false: too many sessions; the rows are of a sample, with their detections
  isTooMuch: boolean // too many events in the range to read: `rows` is empty
}

/** The newest events; `complete` when they are all of the period. */
export interface VendorDetail {
  unit: Unit
  count: number // in the unit, all of the period, exact
  firstAt: string | null // in the period: the exact time if known, else the hour
  firstIsHour: boolean
  lastAt: string | null
  looked: number
  complete: boolean
  sessions: number
  classes: Named[]
  trusts: Named[]
  pages: Named[]
  tools: Named[]
  userAgents: Named[]
  subjects: Named[]
}

export interface IdentityDetail {
  looked: number
  complete: boolean
  failures: Named[]
  subjects: {
    subject: string
    protocol: string
    trust: string
    vendor: string
    count: number
    lastAt: string
  }[]
}

/** The context of a decision: its session up to then, and the tool's descriptor at the time. */
export interface Why {
  receivedAt: string
  event: unknown
  earlier: { receivedAt: string; event: unknown }[] // newest first, without the decision itself
  earlierComplete: boolean
  tool: { version: number; since: string; description: string | null } | null
}

/** What Overview reports: a claim of another's name, refusals and errors that began, and what is new. */
export type ChangeKind =
  'impostor' | 'refusedOperator' | 'refusingRule' | 'failingTool' | 'failingOperator' | 'operator' | 'tool'

/** Exact counts of one value, by the hour of `occurredAt`. */
export interface Change {
  kind: ChangeKind
  /** The operator, rule or tool; the name that an impostor claims. */
  name: string
  claims: { vendor: string | null; agent: string | null } | null // of an impostor
  /** What `count` counts, of a new operator: events where it has neither requests nor visits. */
  unit: UnitName | 'events' | null
  count: number // since `since`
  before: number // in the 30 days before; 0 for everything new
  /** Requests or calls of which `count` and `before` failed; null for what is new. */
  of: { count: number; before: number } | null
  steps: number[] // between the edges
}

export interface Changes {
  since: string // the start of the hour
  until: string
  comparedSince: string // 30 days before `since`
  edges: number[] // in milliseconds: from about 7 days before `since`
  changes: Change[]
  /** How many more of each kind there are. */
  more: Partial<Record<ChangeKind, number>>
  /** False: no events in the 30 days before, so nothing is compared. */
  compared: boolean
  /** False: too many contradicted requests to count, so impostors are missing. */
  complete: boolean
}
