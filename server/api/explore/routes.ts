/** GET /v1/explore and its dashboard twin: any measure by any field, with progress, as JSON, NDJSON or CSV. */
import { Elysia, t } from 'elysia'
import { isoTime, type Clock } from '../../clock.ts'
import { AppError, errorBody, retryAfter } from '../../errors.ts'
import { acceptedType, json, streamText, toAppError } from '../../http/response.ts'
import { contextOf, ownerOf, readQuery } from '../../http/request.ts'
import { csvRow, type CsvCell } from '../../text/csv.ts'
import { integer, nullable, time } from '../../http/field-models.ts'
import { limits } from '../../limits.ts'
import { periodView } from '../../counts/period.ts'
import { explorePageParameters, exploreParameters, readAsked, readEdges, readPage } from './query.ts'
import { exploreMeasures, type ExploredNumbers, type ExploreQuery } from '../../../db/contract/explore.ts'
import type { Shares } from '../../http/shares.ts'
import type { PeriodView } from '../../counts/shapes.ts'
import type { Following, Store } from '../../../db/contract/store.ts'
import type { SignIns } from '../../identity/sign-in/sign-ins.ts'
import type { KeyGuard } from '../../http/guard.ts'
import type { Log } from '../../log.ts'

interface ExploreRoutesServices {
  store: Store
  clock: Clock
  log: Log
  guard: KeyGuard
  signIns: SignIns
  streams: Set<AbortController>
  streamShares: Shares
}

export function exploreRoutes(services: ExploreRoutesServices) {
  const { store, clock, guard, signIns } = services
  return new Elysia()
    .get('/v1/explore', async ({ request }) => {
      const { orgId } = await guard.gateway(request, 'traces:read')
      const query = readQuery(request, { ...exploreParameters, step: 'one' })
      const { edges, zone } = readEdges(query, clock.now())
      return answer(services, request, { orgId, zone, period: null, asked: { ...readAsked(query), edges } })
    })
    .get('/api/explore', async ({ request }) => {
      const { org } = await signIns.require(request)
      const query = readQuery(request, explorePageParameters)
      const { asked: exploreQuery, period, filters } = await readPage(store, org.id, query, clock.now())
      const view = { ...periodView(period, await store.sites.list(org.id)), filters }
      return answer(services, request, {
        orgId: org.id,
        zone: period.zone,
        period: view,
        asked: exploreQuery,
      })
    })
}

interface Exploration {
  orgId: string
  zone: string
  period: PeriodView | null // of the dashboard
  asked: Omit<ExploreQuery, 'orgId' | 'budgetMs'>
}

const answerTypes = ['application/json', 'application/x-ndjson', 'text/csv'] as const

async function answer(
  services: ExploreRoutesServices,
  request: Request,
  exploration: Exploration,
): Promise<Response> {
  const type = acceptedType(request.headers.get('accept'), answerTypes)
  if (type === 'application/x-ndjson') return stream(services, request, exploration)
  const following = { signal: request.signal }
  const result = await explore(services.store, exploration, limits.exploreMsMax, following)
  return type === 'text/csv' ? csv(result) : json(result)
}

async function explore(
  store: Pick<Store, 'events'>,
  { orgId, zone, period, asked: exploreQuery }: Exploration,
  budgetMs: number,
  following: Following,
) {
  const result = await store.events.explore({ ...exploreQuery, orgId, budgetMs }, following)
  if (!result.complete)
    throw new AppError('overloaded', `The query read events for ${budgetMs / 1_000} s and was not done.`, {
      hint: 'Choose a shorter range, add filters, or accept application/x-ndjson, which has more time.',
      headers: retryAfter(),
    })
  const { measure, by: dimension, edges } = exploreQuery
  const { rows, missing, other: otherNumbers, all: allNumbers, isCut, expired } = result
  return {
    measure,
    by: dimension !== null && typeof dimension === 'object' ? `metadata.${dimension.metadata}` : dimension,
    zone,
    edges: edges.map(isoTime),
    rows,
    missing,
    other: otherNumbers,
    all: allNumbers,
    truncated: isCut,
    expired,
    ...(period && { period: { ...period, expired } }),
  }
}

/** The answer of both routes. */
export type ExploreAnswer = Awaited<ReturnType<typeof explore>>

/** Queries that end sooner send no progress. */
const quietMs = 500
const progressEveryMs = 250

