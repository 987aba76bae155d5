/** The counts behind the pages Detect, Auth, Authz and Analytics, and the details they open. */
import { Elysia } from 'elysia'
import { AppError } from '../errors.ts'
import { json } from '../http/answer.ts'
import { type ParameterKind, type Query, readQuery } from '../http/query.ts'
import type { Parts } from '../parts.ts'
import { activeAgents, callDurations } from './activity.ts'
import { analyticsCounts, type Asked, authCounts, authzCounts, detectCounts } from './counts.ts'
import { detectMatrix } from './matrix.ts'
import { identityDetail, vendorDetail } from './newest.ts'
import { periodParameters, readPeriod } from './period.ts'
import { why } from './why.ts'

export function dashboardCountRoutes({ store, signIns, clock }: Parts) {
  const answer =
    (
      find: (asked: Asked, query: Query) => Promise<unknown>,
      parameters: Record<string, ParameterKind> = periodParameters,
    ) =>
    async ({ request }: { request: Request }) => {
      const { org } = await signIns.require(request)
      const query = readQuery(request, parameters)
      return json(await find({ store, orgId: org.id, period: readPeriod(query, clock.now()) }, query))
    }
  return new Elysia()
    .get('/api/detect', answer(detectCounts))
    .get('/api/auth', answer(authCounts))
    .get('/api/authz', answer(authzCounts))
    .get('/api/analytics', answer(analyticsCounts))
    .get('/api/analytics/active', answer(activeAgents))
    .get('/api/analytics/durations', answer(callDurations))
    .get('/api/auth/identities', answer(identityDetail))
    .get('/api/detect/matrix', answer(detectMatrix))
    .get(
      '/api/detect/vendor',
      answer((asked, query) => vendorDetail(asked, query.one('vendor') ?? ''), {
        ...periodParameters,
        vendor: 'one',
      }),
    )
    .get('/api/authz/why/:id', async ({ request, params }) => {
      const { org } = await signIns.require(request)
      readQuery(request, {})
      if (!params.id) throw new AppError('not_found', 'No decision with this id is stored here.')
      return json(await why(store, org.id, params.id))
    })
}
