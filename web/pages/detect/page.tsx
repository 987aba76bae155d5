/** Detect: identified agents by class, vendor, purpose and trust, over time and as a table. */
import './page.css'
import { nextPageParams } from '../../range/range.ts'
import { useQuery } from '../../query/use-query.ts'
import { countsQuery, prefetchCounts, useCounts } from '../../range/counts-query.ts'
import { prefetchQuery, type Query } from '../../query/query.ts'
import { Bars, countOf, breakdownBars, breakdownRest, distinct } from '../../charts/breakdown.tsx'
import { ChartPanel } from '../../charts/chart-panel.tsx'
import { Headlines, countLine, shareOf } from '../../charts/headlines.tsx'
import { colourOf, breakdownSeries, trustRank } from '../../charts/chart-model.ts'
import { Later, prerender } from '../../components/rendering.tsx'
import { measures } from '../../text/measures.ts'
import { Vial } from '../../components/marks.tsx'
import { count, counted } from '../../text/format.ts'
import { navigate, place, query, withQuery } from '../../app/router.ts'
import { CountsPage } from '../../range/counts-page.tsx'
import { logsHref } from '../../range/filters.tsx'
import { AgentTable } from './agent-table.tsx'
import { Matrix } from './matrix.tsx'
import { Requests } from './requests.tsx'
import { VendorDialog } from './vendor-dialog.tsx'
import type { DetectCounts, DetectTrust } from '../../api/api.ts'

const classOrder = ['crawler', 'webmcp', 'dom', 'screenshot']
const type = 'agent.detected'

/** The open vendor is in the URL, so that it can be linked. */
function openVendor(vendor: string | null): void {
  const currentPlace = place.peek()
  navigate(currentPlace.path + withQuery(currentPlace.search, { vendor: vendor === null ? [] : [vendor] }), {
    replace: vendor === null,
  })
}

export const prefetch = async () => {
  const data = await prefetchCounts('detect')
  await prefetchQuery(countsQuery('detect/trust', nextPageParams()))
  await prerender(<Views data={data} />)
}

export default function DetectPage() {
  const model = useCounts('detect', ['agent.*', 'authz.evaluated'])
  const vendor = query.value.get('vendor')
  return (
    <>
      <CountsPage
        title="Detect"
        missing="No agents yet"
        nouns="requests or visits"
        kind="agent"
        model={model}
        isMine={(eventType) => eventType.startsWith('agent.')}
        isEmpty={({ detected, missed, requested, referred }) =>
          detected.count + missed.count + requested.count + referred.count === 0
        }
      >
        {(data) => <Views data={data} />}
      </CountsPage>
      {vendor !== null && <VendorDialog vendor={vendor} onClose={() => openVendor(null)} />}
    </>
  )
}

/**
 * Requests and visits have a view each when a range has both, because together they are ten screens long. Old links
 * name the view of visits `detections`.
 */
function Views({ data }: { data: DetectCounts }) {
  const { detected, missed, requested, referred } = data
  const hasRequests = requested.count + referred.count > 0
  if (!hasRequests) return <Visits data={data} />
  if (detected.count + missed.count === 0) return <Requests data={data} />
  const isRequests = !['visits', 'detections'].includes(query.value.get('view') ?? '')
  const { path, search } = place.value
  const link = (name: string, view: string[], isOpen: boolean) => (
    <a href={path + withQuery(search, { view })} aria-current={isOpen ? 'page' : undefined}>
      {name}
    </a>
  )
  return (
    <>
      <nav class="detect-views" aria-label="Views of Detect">
        {link('Requests', [], isRequests)}
        {link('Visits', ['visits'], !isRequests)}
      </nav>
      {isRequests ? <Requests data={data} /> : <Visits data={data} />}
    </>
  )
}

function Visits({ data }: { data: DetectCounts }) {
  const { period, detected, vendors } = data
  const of = { siteIds: period.siteIds, since: period.since, until: period.until, type }
  return (
    <>
      <DetectHeadlines data={data} />
      <div class="split beside-list">
        <VisitChart data={data} />
        <Bars
          title="By vendor"
          unit={measures.visits.unit}
          bars={breakdownBars(vendors, {
            by: 'vendor',
            href: (vendor) => logsHref({ ...of, vendor }),
            colour: () => 'accent',
          })}
          rest={breakdownRest(vendors, detected)}
        />
      </div>
      <ClassAndTrust data={data} />
      <NameAndPurpose data={data} />
      <AgentTable data={data} onOpen={openVendor} />
      {vendors.more && (
        <p class="muted">
          {counted(vendors.more.values, 'vendor')} with {counted(vendors.more.count, 'visit')} are in the
          totals but not listed.
        </p>
      )}
      <Later>
        <Matrix period={period} detected={detected.count} of={of} />
      </Later>
    </>
  )
}

