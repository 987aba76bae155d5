/** The frame of a page of counts: bar, empty states, problems, and old numbers dimmed while new ones come. */
import './counts-page.css'
import type { ComponentChildren } from 'preact'
import type { PeriodView } from '../api.ts'
import { FirstEvent } from '../components/first-event.tsx'
import { Problem } from '../components/problem.tsx'
import { type SampleKind, sampleType } from '../curl.ts'
import { place, query } from '../router.ts'
import { overview } from '../session.ts'
import type { CountsModel } from './counts-model.ts'
import { choiceOf, rangeWords } from './range.ts'
import { PeriodLine, RangeBar } from './range-bar.tsx'
import { chooseRange } from './use-counts.ts'

interface CountsPageProps<T extends { period: PeriodView }> {
  title: string
  missing: string // title of the empty state: "No agents yet"
  kind: SampleKind
  model: CountsModel<T>
  /** Whether events of the page were ever kept. */
  isMine: (type: string) => boolean
  isEmpty: (data: T) => boolean // nothing in this range
  children: (data: T) => ComponentChildren
}

export function CountsPage<T extends { period: PeriodView }>(props: CountsPageProps<T>) {
  const { model, title } = props
  const data = model.data.value
  const error = model.error.value
  const seen = overview.value
  const never =
    seen !== null &&
    !Object.keys(seen.byType).some(props.isMine) &&
    (data === null || props.isEmpty(data)) &&
    error === null
  return (
    <>
      <RangeBar title={title} period={data?.period ?? null} connection={model.connection.value} />
      <div class="page counts-page" aria-busy={data === null || model.stale.value}>
        {error && <CountsProblem model={model} />}
        {never && (
          <FirstEvent
            title={props.missing}
            lead={
              <>
                {title} fills from <code>{sampleType(props.kind)}</code> events.
              </>
            }
            kind={props.kind}
            watch
          />
        )}
        {data && !never && (
          <div class={model.stale.value || error ? 'counts stale' : 'counts'}>
            <PeriodLine period={data.period} />
            {props.isEmpty(data) && <NothingHere period={data.period} />}
            {props.children(data)}
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
  return (
    <Problem error={error}>
      <a class="button" href={place.value.path}>
        Show the last 7 days
      </a>
    </Problem>
  )
}

/** Said above the numbers, which stay: nothing now is an answer beside what was before. */
function NothingHere({ period }: { period: PeriodView }) {
  const choice = choiceOf(query.value)
  return (
    <section class="panel nothing-here">
      <h2>Nothing {rangeWords(period)}</h2>
      <p class="muted">
        {choice.siteIds.length > 0
          ? 'No event of this page came from the chosen site in this time.'
          : 'No event of this page has its time in this range.'}
      </p>
      <p>
        {choice.range !== '30d' && (
          <button
            type="button"
            class="button"
            onClick={() => chooseRange({ range: '30d', since: null, until: null })}
          >
            Last 30 days
          </button>
        )}{' '}
        {choice.siteIds.length > 0 && (
          <button type="button" class="button" onClick={() => chooseRange({ siteIds: [] })}>
            All sites
          </button>
        )}
      </p>
    </section>
  )
}
