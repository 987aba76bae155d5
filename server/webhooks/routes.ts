/** Webhook routes: the public API by secret key, the same by sign-in, and what only the dashboard needs. */
import { Elysia } from 'elysia'
import { isoTime } from '../clock.ts'
import { holdSentence } from '../system/clock-hold.ts'
import { json } from '../http/response.ts'
import { readJsonObject } from '../http/body.ts'
import { readQuery } from '../http/request.ts'
import { limits } from '../limits.ts'
import { requestHeaders } from './sinks/http.ts'
import { findDelivery, replayDead } from './delivery/deliveries.ts'
import { deliveryRoutes, type DeliveryRoutesServices } from './delivery-routes.ts'
import { endpointRoutes, type EndpointRoutesServices } from './endpoint-routes.ts'
import { unknownTypes } from './endpoints/endpoint-fields.ts'
import { alertNotices, endpointNotices, type Notice } from './alerts/alerts.ts'
import { orgSecret, rotateOrgSecret, type ShownSecret } from './endpoints/endpoints.ts'
import { ruleRoutes, type RuleRoutesServices } from './rule-routes.ts'
import { snippets } from './sinks/signing.ts'
import { incidentView, type Access } from './view.ts'
import type { Role, Store } from '../../db/contract/store.ts'
import type { Incident } from '../../db/contract/alerts.ts'
import type { Delivery } from '../../db/contract/webhooks.ts'
import type { SignIns } from '../identity/sign-in/sign-ins.ts'
import type { ClockGuard } from '../system/clock-guard.ts'
import type { KeyGuard, Scope } from '../http/guard.ts'

interface DashboardWebhookRoutesServices
  extends EndpointRoutesServices, RuleRoutesServices, DeliveryRoutesServices {
  clockGuard: ClockGuard
  signIns: SignIns
}

const unparsed = { parse: 'none' } as const
const managers = ['owner', 'admin'] as const
const alertsCounted = 1_000

export function dashboardWebhookRoutes(services: DashboardWebhookRoutesServices) {
  const { store, clock, signIns, webhooks } = services
  const admit = async (request: Request, roles?: readonly Role[]) => {
    const { org, account } = await signIns.require(request, roles)
    return { orgId: org.id, actor: `user:${account.id}` }
  }
  const access: Access = {
    read: (request) => admit(request),
    write: (request) => admit(request, managers),
  }
  return new Elysia()
    .get('/api/webhooks/notices', async ({ request }) => {
      const { orgId } = await access.read(request)
      readQuery(request, {})
      const open = await store.webhooks.incidents({ orgId, isOpen: true, limit: alertsCounted })
      const endpoints = await store.webhooks.bareEndpoints(orgId)
      const clock = await clockNotices(services, request)
      return json({ notices: [...clock, ...alertNotices(open), ...endpointNotices(endpoints)] })
    })
    .get('/api/webhooks/unknown-types', async ({ request }) => {
      const { orgId } = await access.write(request)
      const types = readQuery(request, { type: 'many' }).many('type') ?? []
      return json({ unknown: await unknownTypes(store, orgId, types) })
    })
    .get('/api/webhooks/snippets', async ({ request }) => {
      await access.read(request)
      readQuery(request, {})
      return json({ snippets })
    })
    .get('/api/webhooks/secret', async ({ request }) => {
      // A reader of the secret can forge signatures, so reading needs the same role as rotating.
      const actor = await access.write(request)
      readQuery(request, {})
      return json(secretView(await orgSecret(webhooks, actor)))
    })
    .post(
      '/api/webhooks/secret/rotate',
      async ({ request }) => {
        const actor = await access.write(request)
        await readJsonObject(request, { bytesMax: limits.jsonBodyBytesMax }, { emptyIsObject: true })
        return json(secretView(await rotateOrgSecret(webhooks, actor)))
      },
      unparsed,
    )
    .post(
      '/api/webhooks/replay-dead',
      async ({ request }) => {
        const actor = await access.write(request)
        const bytes = { bytesMax: limits.jsonBodyBytesMax }
        const { endpointId } = await readJsonObject(request, bytes, { emptyIsObject: true })
        const endpointFilter = typeof endpointId === 'string' ? endpointId : null
        return json({ ok: true, replayed: await replayDead({ store, clock }, actor, endpointFilter) }, 202)
      },
      unparsed,
    )
    .get('/api/webhooks/:id/request', async ({ request, params }) => {
      const actor = await access.write(request)
      readQuery(request, {})
      const { delivery, attempts } = await findDelivery(store, actor.orgId, params.id)
      const atMs = attempts.at(-1)?.atMs ?? clock.now()
      return json(await requestView(services, delivery, atMs))
    })
    .use(endpointRoutes(services, '/api/webhooks/endpoints', access))
    .use(ruleRoutes(services, '/api/webhooks', access, (incidents) => namedIncidents(store, incidents)))
    .use(deliveryRoutes(services, '/api/webhooks', access))
}