const ndjson = { 'content-type': 'application/x-ndjson; charset=utf-8', 'x-accel-buffering': 'no' }

/** One line per progress, then the result or an error. The query ends with the connection. */
function stream(
  { store, streams, streamShares, log }: ExploreRoutesServices,
  request: Request,
  exploration: Exploration,
): Response {
  if (request.method === 'HEAD') return new Response(null, { headers: ndjson })
  const context = contextOf(request)
  const { id } = context
  const share = streamShares.acquire(ownerOf(context), 1)
  if (share === null) {
    const message = 'You have reached your limit of open streams and queries. Close one or try again later.'
    throw new AppError('overloaded', message, { headers: retryAfter() })
  }
  const stop = new AbortController()
  streams.add(stop)
  const endStream = (): void => {
    stop.abort()
    streams.delete(stop)
    share.release()
  }
  request.signal.addEventListener('abort', endStream)
  let progress = 0
  const following: Following = {
    signal: stop.signal,
    onProgress: (share) => void (progress = Math.max(progress, share)),
  }
  const resultLine = explore(store, exploration, limits.exploreStreamMsMax, following).then(
    (result) => JSON.stringify({ result }),
    (error: unknown) => `{"error":${errorBody(toAppError(error, id, log), id)}}`,
  )
  async function* lines(): AsyncGenerator<string> {
    for (let waitMs = quietMs; ; waitMs = progressEveryMs) {
      const line = await Promise.race([resultLine, Bun.sleep(waitMs).then(() => null)])
      if (line !== null) {
        yield `${line}\n`
        return
      }
      yield `${JSON.stringify({ progress: Math.round(progress * 1_000) / 1_000 })}\n`
    }
  }
  context.keepOpen() // it may wait for another query
  return new Response(streamText({ parts: lines(), stallMs: limits.exportStallMs, ended: endStream }), {
    headers: ndjson,
  })
}

/** A row per value, then one for events without it and one for all further values. */
function csv({ edges, rows, missing, other: otherNumbers, all: allNumbers }: ExploreAnswer): Response {
  const starts = edges.length > 2 ? edges.slice(0, -1) : []
  const row = (kind: string, value: string | null, { total, steps }: ExploredNumbers): CsvCell[] => [
    kind,
    value,
    total,
    ...(starts.length === 0 ? [] : steps),
  ]
  const lines = [
    ['kind', 'value', 'total', ...starts],
    ...rows.map((valueRow) => row('value', valueRow.value, valueRow)),
    ...(missing === null ? [] : [row('missing', null, missing)]),
    ...(otherNumbers === null ? [] : [row('other', null, otherNumbers)]),
    row('all', null, allNumbers),
  ]
  return new Response(lines.map((cells) => csvRow(cells, true)).join(''), {
    headers: {
      'content-type': 'text/csv; charset=utf-8',
      'content-disposition': 'attachment; filename="explore.csv"',
      'x-csv-formula-guard': 'on',
    },
  })
}

const number = nullable(t.Number({ minimum: 0 }))
const numbers = {
  events: integer({ minimum: 0 }),
  total: number,
  steps: t.Array(number, { description: 'One per step, between two of the edges.' }),
  error: t.Number({
    minimum: 0,
    description: 'The relative error of total: 0 for an exact number, 0.02 at most for quantiles.',
  }),
}

/** The response schema of GET /v1/explore. */
export const exploreModel = t.Object({
  measure: t.Union(exploreMeasures.map((measure) => t.Literal(measure))),
  by: nullable(t.String()),
  zone: t.String(),
  edges: t.Array(time(), { description: 'The start of each step, and the end of the last.' }),
  rows: t.Array(t.Object({ value: t.String(), ...numbers }), {
    description: 'The largest values first; for quantiles those with the most events.',
  }),
  missing: nullable(t.Object(numbers, { description: 'Events without the field.' })),
  other: nullable(
    t.Object(
      { values: integer({ minimum: 0 }), ...numbers },
      { description: 'All further values together.' },
    ),
  ),
  all: t.Object(numbers, { description: 'All matching events.' }),
  truncated: t.Boolean({
    description:
      'There were more values than can be counted individually; other may contain larger ones than rows.',
  }),
  expired: integer({
    minimum: 0,
    description: 'An upper bound of the matching events that retention deleted.',
  }),
})
