/** How often site memory was read and changed over a period, from the events that say so. */
import { noTally, totalsOf, typeCounts } from '../../dashboard/type-counts.ts'
import { type Period, periodView } from '../../dashboard/period.ts'
import type { Store } from '../../../db/contract/store.ts'
import type { KnaphCounts } from './use-shapes.ts'

export async function knaphCounts(
  { store }: { store: Pick<Store, 'events' | 'sites'> },
  orgId: string,
  period: Period,
): Promise<KnaphCounts> {
  const [sites, counts] = await Promise.all([
    store.sites.list(orgId),
    typeCounts(store.events, orgId, period),
  ])
  return {
    period: periodView(period, sites),
    totals: totalsOf(counts),
    accessed: counts.types.get('memory.accessed') ?? noTally(period),
    updated: counts.types.get('memory.updated') ?? noTally(period),
  }
}
