/** Authz: what agents were allowed, refused or held for review, by tool, rule, reason and vendor, and why. */
import './page.css'
import type { AuthzCounts } from '../../api.ts'
import { percent, shareOf } from '../../charts/change.ts'
import { ChartPanel } from '../../charts/chart-panel.tsx'
import { Bars } from '../../charts/bars.tsx'
import { countOf, cutBars, cutRest } from '../../charts/cut-bars.ts'
import { Headlines } from '../../charts/headlines.tsx'
import { cutSeries, outcomeSeries } from '../../charts/series.ts'
import { Later } from '../../components/later.tsx'
import { navigate, place, query, withQuery } from '../../router.ts'
import { CountsPage } from '../../range/counts-page.tsx'
import { logsHref } from '../../range/logs-link.ts'
import { countAhead, useCounts } from '../../range/use-counts.ts'
import { DecisionTable } from './decision-table.tsx'
import { Refusals, refusalsAhead } from './refusals.tsx'
import { WhyDialog } from './why-dialog.tsx'

const type = 'authz.evaluated'
const decisionOrder = ['allow', 'review', 'deny']

/** The explained event stands in the address, so a link can show it. */
function explain(id: string | null): void {
  const here = place.peek()
  navigate(here.path + withQuery(here.search, { why: id === null ? [] : [id] }), { replace: id === null })
}

export const ahead = async () => refusalsAhead((await countAhead('authz')).period)

export default function AuthzPage() {
  const model = useCounts('authz', ['authz.evaluated'])
  const explained = query.value.get('why')
  return (
    <>
      <CountsPage
        title="Authz"
        missing="No decisions yet"
        kind="authz"
        model={model}
        isMine={(one) => one.startsWith('authz.')}
        isEmpty={(data) => data.evaluated.count === 0}
      >
        {(data) => <Decisions data={data} />}
      </CountsPage>
      {explained !== null && <WhyDialog key={explained} id={explained} onClose={() => explain(null)} />}
    </>
  )
}

function Decisions({ data }: { data: AuthzCounts }) {
  const { period, evaluated, decisions, reasons } = data
  const of = { siteIds: period.siteIds, since: period.since, until: period.until, type }
  return (
    <>
      <AuthzHeadlines data={data} />
      <div class="split">
        <ChartPanel
          what="Decisions"
          period={period}
          filter={{ type }}
          divisions={[
            {
              name: 'decision',
              series: cutSeries(decisions.rows, evaluated, { order: decisionOrder, without: 'no decision' }),
              filterOf: (decision) => ({ type, decision }),
            },
            {
              name: 'outcome',
              series: outcomeSeries(evaluated),
              filterOf: (outcome) => ({ type, outcome }),
            },
          ]}
        />
        <Bars
          title="Reasons given"
          wide
          unit="decisions"
          bars={cutBars(reasons, {
            href: () => logsHref({ ...of, decision: 'deny' }),
            colour: () => 'block',
          })}
          rest={{ names: reasons.more?.values ?? 0, count: cutRest(reasons, sumOf(reasons)).count }}
          empty="No decision of this range gives a reason."
        />
      </div>
      <Refusals period={period} denied={countOf(decisions, 'deny').count} onOpen={explain} />
      <Later>
        <div class="halves">
          <DecisionTable title="By tool" head="Tool" member="tool" cut={data.tools} period={period} />
          <DecisionTable title="By rule" head="Rule" cut={data.rules} period={period} />
          <DecisionTable title="By reason" head="Reason" cut={data.reasons} period={period} />
          <DecisionTable title="By vendor" head="Vendor" member="vendor" cut={data.vendors} period={period} />
        </div>
      </Later>
    </>
  )
}

function sumOf(cut: AuthzCounts['reasons']): { count: number } {
  return { count: cut.rows.reduce((sum, row) => sum + row.count, cut.more?.count ?? 0) }
}

function AuthzHeadlines({ data: { period, evaluated, decisions } }: { data: AuthzCounts }) {
  const [allowed, denied, review] = ['allow', 'deny', 'review'].map((one) => countOf(decisions, one))
  if (!allowed || !denied || !review) return null
  const of = { type, siteIds: period.siteIds, since: period.since, until: period.until }
  const line = (name: string, decision: string, now: { count: number; before: number }) => ({
    kind: 'count' as const,
    name,
    now: now.count,
    before: now.before,
    note: `${percent(shareOf(now.count, evaluated.count))} of all`,
    href: logsHref({ ...of, decision }),
  })
  return (
    <Headlines
      period={period}
      lines={[
        { kind: 'count', name: 'Decisions', now: evaluated.count, before: evaluated.before },
        line('Allowed', 'allow', allowed),
        line('Refused', 'deny', denied),
        line('For review', 'review', review),
      ]}
    />
  )
}
