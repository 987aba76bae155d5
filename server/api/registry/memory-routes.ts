/** POST /v1/sdk/memory (contract §5), and the reads of site memory through the gateway and the dashboard. */
import { Elysia } from 'elysia'
import { periodOf, periodParameters, periodView, type Period } from '../../counts/period.ts'
import { rangeUnit } from '../../counts/unit.ts'
import { AppError } from '../../errors.ts'
import { inSlices } from '../../http/slices.ts'
import { json, jsonText } from '../../http/response.ts'
import { encodeCursor, readCursor, readLimit, readQuery } from '../../http/request.ts'
import { invalidPush, pushHandler, readPush, type PushServices, type SentPush } from './push.ts'
import { writeOrExplain } from '../../ingest/admission.ts'
import { limits } from '../../limits.ts'
import { differences, memoryRecord, memoryView, versionView } from './record.ts'
import { memoryBodyModel } from './model.ts'
import { emptyCounts, totalsOf, typeCounts } from '../../counts/period-counts.ts'
import type { Store } from '../../../db/contract/store.ts'
import type { SignIns } from '../../identity/sign-in/sign-ins.ts'
import type { Cipher } from '../../system/encryption.ts'
import type { EventCounts, Totals } from '../../counts/shapes.ts'

interface MemoryRoutesServices extends PushServices {
  signIns: SignIns
  cursorCipher: Cipher
}

type Site = { siteId: string }

export function memoryRoutes(services: MemoryRoutesServices) {
  const gateway = async (request: Request) => (await services.guard.gateway(request, 'traces:read')).orgId
  const dashboard = async (request: Request) => (await services.signIns.require(request)).org.id
  return new Elysia()
    .post(
      '/v1/sdk/memory',
      pushHandler(services, (pushRequest) => push(services, pushRequest)),
      { parse: 'none' },
    )
    .get('/v1/memory', async ({ request }) => list(services, request, await gateway(request)))
    .get('/v1/memory/:siteId', async ({ request, params }) =>
      readMemory(services, request, await gateway(request), params),
    )
    .get('/v1/memory/:siteId/versions/:version', async ({ request, params }) =>
      version(services, request, await gateway(request), params),
    )
    .get('/api/knaph', async ({ request }) => {
      const orgId = await dashboard(request)
      const query = readQuery(request, periodParameters)
      const period = await periodOf(services.store, orgId, query, services.clock.now())
      return json(await knaphCounts(services, orgId, period))
    })
    .get('/api/memory', async ({ request }) => list(services, request, await dashboard(request)))
    .get('/api/memory/:siteId', async ({ request, params }) =>
      readMemory(services, request, await dashboard(request), params),
    )
    .get('/api/memory/:siteId/versions/:version', async ({ request, params }) =>
      version(services, request, await dashboard(request), params),
    )
}

async function push(services: MemoryRoutesServices, pushRequest: SentPush): Promise<Site> {
  readQuery(pushRequest.request, {})
  const { siteId, body, exact } = await readPush(services, pushRequest, memoryBodyModel, 1)
  const snapshot = body['snapshot'] as { [name: string]: unknown }
  const score = typeof body['score'] === 'number' ? body['score'] : null
  const record = await inSlices(
    memoryRecord(snapshot, score, exact?.['snapshot'] as string | undefined),
    pushRequest.work,
  )
  const result = await writeOrExplain(
    services,
    services.store.registry.pushMemory({
      orgId: pushRequest.key.orgId,
      siteId,
      ...record,
      now: services.clock.now(),
      sitesMax: limits.sitesPerOrgMax,
      versionsMax: limits.memoryVersionsMax,
    }),
  )
  if (result === 'over') {
    const message = `exceeds the limit of ${limits.sitesPerOrgMax} sites per organization`
    throw invalidPush([{ path: 'siteId', code: 'too_many', message }])
  }
  return { siteId }
}

const cursorPurpose = 'memory-cursor'

async function list(
  { store, cursorCipher }: MemoryRoutesServices,
  request: Request,
  orgId: string,
): Promise<Response> {
  const query = readQuery(request, { siteId: 'many', limit: 'one', cursor: 'one' })
  const limit = readLimit(query, limits.registryPageDefault, limits.registryPageMax)
  const requestedSiteIds = query.many('siteId')
  const filter = requestedSiteIds === undefined ? null : [...new Set(requestedSiteIds)].sort()
  const cursor = readCursor<string[], string>(cursorCipher, cursorPurpose, orgId, query, filter)
  const siteIds = cursor?.filters ?? filter ?? []
  const afterSiteId = cursor?.position ?? null
  const bytesMax = limits.registryPageBytesMax
  const { memories, hasMore } = await store.registry.memories({
    orgId,
    siteIds,
    after: afterSiteId,
    limit,
    bytesMax,
  })
  const last = memories.at(-1)?.siteId
  const next =
    hasMore && last !== undefined ? encodeCursor(cursorCipher, cursorPurpose, orgId, siteIds, last) : null
  return jsonText(`{"memory":[${memories.map(memoryView).join(',')}],"nextCursor":${JSON.stringify(next)}}`)
}

async function readMemory(
  { store }: MemoryRoutesServices,
  request: Request,
  orgId: string,
  { siteId }: Site,
): Promise<Response> {
  readQuery(request, {})
  const memory = await store.registry.memory({ orgId, siteId, version: null })
  if (memory === null) throw new AppError('not_found', 'No memory has been pushed for this site.')
  const versions = await store.registry.memoryVersions({ orgId, siteId, limit: limits.memoryVersionsMax })
  return jsonText(`{"memory":${memoryView(memory)},"versions":${JSON.stringify(versions.map(versionView))}}`)
}

async function version(
  { store }: MemoryRoutesServices,
  request: Request,
  orgId: string,
  { siteId, version: text }: Site & { version: string },
): Promise<Response> {
  readQuery(request, {})
  const number = /^[1-9][0-9]{0,8}$/.test(text) ? Number(text) : 0
  const memory = await store.registry.memory({ orgId, siteId, version: number })
  if (memory === null) throw new AppError('not_found', 'The memory of this site has no such version.')
  const previousMemory = await store.registry.memory({ orgId, siteId, version: number - 1 })
  const changed =
    previousMemory === null ? [] : differences(JSON.parse(previousMemory.json), JSON.parse(memory.json))
  return jsonText(`{"memory":${memoryView(memory)},"differences":${JSON.stringify(changed)}}`)
}

/** The response behind the Knaph page's counts. */
export interface KnaphCounts extends Totals {
  accessed: EventCounts
  updated: EventCounts
}

/** Reads and updates of site memory over a period, counted from events. */
async function knaphCounts(
  { store }: { store: Pick<Store, 'events' | 'sites'> },
  orgId: string,
  period: Period,
): Promise<KnaphCounts> {
  const [sites, unit, counts] = await Promise.all([
    store.sites.list(orgId),
    rangeUnit(store.events, orgId, period),
    typeCounts(store.events, orgId, period),
  ])
  return {
    period: periodView(period, sites),
    totals: totalsOf(counts),
    unit,
    accessed: counts.types.get('memory.accessed') ?? emptyCounts(period),
    updated: counts.types.get('memory.updated') ?? emptyCounts(period),
  }
}
