/** The counts behind the pages of the dashboard and their details, and when a member last opened Overview. */
import { Elysia } from 'elysia'
import { AppError } from '../errors.ts'
import { isoTime, parseTime } from '../clock.ts'
import { json } from '../http/response.ts'
import { readFields, wrongField } from '../http/validate.ts'
import { invalidQuery, readQuery, type ParameterKind, type Query } from '../http/request.ts'
import {
  activeAgents,
  analyticsCounts,
  authCounts,
  authzCounts,
  callDurations,
  detectCounts,
  detectRequests,
  periodTotals,
  weekCounts,
} from '../counts/counts.ts'
import { changesSince, readSince } from '../counts/changes.ts'
import { periodOf, periodParameters, readCountFilter, type CountScope } from '../counts/period.ts'
import { detectMatrix, detectTrust } from '../counts/detections.ts'
import { detectClaims, detectResponses } from '../counts/claims.ts'
import { identityDetail, vendorDetail, explainDecision } from '../counts/details.ts'
import type { OverviewVisit, Store } from '../../db/contract/store.ts'
import { isLongerThan } from '../text/text.ts'
import type { SignIns } from '../identity/sign-in/sign-ins.ts'
import type { Clock } from '../clock.ts'

export interface DashboardCountRoutesServices {
  store: Store
  clock: Clock
  signIns: SignIns
}

const filtered = { ...periodParameters, filter: 'many' } as const
const withRows = { ...filtered, rows: 'one' } as const

/** `rows=all`: a table's CSV has every counted value (at most 1,000 per field), its page only the largest. */
function readRows(query: Query): { rowsMax?: number } {
  const rows = query.one('rows')
  if (rows === undefined) return {}
  if (rows !== 'all') throw invalidQuery('rows', 'rows must be all or omitted')
  return { rowsMax: Number.MAX_SAFE_INTEGER }
}

export function dashboardCountRoutes({ store, signIns, clock }: DashboardCountRoutesServices) {
  const answer =
    (
      find: (scope: CountScope, query: Query) => Promise<unknown>,
      parameters: Record<string, ParameterKind> = periodParameters,
    ) =>
    async ({ request }: { request: Request }) => {
      const { org } = await signIns.require(request)
      const query = readQuery(request, parameters)
      const filter = parameters['filter'] === undefined ? null : readCountFilter(query)
      const period = { ...(await periodOf(store, org.id, query, clock.now())), ...(filter && { filter }) }
      return json(await find({ store, orgId: org.id, period, ...readRows(query) }, query))
    }
  return new Elysia()
    .get('/api/totals', answer(periodTotals))
    .get('/api/week', answer(weekCounts))
    .get('/api/changes', async ({ request }) => {
      const { org } = await signIns.require(request)
      const nowMs = clock.now()
      const sinceMs = readSince(readQuery(request, { since: 'one' }), nowMs)
      return json(await changesSince(store, { orgId: org.id, sinceMs, nowMs }))
    })
    .get('/api/overview/visit', async ({ request }) => {
      const { org, account } = await signIns.require(request)
      readQuery(request, {})
      const visit = await store.accounts.overviewVisit({ orgId: org.id, accountId: account.id })
      return json({ visit: visit === null ? null : visitView(visit) })
    })
    .post(
      '/api/overview/visit',
      async ({ request }) => {
        const { org, account } = await signIns.require(request)
        readQuery(request, {})
        const fields = await readFields(request, {
          ...({ since: 'text', at: 'text', hidden: 'texts', shown: 'texts' } as const),
        })
        const visit = readVisit(fields, clock.now())
        const command = { orgId: org.id, accountId: account.id, visit }
        return json({ visit: visitView(await store.accounts.noteOverviewVisit(command)) })
      },
      { parse: 'none' },
    )
    .get('/api/detect', answer(detectCounts, withRows))
    .get('/api/auth', answer(authCounts, withRows))
    .get('/api/authz', answer(authzCounts, withRows))
    .get('/api/analytics', answer(analyticsCounts, withRows))
    .get('/api/analytics/active', answer(activeAgents))
    .get('/api/analytics/durations', answer(callDurations))
    .get('/api/auth/identities', answer(identityDetail, withRows))
    .get('/api/detect/trust', answer(detectTrust, filtered))
    .get('/api/detect/matrix', answer(detectMatrix, withRows))
    .get('/api/detect/requests', answer(detectRequests, filtered))
    .get('/api/detect/claims', answer(detectClaims, withRows))
    .get('/api/detect/responses', answer(detectResponses, withRows))
    .get(
      '/api/detect/vendor',
      answer((scope, query) => vendorDetail(scope, query.one('vendor') ?? ''), {
        ...filtered,
        vendor: 'one',
      }),
    )
    .get('/api/authz/why/:id', async ({ request, params }) => {
      const { org } = await signIns.require(request)
      readQuery(request, {})
      if (!params.id) throw new AppError('not_found', 'No decision has this id.')
      return json(await explainDecision(store, org.id, params.id))
    })
}

const visitView = ({ sinceMs, atMs, hidden, shown }: OverviewVisit) => ({
  since: isoTime(sinceMs),
  at: isoTime(atMs),
  hidden,
  shown,
})

export type OverviewVisitView = ReturnType<typeof visitView>

/** Of what a change of Overview is called: its kind and a name. */
const changeCharsMax = 300
const changesMax = 100

/** Times in the future, by a browser whose clock is wrong, are now. */
function readVisit(visit: OverviewVisitView, now: number): OverviewVisit {
  const time = (field: 'since' | 'at'): number => {
    const ms = parseTime(visit[field])
    if (ms === null) throw wrongField(field, `${field} must be a time (RFC 3339)`)
    return Math.min(ms, now)
  }
  const names = (field: 'hidden' | 'shown'): string[] => {
    if (visit[field].length > changesMax)
      throw wrongField(field, `${field} has at most ${changesMax} names`, 'too_many')
    if (visit[field].some((name) => isLongerThan(name, changeCharsMax)))
      throw wrongField(field, `a name of ${field} has at most ${changeCharsMax} characters`, 'too_long')
    return visit[field]
  }
  return { sinceMs: time('since'), atMs: time('at'), hidden: names('hidden'), shown: names('shown') }
}
