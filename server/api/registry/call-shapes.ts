/** The response behind the calls on the WebMCP Tools page; the dashboard imports these types. */
import type { Quantiles, Tally, Totals } from '../../dashboard/shapes.ts'

/** Calls of one tool name at one site, registered or not. */
export interface ToolCallRow {
  siteId: string
  name: string | null // null: all names beyond 1,000 per hour
  count: number
  before: number // in the previous period
  outcomes: { [outcome: string]: number }
  lastHour: string | null // the hour of the last call in the period
  took: Quantiles | null // null: no call had a duration
}

export interface ToolCalls extends Totals {
  executed: Tally
  rows: ToolCallRow[]
  sitesLeftOut: number // sites with tools that were not counted
}
