/** Which verdicts count: those that the appliance vouches for, unless a filter names its judges. */
import type { EventFilter } from '../contract/event-fields.ts'
import { vouchedJudges } from '../contract/provenance.ts'

/**
 * The filter as counts read it: `verdicts` are those of the appliance and those stored before judges were recorded, not
 * what a sender says of itself.
 */
export function onlyVouched<Filter extends Pick<EventFilter, 'verdicts' | 'judges'>>(filter: Filter): Filter {
  if (filter.verdicts === undefined || filter.judges !== undefined) return filter
  return { ...filter, judges: [...vouchedJudges] }
}
