/** What the Knaph page is told about the use of site memory; the dashboard takes these types. */
import type { PeriodView, Tally } from '../dashboard/shapes.ts'

export interface KnaphCounts {
  period: PeriodView
  accessed: Tally
  updated: Tally
}
