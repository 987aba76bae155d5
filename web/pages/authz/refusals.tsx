/** The newest refusals of the range, each one key away from why it was refused. */
import { api, type PeriodView, type ReceivedEvent } from '../../api.ts'
import { type Column, DataTable } from '../../charts/data-table.tsx'
import { now } from '../../clock.ts'
import { ClassMark, Vial } from '../../components/marks.tsx'
import { Problem } from '../../components/problem.tsx'
import { Text } from '../../components/text.tsx'
import { counted, eventTime, utcTime } from '../../format.ts'
import { useAnswer } from '../../range/use-answer.ts'
import { askAhead } from '../../seen.ts'

interface RefusalsProps {
  period: PeriodView
  denied: number // in the whole range
  onOpen: (id: string) => void
}

const shownMax = 50

function refusalsOf({ since, until, siteIds }: PeriodView) {
  const params = new URLSearchParams({ type: 'authz.evaluated', decision: 'deny', since, until })
  for (const siteId of siteIds) params.append('siteId', siteId)
  params.set('limit', `${shownMax}`)
  return { text: `events?${params}`, ask: (signal: AbortSignal) => api.eventsWhere(params, signal) }
}

export const refusalsAhead = (period: PeriodView) => askAhead(refusalsOf(period))

export function Refusals({ period, denied, onOpen }: RefusalsProps) {
  // A new count of refusals means that there are new ones to show.
  const { found, problem } = useAnswer(refusalsOf(period), denied)
  if (problem) return <Problem error={problem} />
  if (!found) return null
  return (
    <DataTable
      title="Newest refusals"
      about={`${counted(found.events.length, 'event')} of ${counted(denied, 'refusal')}. Open one to see why.`}
      csvName="refusals"
      rows={found.events}
      keyOf={(row) => row.event.id}
      sortBy="Time"
      onOpen={(row) => onOpen(row.event.id)}
      empty="Nothing was refused in this range."
      columns={columns(now())}
    />
  )
}

function columns(nowMs: number): Column<ReceivedEvent>[] {
  return [
    {
      name: 'Time',
      value: (row) => row.event.occurredAt,
      show: ({ event }) => (
        <span class="mono" title={utcTime(Date.parse(event.occurredAt))}>
          {eventTime(Date.parse(event.occurredAt), nowMs)}
        </span>
      ),
    },
    {
      name: 'Agent',
      value: (row) => row.event.agent?.vendor ?? null,
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
