/** `sightglass webhook`: the signing secret, deliveries and endpoints of an organization. */
import type { Json } from '../../../db/contract/store.ts'
import type { Actor } from '../../audit/entry.ts'
import { isoTime } from '../../clock.ts'
import { UsageError } from '../../errors.ts'
import {
  deliveryStatuses,
  findDelivery,
  replayDead,
  replayDelivery,
  scheduleDelivery,
} from '../../webhooks/delivery/deliveries.ts'
import {
  createEndpoint,
  deleteEndpoint,
  listEndpoints,
  pauseEndpoint,
  resumeEndpoint,
  rotateEndpointSecret,
  type EndpointServices,
} from '../../webhooks/endpoints/endpoints.ts'
import { orgSecret, rotateOrgSecret } from '../../webhooks/endpoints/org-secret.ts'
import { replayEndpoint } from '../../webhooks/endpoints/replay-range.ts'
import { testEndpoint } from '../../webhooks/endpoints/test-batch.ts'
import { attemptView, deliveryText } from '../../webhooks/view.ts'
import { requireOrg } from './org.ts'
import { flagOf, numberOf, textOf, textOrNull, textsOf, type Params } from '../../runtime/params.ts'
import type { StoreVerb, VerbContext } from '../../runtime/verb-context.ts'

type Work = (parts: EndpointServices, who: Actor, params: Params) => Promise<Json>

/** Every verb of webhooks works in one organization; the actor is the command line. */
function inOrg(work: Work): StoreVerb {
  return async (context: VerbContext, params: Params) => {
    const { id: orgId } = await requireOrg(context.store, textOf(params, 'org'))
    const rules = { allow: textsOf(params, 'allow'), sinkDir: textOrNull(params, 'sinkDir') }
    return work(context.webhooks(rules), { orgId, actor: 'cli' }, params)
  }
}

export const showSecret = inOrg(async (parts, who, params) => {
  const { secret, previousUntilMs } = await (flagOf(params, 'rotate') ? rotateOrgSecret : orgSecret)(
    parts,
    who,
  )
  return { secret, oldSecretUntil: previousUntilMs === null ? null : isoTime(previousUntilMs) }
})

export const testDelivery = inOrg(async (parts, who, params) => {
  const endpointId = textOrNull(params, 'endpointId')
  if (endpointId !== null) return { ok: true, deliveryId: await testEndpoint(parts, who, endpointId) }
  const payload = readPayload(textOf(params, 'payload'))
  return { ok: true, deliveryId: await scheduleDelivery(parts, who, { url: textOf(params, 'url'), payload }) }
})

function readPayload(text: string): string {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return JSON.stringify(value)
  } catch {
    // Said below: the parser's own message would quote the payload.
  }
  throw new UsageError('--payload must be a JSON object, like {"hello":"world"}')
}

export const listDeliveries = inOrg(async ({ store }, { orgId }, params) => {
  const asked = textOrNull(params, 'status')
  const status = deliveryStatuses.find((each) => each === asked) ?? null
  const query = {
    orgId,
    status,
    endpointId: null,
    limit: numberOf(params, 'limit'),
    bytesMax: 16 * 1024 * 1024,
  }
  const { deliveries } = await store.webhooks.list({ ...query, beforeSeq: null })
  return { deliveries: deliveries.map((delivery) => JSON.parse(deliveryText(delivery)) as Json) }
})

export const showDelivery = inOrg(async ({ store }, { orgId }, params) => {
  const { delivery, attempts } = await findDelivery(store, orgId, textOf(params, 'id'))
  return JSON.parse(deliveryText(delivery, { attemptLog: attempts.map(attemptView) })) as Json
})

export const replay = inOrg(async (parts, who, params) => {
  const id = textOrNull(params, 'id')
  const [from, until] = [textOrNull(params, 'from'), textOrNull(params, 'until')]
  if (from !== null || until !== null) return replayRange(parts, who, { id, from, until })
  if (flagOf(params, 'dead') === (id !== null)) {
    throw new UsageError('name one delivery, or all dead letters with --dead')
  }
  if (id === null) return { ok: true, replayed: await replayDead(parts, who, null) }
  await replayDelivery(parts, who, id)
  return { ok: true, replayed: 1 }
})

async function replayRange(
  parts: EndpointServices,
  who: Actor,
  { id, from, until }: { id: string | null; from: string | null; until: string | null },
): Promise<Json> {
  if (id === null || from === null) throw new UsageError('a range needs the id of an endpoint and --from')
  const place = (text: string) => (/^\d{1,15}$/.test(text) ? Number(text) : text)
  const body = { from: place(from), until: until === null ? null : place(until) }
  return { ok: true, endpoint: await replayEndpoint(parts, who, id, body) }
}

export const addEndpoint = inOrg(async (parts, who, params) => {
  const filters = {
    types: textsOf(params, 'types'),
    outcomes: textsOf(params, 'outcomes'),
    classes: textsOf(params, 'classes'),
    sites: textsOf(params, 'sites'),
  }
  return createEndpoint(parts, who, {
    url: textOf(params, 'url'),
    label: textOrNull(params, 'label'),
    ...filters,
    retryWaits: textOrNull(params, 'retryWaits')?.split(',') ?? null,
  })
})

export const endpoints = inOrg(async (parts, { orgId }) => ({ endpoints: await listEndpoints(parts, orgId) }))

export const pause = inOrg(async (parts, who, params) => {
  return { endpoint: await pauseEndpoint(parts, who, textOf(params, 'id')) }
})

export const resume = inOrg(async (parts, who, params) => {
  return { endpoint: await resumeEndpoint(parts, who, textOf(params, 'id')) }
})

export const rotateSecret = inOrg((parts, who, params) =>
  rotateEndpointSecret(parts, who, textOf(params, 'id')),
)

export const removeEndpoint = inOrg(async (parts, who, params) => {
  await deleteEndpoint(parts, who, textOf(params, 'id'))
  return { ok: true, id: textOf(params, 'id') }
})
