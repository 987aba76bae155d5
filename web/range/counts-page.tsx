/** The frame of a page of counts: controls, filters, errors, empty states, and stale numbers dimmed. */
import './counts-page.css'
import { choiceOf, chooseRange, rangeWords } from './range.ts'
import { OtherRanges, withoutFilters } from './other-ranges.tsx'
import { useComputed } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import { FirstEvent } from '../components/page-frame.tsx'
import { Problem } from '../components/problem.tsx'
import { sampleType, type SampleKind } from '../components/copy.tsx'
import { place, query } from '../app/router.ts'
import { overview } from '../app/session.ts'
import { PeriodLine, RangeBar } from './range-bar.tsx'
import { chooseZone } from '../app/clock.ts'
import { FilterValue } from '../components/key-label.tsx'
import { counted } from '../text/format.ts'
import { filterHref, filterable, filtersOf, logsHref } from './filters.tsx'
import type { CountsModel } from './counts-query.ts'
import type { ComponentChildren } from 'preact'
import type { PeriodView } from '../api/api.ts'

interface CountsPageProps<T extends { period: PeriodView }> {
  title: string
  missing: string // title of the empty state: "No agents yet"
  nouns: string // what the page counts: "visits"
  kind: SampleKind
  allTypes?: boolean // the page counts events of every type, not only of the sample's
  model: CountsModel<T>
  /** True if the page counts this event type. */
  isMine: (type: string) => boolean
  isEmpty: (data: T) => boolean // True if the range has no data
  children: (data: T) => ComponentChildren
  more?: ComponentChildren // further controls of the bar
  above?: ComponentChildren // above everything else, also when the page is empty
}

export function CountsPage<T extends { period: PeriodView }>(props: CountsPageProps<T>) {
  const { model, title } = props
  const data = model.data.value
  const error = model.error.value
  const noneOfMine = useComputed(
    () => overview.value !== null && !Object.keys(overview.value.byType).some(props.isMine),
  )
  const never = noneOfMine.value && (data === null || props.isEmpty(data)) && error === null
  // Renders when the counts change, but not when only the connection or the stale mark does.
  const drawn = useMemo(() => data && props.children(data), [data])
  return (
    <>
      <RangeBar title={title} period={data?.period ?? null} connection={model.connection} more={props.more} />
      <div class="page counts-page" aria-busy={data === null || model.stale.value}>
        {props.above}
        {error && <CountsProblem model={model} />}
        {never && (
          <FirstEvent
            title={props.missing}
            lead={
              props.allTypes ? (
                `${title} counts events of every type.`
              ) : (
                <>
                  {title} shows <code>{sampleType(props.kind)}</code> events.
                </>
              )
            }
            kind={props.kind}
            watch
          />
        )}
        {data && !never && (
          <div class={model.stale.value || error ? 'counts stale' : 'counts'}>
            <PeriodLine period={data.period} />
            <CountFilters period={data.period} />
            {!data.period.complete && <TooMuch />}
            {data.period.complete && props.isEmpty(data) && (
              <NothingHere period={data.period} nouns={props.nouns} />
            )}
            {data.period.complete && drawn}
          </div>
        )}
      </div>
    </>
  )
}

function CountsProblem<T>({ model }: { model: CountsModel<T> }) {
  const error = model.error.value
  if (!error) return null
  if (error.code !== 'invalid_query') return <Problem error={error} />
  if (error.issues.some(({ path }) => path === 'zone')) {
    return (
      <Problem error={error}>
        <button type="button" class="button" onClick={() => chooseZone('UTC')}>
          Show times in UTC
        </button>
      </Problem>
    )
  }
  return (
    <Problem error={error}>
      <a class="button" href={place.value.path}>
        Show the last 7 days
      </a>
    </Problem>
  )
}

/** Shown above the numbers, which stay visible for comparison with the period before. */
function NothingHere({ period, nouns }: { period: PeriodView; nouns: string }) {
  const choice = choiceOf(query.value)
  return (
    <section class="panel nothing-here">
      <h2>
        No {nouns} {rangeWords(period)}
      </h2>
      {period.filters.length > 0 && <p class="muted">No {nouns} match these filters.</p>}
      {period.filters.length === 0 && choice.siteIds.length > 0 && (
        <p class="muted">No {nouns} from this site.</p>
      )}
      <OtherRanges period={period}>
        {choice.siteIds.length > 0 && (
          <button type="button" class="button" onClick={() => chooseRange({ siteIds: [] })}>
            All sites
          </button>
        )}
      </OtherRanges>
    </section>
  )
}

/** The filters of a page of counts as chips, what they exclude, and a link to the events in Logs. */
function CountFilters({ period }: { period: PeriodView }) {
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
            <b>
              <FilterValue {...filter} />
            </b>
            <span aria-hidden="true">×</span>
          </a>
        ))}
        <a class="button quiet" href={withoutFilters()}>
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

/** Shows no numbers, because a count of only some events would be wrong. */
function TooMuch() {
  return (
    <section class="panel nothing-here">
      <h2>Too many events to count with these filters</h2>
      <p class="muted">Counting stopped after 5 s. Choose a shorter range or clear the filters.</p>
      <p class="button-row">
        {(['24h', '7d'] as const).map((range) => (
          <button
            type="button"
            class="button"
            key={range}
            onClick={() => chooseRange({ range, since: null, until: null })}
          >
            {range === '24h' ? 'Last 24 hours' : 'Last 7 days'}
          </button>
        ))}
        <a class="button" href={withoutFilters()}>
          Clear filters
        </a>
      </p>
    </section>
  )
}
