/** Logs: the newest events, live and filtered by the URL. Each opens in a drawer. */
import './page.css'
import { prefetchQuery, readCache, writeCache } from '../../query/query.ts'
import { useRestart } from '../../query/use-query.ts'
import { batch, useComputed, useSignal, useSignalEffect } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import { api, type ApiError, type EventFilter, type ReceivedEvent } from '../../api/api.ts'
import { filterParams } from '../../api/event-shapes.ts'
import { FirstEvent, PageBar } from '../../components/page-frame.tsx'
import { Problem } from '../../components/problem.tsx'
import { count, counted } from '../../text/format.ts'
import { isRefused } from '../../live/live.ts'
import { navigate, place, query, withQuery } from '../../app/router.ts'
import { prerender } from '../../components/rendering.tsx'
import { overview, refreshOverview } from '../../app/session.ts'
import { useShortcuts, type Shortcut } from '../../app/shortcuts.ts'
import { EventDrawer } from './drawer.tsx'
import { filterOf, hasText, isOpen } from './filter.ts'
import { FilterBar } from './filter-bar.tsx'
import { FindBar, longerTimes } from './find-bar.tsx'
import { Histogram, histogramQuery } from './histogram.tsx'
import { createLogsModel, pageSize, type LogsModel, type LogsSource } from './model.ts'
import { EventTable, focusTable, scrollTableToTop } from './table.tsx'

const source: LogsSource = {
  events: api.events,
  live: api.live,
  readCached: (filter) => readCache<ReceivedEvent[]>(`logs?${filterParams(filter)}`),
  writeCached: (filter, events) => writeCache(`logs?${filterParams(filter)}`, events),
}

const anyEvent: EventFilter = { types: [], outcomes: [] }

export const prefetch = async () => {
  const fetch = async (stop: AbortSignal) => (await api.events(anyEvent, { limit: pageSize }, stop)).events
  await prefetchQuery({ key: 'logs?', fetch })
  await prefetchQuery(histogramQuery(anyEvent))
  // Renders cached data and fetches nothing.
  const model = createLogsModel({ ...source, events: never, live: never })
  model.start(anyEvent)
  await prerender(<Shown model={model} filter={anyEvent} active={{ value: null }} opened={null} />)
  model.stop()
}

const never = () => new Promise<never>(() => {})

/** Opens an event beside the table, or closes it (null). Moving between events adds no history entries. */
function showEvent(id: string | null): void {
  const currentPlace = place.peek()
  const open = new URLSearchParams(currentPlace.search).has('event')
  const search = withQuery(currentPlace.search, { event: id === null ? [] : [id] })
  navigate(currentPlace.path + search, { replace: open })
}

export default function LogsPage() {
  const model = useMemo(() => createLogsModel(source), [])
  // Only a changed filter restarts the model. Opening an event changes the URL, too.
  const filterText = useComputed(() => JSON.stringify(filterOf(query.value)))
  useRestart(filterText, (filter) => model.start(JSON.parse(filter) as EventFilter))
  useEffect(() => () => model.stop(), [])
  useFirstArrival(model)
  const active = useSignal<string | null>(query.peek().get('event'))
  useLogsShortcuts(model, active)
  const filter = filterOf(query.value)
  const opened = query.value.get('event')
  return (
    <>
      <PageBar title="Logs">
        <StreamStatus model={model} />
      </PageBar>
      <Shown model={model} filter={filter} active={active} opened={opened} />
    </>
  )
}

interface ShownProps {
  model: LogsModel
  filter: EventFilter
  active: { value: string | null }
  opened: string | null
}

function Shown({ model, filter, active, opened }: ShownProps) {
  return (
    <div class={opened === null ? 'logs' : 'logs with-drawer'}>
      <div class="logs-tools">
        <FilterBar filter={filter} outcomesSeen={model.outcomesSeen.value} entries={model.entries} />
        <FindBar />
      </div>
      {model.loaded.value && (model.entries.value.length > 0 || !isOpen(filter)) && (
        <Histogram model={model} filter={filter} />
      )}
      <LogsBody model={model} filter={filter} active={active} opened={opened} />
    </div>
  )
}

function LogsBody({ model, filter, active, opened }: ShownProps) {
  const filterIsOpen = isOpen(filter)
  const open = (id: string): void => {
    batch(() => {
      active.value = id
      showEvent(id)
    })
  }
  if (isRefused(model.error.value) && model.error.value) return <WrongFilter error={model.error.value} />
  if (model.error.value) return <Problem error={model.error.value} onRetry={model.retry} />
  if (!model.loaded.value) return <div class="logs-split" aria-busy="true" />
  const empty = model.entries.value.length === 0
  return (
    <div class={model.stale.value ? 'logs-split stale' : 'logs-split'} aria-busy={model.stale.value}>
      {empty && filterIsOpen && opened === null ? (
        <FirstEvent title="No events yet" lead="Events appear here as they arrive." kind="agent" />
      ) : empty && opened === null ? (
        <NothingMatches searching={model.loadingOlder.value} />
      ) : (
        <EventTable model={model} activeId={active.value} openedId={opened} onOpen={open} />
      )}
      {opened !== null && <EventDrawer key={opened} id={opened} onClose={() => showEvent(null)} />}
    </div>
  )
}

