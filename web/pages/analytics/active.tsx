/** Panels of Analytics with their own query, because sketches take longer to read than counts. */
import { useQuery } from '../../query/use-query.ts'
import { countsQuery } from '../../range/counts-query.ts'
import { isoTime } from '../../app/clock.ts'
import { ChartPanel } from '../../charts/chart-panel.tsx'
import { DataTable, type Column } from '../../charts/data-table.tsx'
import { Problem } from '../../components/problem.tsx'
import { count, counted, exactDuration } from '../../text/format.ts'
import { measures } from '../../text/measures.ts'
import { query } from '../../app/router.ts'
import { choiceOf, rangeParams } from '../../range/range.ts'
import type { ActiveAgents, PeriodView } from '../../api/api.ts'
import type { Series } from '../../charts/chart-model.ts'
import { dayMs } from '../../../db/contract/units.ts'

interface ActiveProps {
  period: PeriodView // of the page; only its sites are used
  events: number // a change fetches again
}

const names = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' ')
const estimateNote = 'Estimate with a standard error of 1.6 %'

/** "2026-11" → "Nov 2026" */
function monthName(month: string): string {
  const [year = '', number = ''] = month.split('-')
  return `${names[Number(number) - 1] ?? ''} ${year}`
}

export function Active({ period, events }: ActiveProps) {
  const params = new URLSearchParams(period.siteIds.map((siteId) => ['siteId', siteId]))
  const { data: activeAgents, error: problem } = useQuery(countsQuery('analytics/active', params), events)
  if (problem) return <Problem error={problem} />
  if (!activeAgents) return null
  return (
    <>
      <Days active={activeAgents} period={period} />
      <Months months={activeAgents.months} />
    </>
  )
}

function Days({ active: { days, now }, period }: { active: ActiveAgents; period: PeriodView }) {
  const first = Date.parse(days[0]?.day ?? now)
  const shown: PeriodView = {
    ...period,
    range: 'custom',
    since: isoTime(first),
    until: isoTime(first + days.length * dayMs),
    now,
    stepHours: 24,
    // An agent active in several hours of a day counts once, so agents are counted per UTC day.
    zone: 'UTC',
    edges: Array.from({ length: days.length + 1 }, (_, day) => first + day * dayMs),
    onTheHour: true,
  }
  const series: Series[] = [
    {
      name: 'sessions',
      value: null,
      colour: 'series-1',
      counts: days.map((day) => day.sessions),
    },
    {
      name: 'verified subjects',
      value: null,
      colour: 'series-2',
      counts: days.map((day) => day.subjects),
    },
  ]
  if (days.every((day) => day.sessions === 0)) return null
  return (
    <ChartPanel
      what="Active agents"
      period={shown}
      divisions={[{ name: 'kind', series, filterOf: () => ({}) }]}
      filter={{}}
      lines
      showValue={count}
      note="last 30 UTC days, estimates with a standard error of 1.6 %"
    />
  )
}

type Month = ActiveAgents['months'][number]

function sketched(name: string, readValue: (row: Month) => number): Column<Month> {
  return {
    name,
    about: estimateNote,
    unit: 'estimate',
    number: true,
    value: readValue,
    show: (row) => (
      <span title={estimateNote}>
        <span aria-hidden="true">≈ </span>
        <span class="visually-hidden">about </span>
        {count(readValue(row))}
      </span>
    ),
  }
}

const columns: Column<Month>[] = [
  { name: 'Month', value: (row) => row.month, show: (row) => monthName(row.month) },
  sketched('Sessions', (row) => row.sessions),
  sketched('Verified subjects', (row) => row.subjects),
  { name: measures.vendorsDetected.name, number: true, value: (row) => row.vendors },
  { name: measures.visits.name, number: true, value: (row) => row.detections },
]

function Months({ months }: { months: Month[] }) {
  const first = months.findIndex((month) => month.detections > 0 || month.sessions > 0)
  return (
    <DataTable
      title="Monthly active agents"
      about="distinct per UTC month, independent of the range above; sessions and subjects are estimates"
      csv={{ page: 'analytics', table: 'monthly-agents' }}
      rows={first === -1 ? [] : months.slice(first)}
      keyOf={(row) => row.month}
      sortBy="Month"
      empty="No agents in the last 12 months."
      columns={columns}
    />
  )
}

/** The duration of tool calls over the range. */
const quantiles = [
  { name: 'p50', of: 'p50Ms', colour: 'series-1' },
  { name: 'p95', of: 'p95Ms', colour: 'series-2' },
] as const

/** A change of `calls` fetches again. */
export function Durations({ calls }: { calls: number }) {
  // Durations ignore filters. While filtered counts load, this panel is still shown.
  const params = rangeParams(choiceOf(query.value))
  const { data: durations, error: problem } = useQuery(countsQuery('analytics/durations', params), calls)
  if (problem) return <Problem error={problem} />
  if (!durations || durations.whole === null) return null
  const { period, whole, steps } = durations
  const series = quantiles.map(({ name, of: quantileField, colour }): Series => {
    const counts = steps.map((step) => step?.[quantileField] ?? Number.NaN)
    return { name: `${name}, ${exactDuration(whole[quantileField])} overall`, value: null, colour, counts }
  })
  return (
    <ChartPanel
      what="Tool call duration"
      period={period}
      divisions={[{ name: 'quantile', series, filterOf: () => ({}) }]}
      filter={{ type: 'tool.executed' }}
      lines
      showValue={exactDuration}
      note={`${counted(whole.count, 'call')}, accurate to 2 %`}
    />
  )
}
