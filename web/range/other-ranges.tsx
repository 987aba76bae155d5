/** Buttons of an empty page of counts: longer ranges, and no filters. */
import type { ComponentChildren } from 'preact'
import { place, withQuery } from '../app/router.ts'
import { chooseRange, longerRanges, runningRanges } from './range.ts'
import type { PeriodView } from '../api/api.ts'

interface OtherRangesProps {
  period: PeriodView
  children?: ComponentChildren // further buttons
}

export function OtherRanges({ period, children }: OtherRangesProps) {
  return (
    <p class="button-row">
      {longerRanges(period).map((range) => (
        <button
          type="button"
          class="button"
          key={range}
          onClick={() => chooseRange({ range, since: null, until: null })}
        >
          {runningRanges[range]}
        </button>
      ))}
      {period.filters.length > 0 && (
        <a class="button" href={withoutFilters()}>
          Clear filters
        </a>
      )}
      {children}
    </p>
  )
}

/** The address of the page without its filters. */
export function withoutFilters(): string {
  return place.value.path + withQuery(place.value.search, { filter: [] })
}
