/** GET /v1/metrics and its dashboard twin, with their schema: exact counts by type, outcome and hour (contract §7). */
import { Elysia, t } from 'elysia'
import { json, jsonText } from '../../http/response.ts'
import { invalidQuery, readQuery } from '../../http/request.ts'
import { metricsAnswer, rangeParameters, readRange } from './answer.ts'
import { isoTime, type Clock } from '../../clock.ts'
import { integer, nullable, time } from '../../http/field-models.ts'
import { limits } from '../../limits.ts'
import type { Store } from '../../../db/contract/store.ts'
import type { SignIns } from '../../identity/sign-in/sign-ins.ts'
import type { KeyGuard } from '../../http/guard.ts'
import type { BreakdownQuery, CountedBy } from '../../../db/contract/event-counts.ts'
import { countedMembers } from '../../../db/contract/event-fields.ts'
import { hourMs } from '../../../db/contract/units.ts'

export interface MetricsRoutesServices {
  store: Store
  clock: Clock
  guard: KeyGuard
  signIns: SignIns
}

export function metricsRoutes(services: MetricsRoutesServices) {
  const dashboard = async (request: Request) => (await services.signIns.require(request)).org.id
  return new Elysia()
    .get('/v1/metrics', async ({ request }) => {
      const key = await services.guard.gateway(request, 'metrics:read')
      return jsonText(await readMetrics(services, key.orgId, request))
    })
    .get('/api/metrics', async ({ request }) =>
      jsonText(await readMetrics(services, await dashboard(request), request)),
    )
    .get('/api/breakdown', async ({ request }) =>
      json(await readBreakdown(services, await dashboard(request), request)),
    )
}

async function readMetrics({ store, clock }: MetricsRoutesServices, orgId: string, request: Request) {
  return metricsAnswer(store, orgId, readRange(readQuery(request, rangeParameters), clock.now()))
}

const countedNames: readonly string[] = [...countedMembers, 'vouched', 'judgement'] satisfies CountedBy[]

const stepHoursMax = 24 * 366

/**
 * GET /api/breakdown: counts by one field, for the dashboard's charts and tables. `by` is the field, `step` the hours
 * per row; without `step` one row covers the whole range.
 */
async function readBreakdown({ store, clock }: MetricsRoutesServices, orgId: string, request: Request) {
  const query = readQuery(request, { ...rangeParameters, type: 'many', by: 'one', step: 'one' })
  const dimension = query.one('by') ?? ''
  if (!countedNames.includes(dimension))
    throw invalidQuery('by', `by must be one of ${countedNames.join(', ')}`)
  const types = query.many('type')
  const breakdown: BreakdownQuery = {
    orgId,
    ...readRange(query, clock.now()),
    by: dimension as CountedBy,
    stepMs: readStep(query.one('step')),
    ...(types === undefined ? {} : { types }),
  }
  const { rows } = await store.events.breakdown(breakdown)
  return {
    since: isoTime(breakdown.sinceMs),
    until: breakdown.untilMs === null ? null : isoTime(breakdown.untilMs),
    rows: rows.map(({ value, outcome, startMs, count }) => ({
      value,
      outcome,
      start: isoTime(startMs),
      count,
    })),
  }
}

function readStep(text: string | undefined): number | null {
  if (text === undefined) return null
  const hours = /^[1-9][0-9]{0,4}$/.test(text) ? Number(text) : 0
  if (hours < 1 || hours > stepHoursMax)
    throw invalidQuery('step', `step must be an integer number of hours from 1 to ${stepHoursMax}`)
  return hours * hourMs
}

/** The response schema of GET /v1/metrics. */
const count = integer({ minimum: 0 })

export const metricsModel = t.Object({
  since: time('Inclusive, rounded down to the hour.'),
  until: nullable(time('Exclusive, rounded down to the hour.')),
  total: count,
  byType: t.Record(t.String(), count),
  byOutcome: t.Record(t.String(), count),
  byHour: t.Array(t.Object({ hour: time('The start of the hour.'), count }), {
    description: 'Ascending, without hours that have no events.',
  }),
  rows: t.Array(
    t.Object({
      orgId: t.String(),
      siteId: t.String(),
      bucketStart: time('The start of the hour.'),
      type: t.String(),
      outcome: t.String(),
      count,
    }),
    { description: `Ascending, at most ${limits.metricsRowsMax}.` },
  ),
  truncated: t.Optional(t.Literal(true, { description: 'There are more rows. The totals include them.' })),
})

/** The parsed response. */
export type MetricsAnswer = typeof metricsModel.static
