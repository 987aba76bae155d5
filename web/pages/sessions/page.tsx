/** Sessions: a list of what each agent did, from its first event to its last. */
import { useRestart } from '../../query/use-query.ts'
import { type CountsModel, createLiveQuery } from '../../range/counts-query.ts'
import { prefetchQuery, type Query } from '../../query/query.ts'
import './page.css'
import { signal, useComputed, useSignal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import { type AgentSession, ApiError, type SessionPage, sessionApi } from '../../api/api.ts'
import { type Column, DataTable, everyRow } from '../../charts/data-table.tsx'
import { now } from '../../app/clock.ts'
import { filterParams } from '../../api/event-shapes.ts'
import { FirstEvent, PageBar } from '../../components/page-frame.tsx'
import { ClassMark, Vial } from '../../components/marks.tsx'
import { Problem } from '../../components/problem.tsx'
import { Text } from '../../components/text.tsx'
import { count, counted, duration, eventTime, fullTime, utcTime } from '../../text/format.ts'
import { liveText } from '../../range/range-bar.tsx'
import { navigate, place, query, withQuery } from '../../app/router.ts'
import { overview } from '../../app/session.ts'
import type { Entry } from '../logs/entries.ts'
import { filterOf, isOpen } from '../logs/filter.ts'
import { FilterBar } from '../logs/filter-bar.tsx'
import { StoryView } from './story-view.tsx'

/** Sessions have no text search, so it is left out of the query. */
function sessionParams(search: URLSearchParams): URLSearchParams {
  const params = filterParams(filterOf(search))
  for (const name of ['q', 'sessionId']) params.delete(name)
  return params
}

const sessionsQuery = (params: URLSearchParams): Query<SessionPage> => ({
  key: `sessions?${params}`,
  fetch: (stop) => sessionApi.list(params, stop),
})

export const prefetch = () => prefetchQuery(sessionsQuery(new URLSearchParams()))

function useSessions(): CountsModel<SessionPage> {
  const model = useMemo(() => createLiveQuery<SessionPage>([]), [])
  const params = useComputed(() => `${sessionParams(query.value)}`)
  useRestart(params, (text) => model.start(sessionsQuery(new URLSearchParams(text))))
  useEffect(() => () => model.stop(), [])
  return model
}

export default function SessionsPage() {
  const id = query.value.get('session')
  return id === null ? <SessionList /> : <StoryView key={id} id={id} />
}

const noEntries = signal<Entry[]>([])
const knownOutcomes = new Set(['success', 'blocked', 'error'])

function SessionList() {
  const model = useSessions()
  const data = model.data.value
  const filter = filterOf(query.value)
  const never = overview.value?.total === 0 && data?.sessions.length === 0
  const live = model.connection.value.state
  return (
    <>
      <PageBar title="Sessions">
        <span class={`live-dot ${live}`} role="status">
          <i aria-hidden="true" />
          {liveText(model.connection.value)}
        </span>
      </PageBar>
      <div class={model.stale.value ? 'page sessions stale' : 'page sessions'} aria-busy={data === null}>
        {model.error.value && <Problem error={model.error.value} onRetry={model.refetch} />}
        {never && isOpen(filter) ? (
          <FirstEvent
            title="No sessions yet"
            lead={
              <>
                Events with the same <code>sessionId</code> make a session.
              </>
            }
            kind="agent"
          />
        ) : (
          <>
            <FilterBar filter={filter} outcomesSeen={knownOutcomes} entries={noEntries} />
            {data && <List key={`${sessionParams(query.value)}`} newest={data} />}
          </>
        )}
      </div>
    </>
  )
}

const filledRows = 30

/** Older pages stay below the newest one, which follows the live stream. */
function List({ newest }: { newest: SessionPage }) {
  const older = useSignal<AgentSession[]>([])
  const cursor = useSignal<string | null | undefined>(undefined) // undefined: no older page was loaded yet
  const problem = useSignal<ApiError | null>(null)
  const next = cursor.value === undefined ? newest.nextCursor : cursor.value
  const loadMore = async (): Promise<void> => {
    if (next === null) return
    try {
      const page = await sessionApi.list(new URLSearchParams({ cursor: next }), new AbortController().signal)
      older.value = joined(joined(newest.sessions, older.value), page.sessions)
      cursor.value = page.nextCursor
      problem.value = null
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      problem.value = error
    }
  }
  const rows = joined(newest.sessions, older.value)
  // The server may return a short page to answer in time. The first view requests more until it is full.
  const short = rows.length < filledRows && next !== null && problem.value === null
  useEffect(() => void (short && loadMore()), [short, next])
  return (
    <>
      <DataTable
        title="Sessions"
        about={next === null ? counted(rows.length, 'session') : `Newest ${counted(rows.length, 'session')}`}
        csv={{
          page: 'sessions',
          table: 'list',
          all: (signal) => {
            const first = sessionParams(query.peek())
            first.set('limit', '200')
            return everyRow(async (cursor) => {
              const params = cursor === null ? first : new URLSearchParams({ cursor, limit: '200' })
              const page = await sessionApi.list(params, signal)
              return { rows: page.sessions, next: page.nextCursor }
            })
          },
        }}
        columns={columns}
        rows={rows}
        keyOf={(session) => session.id}
        sortBy="Last seen"
        onOpen={(session) => navigate(sessionHref(session.id))}
        firstRows={24}
        empty="No sessions match these filters."
      />
      {rows.length === 0 && next === null && hasTime(query.value) && (
        <p>
          <a class="button" href={place.value.path + withQuery(place.value.search, { since: [], until: [] })}>
            Any time
          </a>
        </p>
      )}
      {problem.value && <Problem error={problem.value} onRetry={() => void loadMore()} />}
      {next !== null && (
        <p>
          <button type="button" class="button" onClick={() => void loadMore()}>
            Load older
          </button>
        </p>
      )}
    </>
  )
}

const hasTime = (search: URLSearchParams): boolean => search.has('since') || search.has('until')

/** Each session once. The first list is newer and wins. */
function joined(first: AgentSession[], second: AgentSession[]): AgentSession[] {
  const ids = new Set(first.map((session) => session.id))
  return [...first, ...second.filter((session) => !ids.has(session.id))]
}

function sessionHref(id: string): string {
  return place.value.path + withQuery(place.value.search, { session: [id] })
}

const countIn = (counts: { [name: string]: number }, name: string): number =>
  Object.hasOwn(counts, name) ? (counts[name] ?? 0) : 0

function Moment({ iso }: { iso: string }) {
  const ms = Date.parse(iso)
  return (
    <time class="mono" dateTime={iso} title={`${fullTime(ms)}\n${utcTime(ms)}`}>
      {eventTime(ms, now())}
    </time>
  )
}

const columns: Column<AgentSession>[] = [
  {
    name: 'Agent',
    value: (session) => session.agent.vendor ?? session.agent.class,
    show: ({ id, agent }) => (
      <a class="session-agent" href={sessionHref(id)}>
        {agent.trust !== null && <Vial trust={agent.trust} />}
        {agent.class !== null && <ClassMark class={agent.class} />}
        <Text value={agent.vendor ?? agent.class ?? 'unknown'} max={30} />
      </a>
    ),
  },
  {
    name: 'Trust',
    value: ({ agent }) => agent.trust,
    show: ({ agent }) => agent.trust !== null && <Text value={agent.trust} max={16} />,
  },
  {
    name: 'Last seen',
    time: true,
    value: (session) => session.lastSeenAt,
    show: (session) => <Moment iso={session.lastSeenAt} />,
  },
  {
    name: 'Duration',
    unit: 's',
    csv: (session) => (Date.parse(session.lastSeenAt) - Date.parse(session.firstSeenAt)) / 1_000,
    value: (session) => Date.parse(session.lastSeenAt) - Date.parse(session.firstSeenAt),
    show: (session) => duration(Date.parse(session.lastSeenAt) - Date.parse(session.firstSeenAt)),
    number: true,
  },
  {
    name: 'Events',
    value: (session) => session.events,
    csv: (session) => (session.truncated ? `over ${session.events}` : session.events),
    show: (session) => `${session.truncated ? 'over ' : ''}${count(session.events)}`,
    number: true,
  },
  { name: 'Calls', value: (session) => countIn(session.byPillar, 'tool'), number: true },
  { name: 'Blocked', value: (session) => countIn(session.byOutcome, 'blocked'), number: true },
  { name: 'Errors', value: (session) => countIn(session.byOutcome, 'error'), number: true },
  {
    name: 'Site',
    value: (session) => session.siteIds.join(' '),
    show: (session) => <Text value={session.siteIds.join(', ')} max={24} />,
  },
  {
    name: 'Session',
    value: (session) => session.id,
    show: (session) => <Text value={session.id} max={22} mono />,
  },
]
