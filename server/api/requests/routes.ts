/** GET /v1/requests and its dashboard twin: exact counts of requests in access logs (contract §11). */
import { Elysia, t } from 'elysia'
import { json } from '../../http/response.ts'
import { readQuery } from '../../http/request.ts'
import { rangeParameters, readRange } from '../metrics/answer.ts'
import { isoTime } from '../../clock.ts'
import { integer, nullable, time } from '../../http/field-models.ts'
import type { KindCounts, RequestKind } from '../../../db/contract/store.ts'
import type { MetricsRoutesServices } from '../metrics/routes.ts'

export function requestRoutes(services: MetricsRoutesServices) {
  return new Elysia()
    .get('/v1/requests', async ({ request }) => {
      const key = await services.guard.gateway(request, 'metrics:read')
      return json(await readRequests(services, key.orgId, request))
    })
    .get('/api/requests', async ({ request }) => {
      const { org } = await services.signIns.require(request)
      return json(await readRequests(services, org.id, request))
    })
}

async function readRequests(
  { store, clock }: MetricsRoutesServices,
  orgId: string,
  request: Request,
): Promise<RequestsAnswer> {
  const range = readRange(readQuery(request, rangeParameters), clock.now())
  const { byHour, bySite } = await store.accessLogs.counts({ orgId, ...range })
  const sum = (kind: RequestKind) =>
    bySite.reduce(
      ({ requests, bytes }, site) => {
        return { requests: requests + site[kind].requests, bytes: bytes + site[kind].bytes }
      },
      { requests: 0, bytes: 0 },
    )
  return {
    since: isoTime(range.sinceMs),
    until: range.untilMs === null ? null : isoTime(range.untilMs),
    byKind: { agent: sum('agent'), person: sum('person'), asset: sum('asset'), bot: sum('bot') },
    byHour: byHour.map(({ hourMs, ...counts }) => ({ hour: isoTime(hourMs), ...requestsOf(counts) })),
    bySite: bySite.map(({ siteId, ...counts }) => ({ siteId, ...requestsOf(counts) })),
  }
}

function requestsOf({ agent, person, asset, bot }: KindCounts): { [kind in RequestKind]: number } {
  return { agent: agent.requests, person: person.requests, asset: asset.requests, bot: bot.requests }
}

const count = integer({ minimum: 0 })
const sums = t.Object({ requests: count, bytes: count })
const kinds = { agent: count, person: count, asset: count, bot: count }

/** The response schema of GET /v1/requests. */
export const requestsModel = t.Object({
  since: time('Inclusive, rounded down to the hour.'),
  until: nullable(time('Exclusive, rounded down to the hour.')),
  byKind: t.Object(
    { agent: sums, person: sums, asset: sums, bot: sums },
    {
      description:
        'agent: requests by AI agents, each also an event `agent.requested`. person: pages requested by people. asset: files of these pages. bot: requests by other programs. `bytes`: size of the responses.',
    },
  ),
  byHour: t.Array(t.Object({ hour: time('The start of the hour.'), ...kinds }), {
    description: 'Requests, ascending, without hours that have none.',
  }),
  bySite: t.Array(t.Object({ siteId: t.String(), ...kinds }), {
    description: 'Requests, ascending by site, without sites that have none.',
  }),
})

export type RequestsAnswer = typeof requestsModel.static