/** A filter in the address that the server rejects: which one, and a link without it. */
function WrongFilter({ error }: { error: ApiError }) {
  const names = error.issues.map(({ path }) => path)
  const knownNames = [...new Set(query.value.keys())].filter((name) => names.includes(name))
  const searchWithout = withQuery(
    place.value.search,
    Object.fromEntries(knownNames.map((name) => [name, []])),
  )
  return (
    <Problem error={error}>
      {knownNames.length > 0 && (
        <a class="button" href={place.value.path + searchWithout}>
          Remove {knownNames.join(', ')} from the filters
        </a>
      )}
    </Problem>
  )
}

function NothingMatches({ searching }: { searching: boolean }) {
  const total = overview.value?.total ?? 0
  if (searching) {
    return (
      <section class="panel no-match" aria-busy="true">
        <h2>Searching</h2>
        <p class="muted">No matches yet. Searching older events.</p>
      </section>
    )
  }
  return (
    <section class="panel no-match">
      <h2>No matching events</h2>
      <p class="muted">
        {total > 0 ? `None of the ${counted(total, 'stored event')} match these filters. ` : ''}
        {hasText(query.value) ? 'Try a longer range.' : 'New matches appear here as they arrive.'}
      </p>
      <p>
        <LongerTimes />
        <a class="button" href={place.value.path}>
          Clear filters
        </a>
      </p>
    </section>
  )
}

/** Buttons that apply the same filters to a longer time range. */
function LongerTimes() {
  const since = query.value.get('since')
  const until = query.value.get('until')
  return (
    <>
      {longerTimes(since, until, hasText(query.value)).map((time) => (
        <>
          <a
            class="button"
            key={time.name}
            href={
              place.value.path + withQuery(place.value.search, { since: time.since, until: [], event: [] })
            }
          >
            {time.name}
          </a>{' '}
        </>
      ))}
    </>
  )
}

/** The first event changes the counts of the navigation and the empty states of the other pages. */
function useFirstArrival(model: LogsModel): void {
  const hasEntries = useComputed(() => model.entries.value.length > 0)
  // Null until the request that every page begins with is answered: another one would ask the same.
  const total = useComputed(() => overview.value?.total ?? null)
  useSignalEffect(() => {
    if (hasEntries.value && total.value === 0) void refreshOverview()
  })
}

function useLogsShortcuts(model: LogsModel, active: { value: string | null }): void {
  const move = (step: number): void => {
    const entries = model.entries.peek()
    const index = entries.findIndex((entry) => entry.id === active.value)
    const next = index === -1 ? 0 : Math.max(0, Math.min(entries.length - 1, index + step))
    const entry = entries[next]
    if (!entry) return
    active.value = entry.id
    if (query.peek().has('event')) showEvent(entry.id)
    focusTable()
  }
  const pageShortcuts: Shortcut[] = [
    { keys: ['j', 'ArrowDown'], shown: 'j or ↓', does: 'Next event', run: () => move(1) },
    { keys: ['k', 'ArrowUp'], shown: 'k or ↑', does: 'Previous event', run: () => move(-1) },
    {
      keys: ['Enter'],
      shown: 'Enter',
      does: 'Open event',
      run: () => active.value && showEvent(active.value),
    },
    {
      keys: ['Escape'],
      shown: 'Esc',
      does: 'Close event',
      run: () => query.peek().has('event') && showEvent(null),
    },
    {
      keys: ['p'],
      shown: 'p',
      does: 'Pause or resume the stream',
      run: () => {
        model.pause(!model.paused.peek())
        if (!model.paused.peek()) scrollTableToTop()
      },
    },
    {
      keys: ['f'],
      shown: 'f',
      does: 'Add filter',
      run: () => document.getElementById('add-filter')?.click(),
    },
  ]
  useShortcuts(pageShortcuts)
}

/** The state of the stream (live, paused, disconnected) as a dot with a label, and the button that pauses it. */
function statusOf(model: LogsModel): { tone: string; text: string } {
  const connection = model.connection.value
  if (model.still.value && connection.state !== 'lost')
    return { tone: 'search', text: model.loadingOlder.value ? 'Searching' : 'Search (not live)' }
  // The error below names it. Retrying would not help.
  if (isRefused(model.error.value)) return { tone: 'lost', text: 'Not live' }
  if (connection.state === 'lost') return { tone: 'lost', text: 'Connection lost, retrying' }
  if (model.paused.value) {
    const waiting = model.waiting.value
    return { tone: 'paused', text: waiting === 0 ? 'Paused' : `Paused, ${counted(waiting, 'new event')}` }
  }
  if (connection.state === 'connecting') return { tone: 'connecting', text: 'Connecting' }
  return { tone: 'live', text: 'Live' }
}

function StreamStatus(props: { model: LogsModel }) {
  const { model } = props
  const { tone, text } = statusOf(model)
  const toggle = (): void => {
    model.pause(!model.paused.value)
    if (!model.paused.value) scrollTableToTop()
  }
  return (
    <>
      {/* Announces only the state: a count that changes ten times per second would never be silent. */}
      <span class="visually-hidden" role="status">
        {tone}
      </span>
      <span class={`stream-status ${tone}`} aria-hidden="true">
        <i />
        {text}
      </span>
      {!model.still.value && (
        <button type="button" class="button" onClick={toggle}>
          {model.paused.value ? 'Resume' : 'Pause'}
        </button>
      )}
    </>
  )
}
