/** Authz: allowed, denied and reviewed decisions by tool, rule, reason and vendor. */
import { prefetchCounts, useCounts } from '../../range/counts-query.ts'
import './page.css'
import type { AuthzCounts } from '../../api/api.ts'
import { Headlines, countLine, percent, shareOf } from '../../charts/headlines.tsx'
import { ChartPanel } from '../../charts/chart-panel.tsx'
import { Bars, breakdownBars, breakdownRest, countOf } from '../../charts/breakdown.tsx'
import { breakdownSeries, outcomeSeries } from '../../charts/chart-model.ts'
import { Later } from '../../components/rendering.tsx'
import { decisionNames, measures } from '../../text/measures.ts'
import { navigate, place, query, withQuery } from '../../app/router.ts'
import { CountsPage } from '../../range/counts-page.tsx'
import { logsHref } from '../../range/filters.tsx'
import { DecisionTable, Denials, OutcomeTable, prefetchDenials } from './tables.tsx'
import { WhyDialog } from './why-dialog.tsx'

const type = 'authz.evaluated'
const decisionOrder = ['allow', 'deny', 'review']
const stackOrder = ['allow', 'review', 'deny']

/** The explained event is in the URL, so that it can be linked. */
function explain(id: string | null): void {
  const currentPlace = place.peek()
  navigate(currentPlace.path + withQuery(currentPlace.search, { why: id === null ? [] : [id] }), {
    replace: id === null,
  })
}

export const prefetch = async () => prefetchDenials((await prefetchCounts('authz')).period)

export default function AuthzPage() {
  const model = useCounts('authz', ['authz.evaluated'])
  const explained = query.value.get('why')
  return (
    <>
      <CountsPage
        title="Authz"
        missing="No decisions yet"
        nouns={measures.decisions.unit}
        kind="authz"
        model={model}
        isMine={(eventType) => eventType.startsWith('authz.')}
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
  const scope = { siteIds: period.siteIds, since: period.since, until: period.until, type }
  return (
    <>
      <AuthzHeadlines data={data} />
      <div class="split beside-list">
        <ChartPanel
          what={measures.decisions.name}
          period={period}
          filter={{ type }}
          divisions={[
            {
              name: 'decision',
              series: breakdownSeries(decisions.rows, evaluated, {
                order: stackOrder,
                without: 'other or none',
              }),
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
          title="Reasons"
          wide
          unit="decisions"
          bars={breakdownBars(reasons, {
            by: 'reason',
            href: () => undefined,
            colour: () => 'block',
          })}
          rest={{ names: reasons.more?.values ?? 0, count: breakdownRest(reasons, sumOf(reasons)).count }}
          empty="No decision in this range has a reason."
        />
      </div>
      <OutcomeTable data={data} />
      <Denials period={period} denied={countOf(decisions, 'deny').count} onOpen={explain} />
      <Later>
        <div class="halves">
          <DecisionTable title="By tool" head="Tool" field="tool" of="tools" data={data} />
          <DecisionTable title="By rule" head="Rule" of="rules" data={data} />
          <DecisionTable title="By reason" head="Reason" of="reasons" data={data} />
          <DecisionTable title="By vendor" head="Vendor" field="vendor" of="vendors" data={data} />
        </div>
      </Later>
    </>
  )
}

function sumOf(breakdown: AuthzCounts['reasons']): { count: number } {
  return { count: breakdown.rows.reduce((sum, row) => sum + row.count, breakdown.more?.count ?? 0) }
}

function AuthzHeadlines({ data: { period, evaluated, decisions } }: { data: AuthzCounts }) {
  const scope = { type, siteIds: period.siteIds, since: period.since, until: period.until }
  const knownDecisions = decisionOrder.map((decision) => ({ decision, ...countOf(decisions, decision) }))
  const countOther = (count: 'count' | 'before') =>
    knownDecisions.reduce((remainder, knownDecision) => remainder - knownDecision[count], evaluated[count])
  const blocked = evaluated.outcomes['blocked'] ?? { count: 0, before: 0 }
  const noteOf = (now: number): string => `${percent(shareOf(now, evaluated.count))} of decisions`
  const undecided = { count: countOther('count'), before: countOther('before') }
  return (
    <Headlines
      period={period}
      lines={[
        { ...countLine(measures.decisions, evaluated), href: logsHref(scope) },
        ...knownDecisions.map((knownDecision) => ({
          ...countLine(
            { name: decisionNames[knownDecision.decision] ?? knownDecision.decision },
            knownDecision,
          ),
          note: noteOf(knownDecision.count),
          href: logsHref({ ...scope, decision: knownDecision.decision }),
        })),
        ...(undecided.count > 0 ? [{ ...countLine(measures.undecided, undecided) }] : []),
        {
          ...countLine(measures.blocked, blocked),
          note: 'by outcome, not by decision',
          href: logsHref({ ...scope, outcome: 'blocked' }),
        },
      ]}
    />
  )
}