/** Adds the name of the person who acknowledged each; the public API leaves it to the audit trail. */
async function namedIncidents(
  store: Pick<Store, 'accounts' | 'keys'>,
  incidents: Incident[],
): Promise<object[]> {
  const names = new Map<string, string | null>()
  for (const { acknowledgedBy: actor, orgId } of incidents) {
    if (actor === null || names.has(actor)) continue
    const [kind, id = ''] = actor.split(':')
    if (kind === 'user') names.set(actor, (await store.accounts.find(id))?.email ?? null)
    else if (kind !== 'key') names.set(actor, actor)
    else names.set(actor, (await store.keys.list({ orgId })).find((key) => key.id === id)?.label ?? null)
  }
  return incidents.map((incident) => ({
    ...incidentView(incident),
    acknowledgedByName: names.get(incident.acknowledgedBy ?? '') ?? null,
  }))
}

function secretView({ secret, previousUntilMs }: ShownSecret) {
  return { secret, oldSecretUntil: previousUntilMs === null ? null : isoTime(previousUntilMs) }
}

export type SecretView = ReturnType<typeof secretView>

/** The request as sent at `atMs`, signed with the current secret, to test the code of a receiver. */
async function requestView(
  { webhooks, store }: DashboardWebhookRoutesServices,
  delivery: Delivery,
  atMs: number,
) {
  const { id, orgId, endpointId, url, body } = delivery
  const encryptedSecrets = await encryptedSecretsOf(store, orgId, endpointId)
  const headers = requestHeaders(webhooks, { delivery, encryptedSecrets }, atMs)
  return { id, method: 'POST', url, at: isoTime(atMs), headers, body }
}

export type RequestView = Awaited<ReturnType<typeof requestView>>

async function encryptedSecretsOf(
  store: Pick<Store, 'webhooks'>,
  orgId: string,
  endpointId: string | null,
): Promise<string[]> {
  if (endpointId === null) {
    const storedSecret = await store.webhooks.findOrgSecret(orgId)
    return storedSecret === null ? [] : [storedSecret.encryptedSecret]
  }
  const storedEndpoint = await store.webhooks.endpoint({ orgId, id: endpointId })
  return storedEndpoint === null ? [] : [storedEndpoint.endpoint.encryptedSecret]
}

/** For operators only, because only they can confirm the clock. */
async function clockNotices(
  { signIns, clockGuard }: DashboardWebhookRoutesServices,
  request: Request,
): Promise<Notice[]> {
  const { account } = await signIns.require(request)
  const hold = account.operator ? clockGuard.hold() : null
  if (hold === null) return []
  const href = '/settings/system'
  return [{ code: 'clock_jumped', endpointId: null, message: holdSentence(hold), href }]
}

/** The public API (contract §9). */
interface WebhookRoutesServices extends EndpointRoutesServices, RuleRoutesServices, DeliveryRoutesServices {
  guard: KeyGuard
}

export function webhookRoutes(services: WebhookRoutesServices) {
  const admit = async (request: Request, scope: Scope) => {
    const { orgId, id } = await services.guard.gateway(request, scope)
    return { orgId, actor: `key:${id}` }
  }
  const access: Access = {
    read: (request) => admit(request, 'webhooks:read'),
    write: (request) => admit(request, 'webhooks:write'),
  }
  return new Elysia()
    .use(endpointRoutes(services, '/v1/webhooks/endpoints', access))
    .use(ruleRoutes(services, '/v1/webhooks', access))
    .use(deliveryRoutes(services, '/v1/webhooks', access))
}
