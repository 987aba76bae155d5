/** The newest denials of the range; each opens its explanation. */
import { useQuery } from '../../query/use-query.ts'
import { prefetchQuery } from '../../query/query.ts'
import { api, type PeriodView, type ReceivedEvent } from '../../api/api.ts'
import { everyRow } from '../../charts/data-table.tsx'
import { type Column, DataTable } from '../../charts/data-table.tsx'
import { now } from '../../app/clock.ts'
import { ClassMark, Vial } from '../../components/marks.tsx'
import { Problem } from '../../components/problem.tsx'
import { Text } from '../../components/text.tsx'
import { count, counted, eventTime, fullTime, utcTime } from '../../text/format.ts'
import { filterable } from '../../range/filters.tsx'

interface DenialsProps {
  period: PeriodView
  denied: number // in the whole range
  onOpen: (id: string) => void
}

const shownMax = 50

function filterOf({ since, until, siteIds, filters }: PeriodView): URLSearchParams {
  const params = new URLSearchParams({ type: 'authz.evaluated', decision: 'deny', since, until })
  for (const siteId of siteIds) params.append('siteId', siteId)
  for (const { name, value } of filters) {
    const field = filterable[name]?.logs
    if (field != null && !fixed.includes(field)) params.append(field, value)
  }
  return params
}

/** The filter for denials; null if the page is filtered by another type or decision. */
const fixed: string[] = ['type', 'decision']

function denialsQuery(period: PeriodView) {
  const params = filterOf(period)
  params.set('limit', `${shownMax}`)
  return { key: `events?${params}`, fetch: (signal: AbortSignal) => api.eventsWhere(params, signal) }
}

export const prefetchDenials = (period: PeriodView) => prefetchQuery(denialsQuery(period))

export function Denials({ period, denied, onOpen }: DenialsProps) {
  // A changed count means new denials.
  const { data: found, error: problem } = useQuery(denialsQuery(period), denied)
  if (problem) return <Problem error={problem} />
  if (!found) return null
  const unknown = period.filters.find(({ name }) => filterable[name]?.logs == null)
  if (unknown) return <p class="muted">Denials cannot be filtered by {unknown.name}.</p>
  const rows = denied === 0 ? [] : found.events
  return (
    <DataTable
      title="Newest denials"
      about={`${count(rows.length)} of ${counted(denied, 'denial')}. Open one to see why.`}
      csv={{
        page: 'authz',
        table: 'denials',
        period,
        all: (signal) =>
          everyRow(async (cursor) => {
            const params = cursor === null ? filterOf(period) : new URLSearchParams({ cursor })
            params.set('limit', '200')
            const page = await api.eventsWhere(params, signal)
            return { rows: page.events, next: page.nextCursor }
          }),
      }}
      rows={rows}
      keyOf={(row) => row.event.id}
      sortBy="Time"
      onOpen={(row) => onOpen(row.event.id)}
      empty="No denials in this range."
      columns={columns(now())}
    />
  )
}

const timeTitle = (iso: string): string => `${fullTime(Date.parse(iso))}\n${utcTime(Date.parse(iso))}`

function columns(nowMs: number): Column<ReceivedEvent>[] {
  return [
    {
      name: 'Time',
      time: true,
      value: (row) => row.event.occurredAt,
      show: ({ event }) => (
        <span class="mono" title={timeTitle(event.occurredAt)}>
          {eventTime(Date.parse(event.occurredAt), nowMs)}
        </span>
      ),
    },
    {
      name: 'Agent',
      value: (row) => row.event.agent?.vendor ?? row.event.agent?.class ?? null,
      show: ({ event: { agent } }) => (
        <span class="with-mark">
          {agent?.trust != null && <Vial trust={agent.trust} />}
          {agent?.class != null && <ClassMark class={agent.class} />}
          <Text value={agent?.vendor ?? agent?.class ?? ''} max={24} />
        </span>
      ),
    },
    {
      name: 'Tool',
      value: (row) => row.event.tool ?? null,
      show: ({ event }) => <Text value={event.tool ?? ''} max={28} />,
    },
    {
      name: 'Page',
      value: (row) => (typeof row.event.metadata?.page === 'string' ? row.event.metadata.page : null),
      show: ({ event }) =>
        typeof event.metadata?.page === 'string' && <Text value={event.metadata.page} max={28} mono />,
    },
    {
      name: 'Rule',
      value: (row) => row.event.policy?.ruleId ?? null,
      show: ({ event }) => <Text value={event.policy?.ruleId ?? ''} max={28} mono />,
    },
    {
      name: 'Reason',
      value: (row) => row.event.policy?.reason ?? null,
      show: ({ event }) => <Text value={event.policy?.reason ?? ''} max={40} />,
    },
  ]
}
