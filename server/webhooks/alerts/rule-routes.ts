/** Routes of alert rules and alerts. */
import { Elysia } from 'elysia'
import type { Incident } from '../../../db/contract/webhooks.ts'
import { json } from '../../http/response.ts'
import { readJsonObject } from '../../http/body.ts'
import { invalidQuery, readQuery } from '../../http/request.ts'
import { limits } from '../../limits.ts'
import type { Store } from '../../../db/contract/store.ts'
import type { Clock } from '../../clock.ts'
import type { Access } from '../access.ts'
import { worstFirst } from './alerts.ts'
import { acknowledgeIncident, changeRule, createRule, deleteRule, listRules } from './rules.ts'
import { incidentView } from '../view.ts'

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
  const found = (orgId: string, isOpen: boolean, limit: number) =>
    store.webhooks.incidents({ orgId, isOpen, limit })
  return new Elysia()
    .get(`${base}/rules`, async ({ request }) => {
      const { orgId } = await access.read(request)
      readQuery(request, {})
      return json({ rules: await listRules(services, orgId) })
    })
    .post(
      `${base}/rules`,
      async ({ request }) => {
        const who = await access.write(request)
        readQuery(request, {})
        const body = await readJsonObject(request, { bytesMax: limits.jsonBodyBytesMax })
        return json({ rule: await createRule(services, who, body) }, 201)
      },
      unparsed,
    )
    .patch(
      `${base}/rules/:id`,
      async ({ request, params }) => {
        const who = await access.write(request)
        readQuery(request, {})
        const body = await readJsonObject(request, { bytesMax: limits.jsonBodyBytesMax })
        return json({ rule: await changeRule(services, who, params.id, body) })
      },
      unparsed,
    )
    .delete(
      `${base}/rules/:id`,
      async ({ request, params }) => {
        const who = await access.write(request)
        readQuery(request, {})
        await deleteRule(services, who, params.id)
        return json({ ok: true })
      },
      unparsed,
    )
    .get(`${base}/incidents`, async ({ request }) => {
      const { orgId } = await access.read(request)
      const isOpen = readState(readQuery(request, { status: 'one' }).one('status'))
      const unresolved = isOpen === false ? [] : await found(orgId, true, openMax)
      const resolved = isOpen === true ? [] : await found(orgId, false, incidentsShown)
      const incidents = worstFirst([...unresolved, ...resolved]).slice(0, incidentsShown)
      return json({ incidents: await view(incidents) })
    })
    .post(
      `${base}/incidents/:id/acknowledge`,
      async ({ request, params }) => {
        const who = await access.write(request)
        readQuery(request, {})
        await readJsonObject(request, { bytesMax: limits.jsonBodyBytesMax }, { emptyIsObject: true })
        const [incident] = await view([await acknowledgeIncident(services, who, params.id)])
        return json({ incident })
      },
      unparsed,
    )
}

const incidentsView = async (incidents: Incident[]): Promise<object[]> => incidents.map(incidentView)

/** `open` includes acknowledged alerts. */
function readState(text: string | undefined): boolean | null {
  if (text === undefined) return null
  if (text === 'open' || text === 'resolved') return text === 'open'
  throw invalidQuery('status', 'status must be one of open, resolved')
}
