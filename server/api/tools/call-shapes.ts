/** What the page of tools is told about calls; the dashboard takes these types. */
import type { Quantiles, Tally, Totals } from '../../dashboard/shapes.ts'

/** Calls of one name at one site, whether the site has such a tool or not. */
export interface ToolCallRow {
  siteId: string
  name: string | null // null: the names beyond a thousand in an hour, together
  count: number
  before: number // in the time before
  outcomes: { [outcome: string]: number }
  lastHour: string | null // the hour in which the last call of the period began
  took: Quantiles | null // null: no call came with a duration
}

export interface ToolCalls extends Totals {
  executed: Tally
  rows: ToolCallRow[]
  sitesLeftOut: number // of those with tools: too many to count one by one
}
