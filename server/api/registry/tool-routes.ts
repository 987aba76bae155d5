/** POST /v1/sdk/tools (contract §5), and the reads of tools through the gateway and the dashboard. */
import { Elysia } from 'elysia'
import { periodOf, periodParameters } from '../../dashboard/period.ts'
import { AppError } from '../../errors.ts'
import { json, jsonText } from '../../http/response.ts'
import { encodeCursor, invalidQuery, readCursor, readLimit, readQuery } from '../../http/request.ts'
import { invalidPush, pushHandler, readPush, type PushServices, type SentPush } from './push.ts'
import { writeOrExplain } from '../../ingest/admission.ts'
import { limits } from '../../limits.ts'
import { toolCalls } from './tool-calls.ts'
import { toolsBodyModel } from './model.ts'
import { toolHistory, toolRecords, toolView } from './record.ts'
import type { Store } from '../../../db/contract/store.ts'
import type { SignIns } from '../../identity/sign-in/sign-ins.ts'
import type { CursorCipher } from '../../system/encryption.ts'

export interface ToolRoutesServices extends PushServices {
  signIns: SignIns
  cursorCipher: CursorCipher
}

export function toolRoutes(services: ToolRoutesServices) {
  const gateway = async (request: Request) => (await services.guard.gateway(request, 'traces:read')).orgId
  const dashboard = async (request: Request) => (await services.signIns.require(request)).org.id
  return new Elysia()
    .post(
      '/v1/sdk/tools',
      pushHandler(services, (sent) => push(services, sent)),
      { parse: 'none' },
    )
    .get('/v1/tools', async ({ request }) => list(services, request, await gateway(request)))
    .get('/v1/tools/:siteId/:name', async ({ request, params }) =>
      one(services, request, await gateway(request), params),
    )
    .get('/api/tools/calls', async ({ request }) => {
      const orgId = await dashboard(request)
      const query = readQuery(request, periodParameters)
      const period = await periodOf(services.store, orgId, query, services.clock.now())
      return json(await toolCalls(services, orgId, period))
    })
    .get('/api/tools', async ({ request }) => list(services, request, await dashboard(request)))
    .get('/api/tools/:siteId/:name', async ({ request, params }) =>
      one(services, request, await dashboard(request), params),
    )
}

/** Stores all tools of the body or none; returns the number received. */
async function push(services: ToolRoutesServices, sent: SentPush): Promise<{ tools: number }> {
  const mode = readQuery(sent.request, { mode: 'one' }).one('mode')
  if (mode !== undefined && mode !== 'replace') throw invalidQuery('mode', 'mode must be replace or omitted')
  const { siteId, body, exact } = await readPush(services.store, sent, toolsBodyModel)
  const tools = body['tools'] as unknown[]
  const result = await writeOrExplain(
    services,
    services.store.registry.pushTools({
      orgId: sent.key.orgId,
      siteId,
      tools: toolRecords(tools, exact['tools'] as unknown[]),
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

function overIssue(over: 'sites' | 'tools') {
  const [path, max] = over === 'sites' ? ['siteId', limits.sitesPerOrgMax] : ['tools', limits.toolsPerSiteMax]
  const whose = over === 'sites' ? 'organization' : 'site'
  return { path: String(path), code: 'too_many', message: `exceeds the limit of ${max} ${over} per ${whose}` }
}

async function list(
  { store, cursorCipher }: ToolRoutesServices,
  request: Request,
  orgId: string,
): Promise<Response> {
  const { tools, nextCursor } = await readToolPage({ store, cursorCipher }, orgId, request)
  return jsonText(`{"tools":[${tools.join(',')}],"nextCursor":${JSON.stringify(nextCursor)}}`)
}

async function one(
  { store }: ToolRoutesServices,
  request: Request,
  orgId: string,
  { siteId, name }: { siteId: string; name: string },
): Promise<Response> {
  readQuery(request, {})
  const found = await store.registry.tool({ orgId, siteId, name, limit: limits.versionsShownMax + 1 })
  if (found === null) throw new AppError('not_found', 'No tool with this name has been pushed for this site.')
  return jsonText(toolHistory(found))
}

interface ToolFilter {
  siteIds: string[]
  withRemoved: boolean
}

type Position = { siteId: string; name: string }

const cursorPurpose = 'tools-cursor'

/** One page of tools as JSON texts, by site and name. */
async function readToolPage(
  { store, cursorCipher }: { store: Pick<Store, 'registry'>; cursorCipher: CursorCipher },
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
  const given: ToolFilter = { siteIds: [...new Set(siteIds)].sort(), withRemoved: removed === 'true' }
  const cursor = readCursor<ToolFilter, Position>(
    cursorCipher,
    cursorPurpose,
    orgId,
    query,
    isFiltered ? given : null,
  )
  const filter = cursor?.filters ?? given
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
