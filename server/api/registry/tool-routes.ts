/** POST /v1/sdk/tools (contract §5), the reads of tools through the gateway and the dashboard, and their calls. */
import { Elysia } from 'elysia'
import { periodOf, periodParameters, periodView, type Period } from '../../counts/period.ts'
import { rangeUnit } from '../../counts/unit.ts'
import { AppError } from '../../errors.ts'
import { inSlices } from '../../http/slices.ts'
import { json, jsonText } from '../../http/response.ts'
import { encodeCursor, invalidQuery, readCursor, readLimit, readQuery } from '../../http/request.ts'
import { invalidPush, pushHandler, readPush, type PushServices, type SentPush } from './push.ts'
import { writeOrExplain } from '../../ingest/admission.ts'
import { limits } from '../../limits.ts'
import { toolsBodyModel } from './model.ts'
import { toolHistory, toolRecords, toolView } from './record.ts'
import { isoTime } from '../../clock.ts'
import { emptyCounts, totalsOf, typeCounts } from '../../counts/period-counts.ts'
import type { Breakdown, Durations, Store } from '../../../db/contract/store.ts'
import type { SignIns } from '../../identity/sign-in/sign-ins.ts'
import type { Cipher } from '../../system/encryption.ts'
import type { Quantiles, EventCounts, Totals } from '../../counts/shapes.ts'

interface ToolRoutesServices extends PushServices {
  signIns: SignIns
  cursorCipher: Cipher
}

export function toolRoutes(services: ToolRoutesServices) {
  const gateway = async (request: Request) => (await services.guard.gateway(request, 'traces:read')).orgId
  const dashboard = async (request: Request) => (await services.signIns.require(request)).org.id
  return new Elysia()
    .post(
      '/v1/sdk/tools',
      pushHandler(services, (pushRequest) => push(services, pushRequest)),
      { parse: 'none' },
    )
    .get('/v1/tools', async ({ request }) => list(services, request, await gateway(request)))
    .get('/v1/tools/:siteId/:name', async ({ request, params }) =>
      readTool(services, request, await gateway(request), params),
    )
    .get('/api/tools/calls', async ({ request }) => {
      const orgId = await dashboard(request)
      const query = readQuery(request, periodParameters)
      const period = await periodOf(services.store, orgId, query, services.clock.now())
      return json(await toolCalls(services, orgId, period))
    })
    .get('/api/tools', async ({ request }) => list(services, request, await dashboard(request)))
    .get('/api/tools/:siteId/:name', async ({ request, params }) =>
      readTool(services, request, await dashboard(request), params),
    )
}

/** Stores all tools of the body or none; returns the number received. */
async function push(services: ToolRoutesServices, pushRequest: SentPush): Promise<{ tools: number }> {
  const mode = readQuery(pushRequest.request, { mode: 'one' }).one('mode')
  if (mode !== undefined && mode !== 'replace') throw invalidQuery('mode', 'mode must be replace or omitted')
  const { siteId, body, exact } = await readPush(services, pushRequest, toolsBodyModel, 2)
  const tools = body['tools'] as unknown[]
  const records = await inSlices(
    toolRecords(tools, exact?.['tools'] as string[] | undefined),
    pushRequest.work,
  )
  const result = await writeOrExplain(
    services,
    services.store.registry.pushTools({
      orgId: pushRequest.key.orgId,
      siteId,
      tools: records,
      replace: mode === 'replace',
      now: services.clock.now(),
      sitesMax: limits.sitesPerOrgMax,
      toolsMax: limits.toolsPerSiteMax,
      versionsMax: limits.toolVersionsMax,
    }),
  )
  if ('over' in result) throw invalidPush([overIssue(result.over)])
  return { tools: tools.length }
}

function overIssue(resource: 'sites' | 'tools') {
  const [path, max] =
    resource === 'sites' ? ['siteId', limits.sitesPerOrgMax] : ['tools', limits.toolsPerSiteMax]
  const owner = resource === 'sites' ? 'organization' : 'site'
  return {
    path: String(path),
    code: 'too_many',
    message: `exceeds the limit of ${max} ${resource} per ${owner}`,
  }
}

async function list(
  { store, cursorCipher }: ToolRoutesServices,
  request: Request,
  orgId: string,
): Promise<Response> {
  const { tools, nextCursor } = await readToolPage({ store, cursorCipher }, orgId, request)
  return jsonText(`{"tools":[${tools.join(',')}],"nextCursor":${JSON.stringify(nextCursor)}}`)
}

async function readTool(
  { store }: ToolRoutesServices,
  request: Request,
  orgId: string,
  { siteId, name }: { siteId: string; name: string },
): Promise<Response> {
  readQuery(request, {})
  const history = await store.registry.tool({ orgId, siteId, name, limit: limits.versionsShownMax + 1 })
  if (history === null)
    throw new AppError('not_found', 'No tool with this name has been pushed for this site.')
  return jsonText(toolHistory(history))
}

interface ToolFilter {
  siteIds: string[]
  withRemoved: boolean
}

type Position = { siteId: string; name: string }

const cursorPurpose = 'tools-cursor'

