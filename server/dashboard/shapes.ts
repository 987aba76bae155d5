/** What the pages Detect, Auth, Authz and Analytics are told; the dashboard takes these types. */

import type { CountedName } from '../../db/contract/store.ts'
export type { CountedName }

export type RangeName = '24h' | '7d' | '30d' | '90d' | '12m' | 'all' | 'custom'

/** Times are ISO; step `n` lies between `edges[n]` and the next. */
export interface PeriodView {
  range: RangeName
  zone: string // whose days and hours the steps are
  since: string
  until: string // exclusive
  before: { since: string; until: string } // the hours it is compared with; empty: with none
  now: string // when it was counted, by the server's clock
  stepHours: number // a day has 24 here, also where clocks change; a month 730, a year 8,760
  edges: number[] // in milliseconds; the last is where the last step ends
  onTheHour: boolean // false: the zone's days begin inside a UTC hour, and steps are cut down to it
  siteIds: string[] // [] = every site
  filters: { name: string; value: string }[]
  expired: number // events that the filters may have taken, at most, and that retention did
  complete: boolean // false: too many events to count under these filters in time, and nothing was counted
  sites: { siteId: string; name: string | null }[] // to choose from
}

/** Every answer of a page of counts has them, so that the navigation shows the very numbers of the page. */
export interface Totals {
  period: PeriodView
  totals: { [type: string]: number } // events of the period by type
}

export interface OutcomeTally {
  count: number
  before: number // in the time before
  steps: number[]
}

/** Events of one type, or of several together. */
export interface Tally extends OutcomeTally {
  outcomes: { [outcome: string]: OutcomeTally }
}

export interface CutRow {
  value: string | null // null: the values beyond a thousand in an hour, together
  count: number
  before: number
  outcomes: { [outcome: string]: number }
  steps: number[] | null // of the largest values only
}

/** Events by the values of one member. Those without the member are in none of the rows. */
export interface Cut {
  rows: CutRow[] // most first
  more: { values: number; count: number; before: number } | null // values for which there is no room
}

export interface DetectCounts extends Totals {
  detected: Tally
  missed: Tally
  classes: Cut
  vendors: Cut
  decided: Cut // decisions by vendor, for how often each was refused
  names: Cut
  purposes: Cut
  agents: AgentRow[] // most first
}

/** Detections of one name and purpose of a vendor; those with neither are in none. */
export interface AgentRow {
  vendor: CountedName
  name: CountedName
  purpose: CountedName
  count: number
  before: number
  blocked: number // of its decisions
}

export interface AuthCounts extends Totals {
  presented: Tally
  cleared: Tally
  protocols: Cut
  trusts: Cut
  vendors: Cut
}

export interface AuthzCounts extends Totals {
  evaluated: Tally
  decisions: Cut
  tools: Cut
  rules: Cut
  reasons: Cut
  vendors: Cut
}

export interface AnalyticsCounts extends Totals {
  all: Tally
  types: { [type: string]: Tally }
  classes: Cut
  vendors: Cut
  tools: Cut
  pages: Cut
  protocols: Cut
  rules: Cut
}

/** How long calls took, off by 2 % at most; refused and failed ones count where they came with a duration. */
export interface Quantiles {
  count: number // calls with a duration, exact
  p50Ms: number
  p95Ms: number
  p99Ms: number
}

/** How long tool calls took, step by step; quantiles are off by 2 % at most. Null: no call came with a duration. */
export interface CallDurations {
  period: PeriodView
  whole: Quantiles | null
  steps: (Quantiles | null)[]
}

/** Agents of each UTC month and day, the running one last. Sessions and subjects are about: standard error 1.6 %. */
export interface ActiveAgents {
  months: { month: string; vendors: number; detections: number; sessions: number; subjects: number }[]
  days: { day: string; sessions: number; subjects: number }[] // the last thirty
  now: string
}

export interface Named {
  name: string
  count: number
}

/** Detections by class and vendor together; vendors beyond a page's count as `other`. */
export interface DetectMatrix {
  counted: number // all, but those that retention took before an upgrade brought these counts
  cells: { class: CountedName; vendor: CountedName; count: number }[]
}

/** Detections by the highest trust that any event of their session reached. */
export interface DetectTrust {
  rows: { trust: string | null; count: number; sessions: number }[] // the highest first; null: no known trust
  complete: boolean // false: there were too many sessions; some are missing, with their detections
  isTooMuch: boolean // there are too many events in the range to read them all: `rows` is empty
}

/** What the newest events say; `complete` when these are all of the period. */
export interface VendorDetail {
  events: number // all of the period, exact
  firstAt: string | null // in the period: the very time when it is known, else the hour
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

/** What led to a decision: the session up to it, and the tool's descriptor as it stood then. */
export interface Why {
  receivedAt: string
  event: unknown
  earlier: { receivedAt: string; event: unknown }[] // newest first, the decision itself left out
  earlierComplete: boolean
  tool: { version: number; since: string; description: string | null } | null
}
