/** The response behind the Knaph page's counts; the dashboard imports these types. */
import type { Tally, Totals } from '../../dashboard/shapes.ts'

export interface KnaphCounts extends Totals {
  accessed: Tally
  updated: Tally
}