/** One page of tools as JSON texts, by site and name. */
async function readToolPage(
  { store, cursorCipher }: { store: Pick<Store, 'registry'>; cursorCipher: Cipher },
  orgId: string,
  request: Request,
): Promise<{ tools: string[]; nextCursor: string | null }> {
  const query = readQuery(request, { siteId: 'many', removed: 'one', limit: 'one', cursor: 'one' })
  const limit = readLimit(query, limits.registryPageDefault, limits.registryPageMax)
  const siteIds = query.many('siteId')
  const removed = query.one('removed')
  if (removed !== undefined && !['true', 'false'].includes(removed))
    throw invalidQuery('removed', 'removed must be true or false')
  const isFiltered = siteIds !== undefined || removed !== undefined
  const requestFilter: ToolFilter = { siteIds: [...new Set(siteIds)].sort(), withRemoved: removed === 'true' }
  const cursor = readCursor<ToolFilter, Position>(
    cursorCipher,
    cursorPurpose,
    orgId,
    query,
    isFiltered ? requestFilter : null,
  )
  const filter = cursor?.filters ?? requestFilter
  const { tools, hasMore } = await store.registry.tools({
    orgId,
    ...filter,
    after: cursor?.position ?? null,
    limit,
    bytesMax: limits.registryPageBytesMax,
  })
  const last = tools.at(-1)
  const nextCursor =
    hasMore && last !== undefined
      ? encodeCursor(cursorCipher, cursorPurpose, orgId, filter, { siteId: last.siteId, name: last.name })
      : null
  return { tools: tools.map(toolView), nextCursor }
}

/** Calls of one tool name at one site, registered or not. */
export interface ToolCallRow {
  siteId: string
  name: string | null // null: all names beyond 1,000 per hour
  count: number
  before: number // in the previous period
  outcomes: { [outcome: string]: number }
  lastHour: string | null // the hour of the last call in the period
  took: Quantiles | null // null: no call had a duration
}

export interface ToolCalls extends Totals {
  executed: EventCounts
  rows: ToolCallRow[]
  sitesLeftOut: number // sites with tools that were not counted
}

const types = ['tool.executed']

/**
 * Counted from events, so unregistered tools appear too. A breakdown does not separate sites, so each site has its own
 * query.
 */
async function toolCalls(
  { store }: { store: Pick<Store, 'events' | 'sites'> },
  orgId: string,
  period: Period,
): Promise<ToolCalls> {
  const sites = await store.sites.list(orgId)
  const siteIds = period.siteIds ?? sites.map((site) => site.siteId)
  const counted = siteIds.slice(0, limits.toolSitesCountedMax)
  const [unit, counts, ...rows] = await Promise.all([
    rangeUnit(store.events, orgId, period),
    typeCounts(store.events, orgId, period),
    ...counted.map((siteId) => siteCalls(store.events, orgId, siteId, period)),
  ])
  return {
    period: periodView(period, sites),
    totals: totalsOf(counts),
    unit,
    executed: counts.types.get('tool.executed') ?? emptyCounts(period),
    rows: rows.flat(),
    sitesLeftOut: siteIds.length - counted.length,
  }
}

async function siteCalls(
  events: Pick<Store['events'], 'breakdown' | 'durations'>,
  orgId: string,
  siteId: string,
  { sinceMs, untilMs, before: earlier }: Period,
): Promise<ToolCallRow[]> {
  const scope = { orgId, by: 'tool' as const, types, siteIds: [siteId] }
  const [now, previousCounts, durations] = await Promise.all([
    events.breakdown({ ...scope, sinceMs, untilMs, stepMs: null }),
    events.breakdown({ ...scope, ...earlier, stepMs: null }),
    events.durations({ orgId, types, siteIds: [siteId], sinceMs, untilMs, stepMs: null }),
  ])
  return callRows(siteId, now, previousCounts, durations)
}

function callRows(
  siteId: string,
  now: Breakdown,
  previousCounts: Breakdown,
  durations: Durations,
): ToolCallRow[] {
  const rows = new Map<string | null, ToolCallRow & { lastMs: number }>()
  const rowOf = (name: string | null) => {
    const row = rows.get(name) ?? {
      siteId,
      name,
      count: 0,
      before: 0,
      outcomes: {},
      lastHour: null,
      took: null,
      lastMs: -1,
    }
    rows.set(name, row)
    return row
  }
  for (const { value, outcome, lastMs, count } of now.rows) {
    const row = rowOf(value)
    row.count += count
    // Own properties only: an outcome may have the name of a property that every object has.
    row.outcomes[outcome] = (Object.hasOwn(row.outcomes, outcome) ? (row.outcomes[outcome] ?? 0) : 0) + count
    row.lastMs = Math.max(row.lastMs, lastMs)
  }
  for (const { value, count } of previousCounts.rows) rowOf(value).before += count
  for (const { tool, startMs: _, ...took } of durations.rows) rowOf(tool).took = took
  return [...rows.values()].map(({ lastMs, ...row }) => ({
    ...row,
    lastHour: lastMs < 0 ? null : isoTime(lastMs),
  }))
}
