/** What the Knaph page is told about the use of site memory; the dashboard takes these types. */
import type { Tally, Totals } from '../../dashboard/shapes.ts'

export interface KnaphCounts extends Totals {
  accessed: Tally
  updated: Tally
}
