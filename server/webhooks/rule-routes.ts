/** Routes of alert rules and alerts: rules and their back-test, lists and acknowledges alerts. */
import { StoreError } from '../../db/contract/errors.ts'
import { auditEntry, type Actor } from '../audit/entry.ts'
import { AppError } from '../errors.ts'
import { limits } from '../limits.ts'
import { incidentView, ruleView, type Access } from './view.ts'
import { Elysia } from 'elysia'
import { json } from '../http/response.ts'
import { readJsonObject } from '../http/body.ts'
import { invalidQuery, readQuery } from '../http/request.ts'
import { worstFirst } from './alerts/alerts.ts'
import { backtest } from './alerts/backtest.ts'
import { readDefinition } from './alerts/definition.ts'
import { changeRule, createRule, deleteRule, silenceRule } from './alerts/rules.ts'
import type { Store } from '../../db/contract/store.ts'
import type { Incident } from '../../db/contract/alerts.ts'
import type { Clock } from '../clock.ts'

export interface RuleRoutesServices {
  store: Store
  clock: Clock
}

const unparsed = { parse: 'none' } as const
const incidentsShown = 200
/** At most this many open alerts are sorted. */
const openMax = 1_000

export function ruleRoutes(
  { store, clock }: RuleRoutesServices,
  base: string,
  access: Access,
  view = incidentsView,
) {
  const services = { store, clock }
  return new Elysia()
    .get(`${base}/rules`, async ({ request }) => {
      const { orgId } = await access.read(request)
      readQuery(request, {})
      return json({ rules: (await store.webhooks.rules(orgId)).map(ruleView) })
    })
    .post(
      `${base}/rules`,
      async ({ request }) => {
        const actor = await access.write(request)
        readQuery(request, {})
        const body = await readJsonObject(request, { bytesMax: limits.jsonBodyBytesMax })
        return json({ rule: ruleView(await createRule(services, actor, body)) }, 201)
      },
      unparsed,
    )
    .patch(
      `${base}/rules/:id`,
      async ({ request, params }) => {
        const actor = await access.write(request)
        readQuery(request, {})
        const body = await readJsonObject(request, { bytesMax: limits.jsonBodyBytesMax })
        return json({ rule: ruleView(await changeRule(services, actor, params.id, body)) })
      },
      unparsed,
    )
    .post(
      `${base}/rules/:id/silence`,
      async ({ request, params }) => {
        const actor = await access.write(request)
        readQuery(request, {})
        const body = await readJsonObject(request, { bytesMax: limits.jsonBodyBytesMax })
        return json({ rule: ruleView(await silenceRule(services, actor, params.id, body)) })
      },
      unparsed,
    )
    .post(
      `${base}/rules/backtest`,
      async ({ request }) => {
        const { orgId } = await access.read(request)
        readQuery(request, {})
        const body = await readJsonObject(request, { bytesMax: limits.jsonBodyBytesMax })
        const definition = readDefinition(body)
        return json(await withinShare(orgId, () => backtest(services, orgId, definition, clock.now())))
      },
      unparsed,
    )
    .delete(
      `${base}/rules/:id`,
      async ({ request, params }) => {
        const actor = await access.write(request)
        readQuery(request, {})
        await deleteRule(services, actor, params.id)
        return json({ ok: true })
      },
      unparsed,
    )
    .use(incidentRoutes(services, base, access, view))
}

function incidentRoutes(
  services: RuleRoutesServices,
  base: string,
  access: Access,
  view: typeof incidentsView,
) {
  const listIncidents = (orgId: string, isOpen: boolean, limit: number) =>
    services.store.webhooks.incidents({ orgId, isOpen, limit })
  return new Elysia()
    .get(`${base}/incidents`, async ({ request }) => {
      const { orgId } = await access.read(request)
      const isOpen = readState(readQuery(request, { status: 'one' }).one('status'))
      const unresolved = isOpen === false ? [] : await listIncidents(orgId, true, openMax)
      const resolved = isOpen === true ? [] : await listIncidents(orgId, false, incidentsShown)
      const incidents = worstFirst([...unresolved, ...resolved]).slice(0, incidentsShown)
      return json({ incidents: await view(incidents) })
    })
    .post(
      `${base}/incidents/:id/acknowledge`,
      async ({ request, params }) => {
        const actor = await access.write(request)
        readQuery(request, {})
        await readJsonObject(request, { bytesMax: limits.jsonBodyBytesMax }, { emptyIsObject: true })
        const [incident] = await view([await acknowledgeIncident(services, actor, params.id)])
        return json({ incident })
      },
      unparsed,
    )
}

/** Back-tests in progress, by organization: each may read a month of counts. */
const running = new Map<string, number>()

async function withinShare<T>(orgId: string, work: () => Promise<T>): Promise<T> {
  const runningCount = running.get(orgId) ?? 0
  if (runningCount >= limits.alertBacktestsMax)
    throw new AppError('overloaded', 'Other back-tests of this organization are running. Try again in 1 s.', {
      headers: { 'retry-after': '1' },
    })
  running.set(orgId, runningCount + 1)
  try {
    return await work()
  } finally {
    const remainingCount = running.get(orgId)! - 1
    if (remainingCount === 0) running.delete(orgId)
    else running.set(orgId, remainingCount)
  }
}

const incidentsView = async (incidents: Incident[]): Promise<object[]> => incidents.map(incidentView)

/** `open` includes acknowledged alerts. */
function readState(text: string | undefined): boolean | null {
  if (text === undefined) return null
  if (text === 'open' || text === 'resolved') return text === 'open'
  throw invalidQuery('status', 'status must be one of open, resolved')
}

/** Idempotent. */
async function acknowledgeIncident(
  { store, clock }: RuleRoutesServices,
  actor: Actor,
  id: string,
): Promise<Incident> {
  const now = clock.now()
  const audit = auditEntry(actor, { action: 'webhook_alert.acknowledged', target: id, metadata: {} }, now)
  try {
    return await store.webhooks.acknowledgeIncident({ orgId: actor.orgId, id, now, by: actor.actor, audit })
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    if (error.kind === 'not_found')
      throw new AppError('not_found', 'This organization has no alert with this id.')
    if (error.kind === 'conflict')
      throw new AppError('conflict', 'This alert is pending or already resolved.')
    throw error
  }
}