function NameAndPurpose({ data: { period, detected, names, purposes } }: { data: DetectCounts }) {
  const scope = { siteIds: period.siteIds, since: period.since, until: period.until, type }
  return (
    <div class="halves level">
      <Bars
        title="By agent"
        unit={measures.visits.unit}
        bars={breakdownBars(names, {
          by: 'name',
          href: (name) => logsHref({ ...scope, name }),
          colour: () => 'accent',
        })}
        rest={breakdownRest(names, detected)}
        restName="other or no name"
      />
      <Bars
        title="By purpose"
        unit={measures.visits.unit}
        bars={breakdownBars(purposes, {
          by: 'purpose',
          href: (purpose) => logsHref({ ...scope, purpose }),
          colour: () => 'accent',
        })}
        rest={breakdownRest(purposes, detected)}
        restName="no purpose"
      />
    </div>
  )
}

function DetectHeadlines({ data }: { data: DetectCounts }) {
  const { period, detected, missed, classes, vendors } = data
  const vendorCounts = distinct(vendors)
  const crawlers = countOf(classes, 'crawler')
  const reached = useQuery(trustQuery(), detected.count).data
  const scope = { siteIds: period.siteIds, since: period.since, until: period.until }
  return (
    <Headlines
      period={period}
      lines={[
        countLine(measures.visits, detected),
        {
          ...countLine(measures.vendorsDetected, { count: vendorCounts.now, before: vendorCounts.before }),
          ...(vendorCounts.fresh > 0 && detected.before > 0 && { note: `${vendorCounts.fresh} new` }),
        },
        {
          kind: 'share',
          name: 'Crawlers',
          now: shareOf(crawlers.count, detected.count),
          before: shareOf(crawlers.before, detected.before),
          note: 'of visits',
        },
        {
          kind: 'share',
          name: measures.trustReached.name,
          now: provedShare(reached),
          before: null,
          note: reachedNote(reached, detected.count),
        },
        {
          ...countLine(measures.missed, missed),
          href: logsHref({ ...scope, type: 'agent.missed' }),
        },
      ]}
    />
  )
}

function VisitChart({ data: { period, detected, classes, vendors, purposes } }: { data: DetectCounts }) {
  return (
    <ChartPanel
      what={measures.visits.name}
      period={period}
      filter={{ type }}
      divisions={[
        {
          name: 'class',
          series: breakdownSeries(classes.rows, detected, { order: classOrder, without: 'no class' }),
          filterOf: (agentClass) => ({ type, agentClass }),
        },
        {
          name: 'vendor',
          series: breakdownSeries(vendors.rows, detected, {
            without: 'others',
            colour: (_, index) => `series-${index + 1}`,
          }),
          filterOf: (vendor) => ({ type, vendor }),
        },
        {
          name: 'purpose',
          series: breakdownSeries(purposes.rows, detected, {
            without: 'no purpose',
            colour: (_, index) => `series-${index + 1}`,
          }),
          filterOf: (purpose) => ({ type, purpose }),
        },
      ]}
    />
  )
}

function ClassAndTrust({ data: { period, detected, classes } }: { data: DetectCounts }) {
  const scope = { siteIds: period.siteIds, since: period.since, until: period.until, type }
  return (
    <div class="halves level">
      <Bars
        title="By class"
        unit={measures.visits.unit}
        bars={breakdownBars(classes, {
          by: 'class',
          href: (agentClass) => logsHref({ ...scope, agentClass }),
        }).map((bar) => ({
          ...bar,
          mark: <i class="series-mark" style={{ background: `var(--${bar.colour})` }} />,
        }))}
        rest={breakdownRest(classes, detected)}
        restName="no class"
      />
      <TrustBars detected={detected.count} />
    </div>
  )
}

/** A query of its own, because reading sessions takes longer than counting. */
const trustQuery = (): Query<DetectTrust> => countsQuery('detect/trust')

const sum = (rows: DetectTrust['rows']): number => rows.reduce((total, row) => total + row.count, 0)

function provedShare(reached: DetectTrust | null): number | null {
  if (reached === null || reached.isTooMuch) return null
  const proved = reached.rows.filter(({ trust }) => trust === 'verified' || trust === 'linked')
  return shareOf(sum(proved), sum(reached.rows))
}

function reachedNote(reached: DetectTrust | null, detected: number): string {
  if (reached === null) return 'counting…'
  if (reached.isTooMuch) return 'too many events; choose a shorter range'
  if (reached.complete) return 'of visits, at any time in their session'
  return `based on ${count(sum(reached.rows))} of ${count(detected)} visits`
}

function TrustBars({ detected }: { detected: number }) {
  const reached = useQuery(trustQuery(), detected).data
  if (reached === null || reached.isTooMuch) return null
  return (
    <Bars
      title="By highest trust in session"
      unit={reached.complete ? measures.visits.unit : 'sampled visits'}
      bars={reached.rows.flatMap(({ trust, count: events }, index) =>
        trust === null
          ? []
          : [
              {
                key: trust,
                name: trust,
                mark: <Vial trust={trust} />,
                colour: colourOf(trust, index),
                count: events,
              },
            ],
      )}
      rest={{ names: 0, count: sum(reached.rows.filter(({ trust }) => trust === null)) }}
      restName="unknown trust"
    />
  )
}
