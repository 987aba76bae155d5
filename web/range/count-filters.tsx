/** The filters of a page of counts as chips, what they leave uncounted, and the way to the events behind them. */
import { chooseRange } from './choose-range.ts'
import type { PeriodView } from '../api/api.ts'
import { Text } from '../components/text.tsx'
import { counted } from '../text/format.ts'
import { place, query, withQuery } from '../app/router.ts'
import { filterable, filterHref, filtersOf } from './filters.ts'
import { logsHref } from './logs-link.ts'

const without = (): string => place.value.path + withQuery(place.value.search, { filter: [] })

export function CountFilters({ period }: { period: PeriodView }) {
  const filters = filtersOf(query.value)
  if (filters.length === 0) return null
  const unknown = filters.filter(({ name }) => filterable[name]?.logs == null)
  const words = [...new Set(unknown.map(({ name }) => filterable[name]?.word ?? name))].join(', ')
  const { siteIds, since, until } = period
  return (
    <>
      <div class="count-filters" role="group" aria-label="Filters">
        {filters.map((filter) => (
          <a key={`${filter.name}:${filter.value}`} class="button filter-chip" href={filterHref(filter)}>
            <span class="visually-hidden">Remove filter </span>
            {filterable[filter.name]?.word ?? filter.name}{' '}
            <b>{filter.value === '' ? 'none' : <Text value={filter.value} max={32} />}</b>
            <span aria-hidden="true">×</span>
          </a>
        ))}
        <a class="button quiet" href={without()}>
          Clear filters
        </a>
        <a class="button quiet" href={logsHref({ siteIds, since, until })}>
          Open in Logs
        </a>
        {unknown.length > 0 && <small class="muted">Logs cannot filter by {words}.</small>}
      </div>
      {period.expired > 0 && (
        <p class="muted">
          Filtered counts cover stored events only. Retention deleted up to {counted(period.expired, 'event')}{' '}
          in this range that may match.
        </p>
      )}
    </>
  )
}

/** Nothing is drawn then: a number of a part of the events would be wrong. */
export function TooMuch() {
  return (
    <section class="panel nothing-here">
      <h2>Too many events to count with these filters</h2>
      <p class="muted">Counting stopped after 5 s. Choose a shorter range or clear the filters.</p>
      <p>
        {(['24h', '7d'] as const).map((range) => (
          <>
            <button
              type="button"
              class="button"
              key={range}
              onClick={() => chooseRange({ range, since: null, until: null })}
            >
              {range === '24h' ? 'Last 24 hours' : 'Last 7 days'}
            </button>{' '}
          </>
        ))}
        <a class="button" href={without()}>
          Clear filters
        </a>
      </p>
    </section>
  )
}
