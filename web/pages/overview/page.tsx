/** Overview, the first page: what needs attention, what changed since the last visit, and the last 7 days. */
import './page.css'
import type { Signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { api, type Change, type Changes } from '../../api/api.ts'
import { operateApi } from '../../api/operate-api.ts'
import { isoTime, now, zone } from '../../app/clock.ts'
import { notices, refreshNotices } from '../../app/notices.ts'
import { query } from '../../app/router.ts'
import { overview } from '../../app/session.ts'
import { ChartPanel } from '../../charts/chart-panel.tsx'
import { Headlines, countLine } from '../../charts/headlines.tsx'
import { kindSeries } from '../../charts/kinds.ts'
import { unitLine } from '../../charts/unit.ts'
import { FirstEvent, PageBar, watchForEvents } from '../../components/page-frame.tsx'
import { Problem, useTask } from '../../components/problem.tsx'
import { Text } from '../../components/text.tsx'
import { useQuery } from '../../query/use-query.ts'
import { countsQuery } from '../../range/counts-query.ts'
import { prefetchQuery } from '../../query/query.ts'
import { logsHref } from '../../range/filters.tsx'
import { choiceOf, rangeParams } from '../../range/range.ts'
import { ShareButton } from '../../range/share.tsx'
import { count, counted, localSentence, shortTime } from '../../text/format.ts'
import { chartText, hrefOf, keyOf, kinds, moreText, reports, sentenceOf, type Look } from './model.ts'
import { markSeen, prefetchVisit, useLook } from './visit.ts'
import { hourMs } from '../../../db/contract/units.ts'

const restMs = 15_000

const week = () => rangeParams(choiceOf(new URLSearchParams()))

export const prefetch = () => Promise.all([prefetchVisit(), prefetchQuery(countsQuery('week', week()))])

export default function OverviewPage() {
  const look = useLook()
  const chosen = reportOf(query.value)
  const isEmpty = overview.value?.total === 0
  // False before the first answer: what the page then took away could have the focus.
  const hasEvents = (overview.value?.total ?? 0) > 0
  // An empty page watches for its first event by itself.
  useEffect(() => (isEmpty ? undefined : watchForEvents(restMs)), [isEmpty])
  return (
    <>
      <PageBar title="Overview">
        {hasEvents && <ReportChoice chosen={chosen} />}
        {hasEvents && (
          <ShareButton
            page="overview"
            search={() => (zone.peek() === 'UTC' ? '' : `?${new URLSearchParams({ zone: zone.peek() })}`)}
            about="It shows the last 7 days, up to date each time it is opened."
          />
        )}
      </PageBar>
      <div class="page overview-page">
        <Attention />
        {isEmpty ? (
          <FirstEvent
            title="No events yet"
            lead="Overview reports what changed on your sites."
            kind="agent"
            watch
          />
        ) : (
          <>
            <ChangesSince chosen={chosen} look={look} />
            <Week />
          </>
        )}
      </div>
    </>
  )
}

type Report = keyof typeof reports

function reportOf(params: URLSearchParams): Report | null {
  const name = params.get('since')
  return name !== null && Object.hasOwn(reports, name) ? (name as Report) : null
}

const reportNames: [Report | null, string][] = [
  [null, 'Since last visit'],
  ['24h', '24 hours'],
  ['7d', '7 days'],
  ['30d', '30 days'],
]

function ReportChoice({ chosen }: { chosen: Report | null }) {
  return (
    <nav class="report-choice" aria-label="Report changes">
      {reportNames.map(([report, name]) => (
        <a
          key={name}
          href={report === null ? '/overview' : `/overview?since=${report}`}
          aria-current={report === chosen ? 'true' : undefined}
        >
          {name}
        </a>
      ))}
    </nav>
  )
}

/** Open alerts, endpoints that need an answer, and evidence that aged. Nothing without any. */
function Attention() {
  useEffect(() => void refreshNotices(), [])
  const { data: evidence } = useQuery({ key: 'evidence', fetch: operateApi.evidence })
  const items = notices.value.map(({ message, href = '/webhooks' }) => ({ message, href }))
  const old = evidence?.lists.filter((list) => list.kind === 'networks' && list.old).length ?? 0
  if (evidence !== null && old > 0) {
    const lists = `${counted(old, 'address list')} ${old === 1 ? 'is' : 'are'}`
    const age = `older than ${evidence.maxAgeDays} days`
    const message = `${lists} ${age} and no longer contradict claims. Update the evidence.`
    items.push({ message, href: '/settings/evidence' })
  }
  if (items.length === 0) return null
  return (
    <section class="panel overview-list">
      <h2>Needs attention</h2>
      <ul>
        {items.map(({ message, href }) => (
          <li key={message}>
            <p>
              <Text value={localSentence(message)} max={240} />
            </p>
            <a href={href}>View</a>
          </li>
        ))}
      </ul>
    </section>
  )
}

function ChangesSince({ chosen, look }: { chosen: Report | null; look: Signal<Look | null> }) {
  if (chosen !== null) return <ChangesPanel sinceMs={now() - reports[chosen]} look={null} />
  if (look.value === null) return <section class="panel overview-list" aria-busy="true" />
  return <ChangesPanel sinceMs={Date.parse(look.value.since)} look={look as Signal<Look>} />
}

interface ChangesPanelProps {
  sinceMs: number
  look: Signal<Look> | null // of the report since the last visit
}

function ChangesPanel({ sinceMs, look }: ChangesPanelProps) {
  // By the hour, as events are counted, so that a cached answer stays usable within it.
  const since = isoTime(Math.floor(sinceMs / hourMs) * hourMs)
  const { data, error, refetch } = useQuery(
    { key: `changes?${since}`, fetch: (signal) => api.changes(since, signal) },
    overview.value?.total,
    { restMs, keepPrevious: true },
  )
  const changes = data?.changes.filter((change) => look?.value.hidden.includes(keyOf(change)) !== true) ?? []
  const shown = changes.map(keyOf)
  useEffect(() => {
    if (look !== null) look.value = { ...look.peek(), at: isoTime(now()), shown }
  }, [shown.join('\n')])
  if (error) return <Problem error={error} onRetry={refetch} />
  if (data === null) return <section class="panel overview-list" aria-busy="true" />
  const moreNote = moreText(data)
  return (
    <section class="panel overview-list">
      <header>
        <h2>
          Changed since <time dateTime={data.since}>{shortTime(Date.parse(data.since))}</time>
        </h2>
        {look !== null && changes.length > 0 && <SeenButton look={look} />}
      </header>
      {changes.length === 0 ? (
        <Unchanged data={data} />
      ) : (
        <ul>
          {changes.map((change) => (
            <ChangeRow key={keyOf(change)} change={change} data={data} />
          ))}
        </ul>
      )}
      <footer class="muted">
        {moreNote !== null && <p>Not listed: {moreNote}.</p>}
        {!data.complete && <p>Impostors are missing: too many contradicted requests to count in time.</p>}
        {changes.length > 0 && (
          <p>Compared with the 30 days before. Bars show about 7 days before, then the time since.</p>
        )}
      </footer>
    </section>
  )
}

function SeenButton({ look }: { look: Signal<Look> }) {
  const { busy, problem, run } = useTask()
  return (
    <>
      {problem.value && <Problem error={problem.value} />}
      <button
        type="button"
        class="button quiet"
        aria-disabled={busy.value}
        onClick={() => void run(() => markSeen(look))}
      >
        {busy.value ? 'Marking as seen…' : 'Mark all as seen'}
      </button>
    </>
  )
}

function Unchanged({ data }: { data: Changes }) {
  if (!data.compared)
    return (
      <p class="muted nothing">
        No events in the 30 days before, so nothing can be compared yet. <a href="/logs">Open Logs</a>
      </p>
    )
  return (
    <p class="muted nothing">
      Nothing changed: no new operators, impostors, tools or refusals, and no error rate rose.
    </p>
  )
}

function ChangeRow({ change, data }: { change: Change; data: Changes }) {
  const { label, tone } = kinds[change.kind]
  const { before: prefix, name, after: suffix } = sentenceOf(change)
  return (
    <li>
      <span class={`change-kind ${tone}`}>{label}</span>
      <p>
        {prefix}
        <b>
          <Text value={name} max={48} />
        </b>
        {suffix}
      </p>
      <Bars change={change} data={data} />
      <a href={hrefOf(change, data)} aria-label={`Events of: ${label} ${name.slice(0, 60)}`}>
        Events
      </a>
    </li>
  )
}

const chartWidth = 120
const chartHeight = 28
const gap = 1

function Bars({ change, data: { edges, since } }: { change: Change; data: Changes }) {
  const maxCount = Math.max(1, ...change.steps)
  const width = chartWidth / change.steps.length
  const sinceMs = Date.parse(since)
  const description = chartText(change)
  return (
    <svg class="change-bars" viewBox={`0 0 ${chartWidth} ${chartHeight}`} role="img" aria-label={description}>
      <title>{description}</title>
      {change.steps.map((n, step) => {
        const height = n === 0 ? 1 : Math.max(2, (n / maxCount) * chartHeight)
        return (
          <rect
            key={step}
            class={n === 0 ? 'none' : edges[step]! < sinceMs ? 'old' : 'new'}
            x={step * width}
            y={chartHeight - height}
            width={Math.max(1, width - gap)}
            height={height}
          />
        )
      })}
    </svg>
  )
}

/** Makes the report when it is clicked instead of linking to it, because each report adds an audit entry. */
function ReportButton() {
  const { busy, problem, run } = useTask()
  const save = () =>
    run(async () => {
      const link = document.createElement('a')
      link.href = URL.createObjectURL(await operateApi.report(week()))
      link.download = `sightglass-report-${isoTime(now()).slice(0, 10)}.html`
      link.click()
      setTimeout(() => URL.revokeObjectURL(link.href), 60_000)
    })
  return (
    <>
      {problem.value && <Problem error={problem.value} />}
      <button type="button" class="button" aria-disabled={busy.value} onClick={() => void save()}>
        {busy.value ? 'Making the report…' : 'Download signed report'}
      </button>
    </>
  )
}

function Week() {
  const { data, error } = useQuery(countsQuery('week', week()), overview.value?.total, {
    restMs,
    keepPrevious: true,
  })
  if (error) return <Problem error={error} />
  if (data === null) return null
  const { period, unit } = data
  const scope = { since: period.since, until: period.until }
  const lines = data.headlines.map(({ name, count: number, before, type, outcomes }) => {
    // Logs filters by one outcome.
    const [outcome] = outcomes ?? []
    const isLinked = outcomes === null || outcomes.length === 1
    return {
      ...countLine({ name }, { count: number, before }),
      ...(type === unit.type && outcomes === null && unitLine(unit, data.counted)),
      ...(isLinked && { href: logsHref({ ...scope, type, ...(outcome !== undefined && { outcome }) }) }),
    }
  })
  return (
    <section class="overview-week" aria-label="Last 7 days">
      <header>
        <h2>Last 7 days</h2>
        <ReportButton />
      </header>
      <Headlines period={period} lines={lines} />
      <ChartPanel
        what="Activity"
        period={period}
        filter={{}}
        lines
        showValue={count}
        divisions={[{ name: 'kind', series: kindSeries(data), filterOf: (type) => ({ type }) }]}
      />
    </section>
  )
}
