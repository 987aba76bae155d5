/** Routes of alert rules and alerts: creates, changes and deletes rules, lists and acknowledges alerts. */
import { StoreError } from '../../../db/contract/errors.ts'
import { auditEntry, type Actor } from '../../audit/entry.ts'
import { AppError } from '../../errors.ts'
import { newId } from '../../ids.ts'
import { limits } from '../../limits.ts'
import { wrongField } from '../../http/validate.ts'
import { incidentView, ruleView, type Access } from '../view.ts'
import { Elysia } from 'elysia'
import { json } from '../../http/response.ts'
import { readJsonObject } from '../../http/body.ts'
import { invalidQuery, readQuery } from '../../http/request.ts'
import { worstFirst } from './alerts.ts'
import type { Store } from '../../../db/contract/store.ts'
import type { Incident, Rule, RuleKind, RuleNumbers } from '../../../db/contract/webhooks.ts'
import type { Clock } from '../../clock.ts'

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

type Body = { [name: string]: unknown }
type RuleJson = ReturnType<typeof ruleView>

const eventsMinDefault = 20
const minutesMax = 7 * 24 * 60

const none: RuleNumbers = { threshold: null, minutes: null, eventsMin: null }
const share = (body: Body): RuleNumbers => ({
  threshold: number(body, 'threshold', { min: 0, max: 1, whole: false }),
  minutes: null,
  eventsMin: number({ eventsMin: eventsMinDefault, ...body }, 'eventsMin', { min: 1, max: 1e9, whole: true }),
})

const numbersOf: { readonly [kind in RuleKind]: (body: Body) => RuleNumbers } = {
  new_vendor: () => none,
  blocked_share: share,
  tool_error_rate: share,
  silence: (body) => ({
    ...none,
    minutes: number(body, 'minutes', { min: 1, max: minutesMax, whole: true }),
  }),
  key_leaked: () => none,
}

const kinds = Object.keys(numbersOf) as RuleKind[]

async function createRule({ store, clock }: RuleRoutesServices, who: Actor, body: Body): Promise<RuleJson> {
  const kind = kinds.find((each) => each === body['kind'])
  if (kind === undefined) throw wrongField('kind', `kind must be one of ${kinds.join(', ')}`)
  const { endpointId } = body
  if (typeof endpointId !== 'string') throw wrongField('endpointId', 'endpointId is required', 'required')
  const numbers = numbersOf[kind](body)
  if ((await store.webhooks.rules(who.orgId)).length >= limits.webhookRulesPerOrgMax) {
    throw new AppError(
      'conflict',
      `An organization can have at most ${limits.webhookRulesPerOrgMax} alert rules.`,
    )
  }
  if ((await store.webhooks.endpoint({ orgId: who.orgId, id: endpointId })) === null) {
    throw wrongField('endpointId', 'this organization has no endpoint with this id', 'not_found')
  }
  const now = clock.now()
  const rule: Rule = { id: newId('rul'), orgId: who.orgId, endpointId, kind, ...numbers, createdAtMs: now }
  const audit = auditEntry(
    who,
    {
      action: 'webhook_rule.created',
      target: rule.id,
      metadata: { label: kind, kind, endpointId, ...numbers },
    },
    now,
  )
  await store.webhooks.createRule({ rule, audit })
  return ruleView(rule)
}

async function listRules({ store }: RuleRoutesServices, orgId: string): Promise<RuleJson[]> {
  return (await store.webhooks.rules(orgId)).map(ruleView)
}

/** Changes the settings in `body`. Open incidents stay open until the next evaluation. */
async function changeRule(
  { store, clock }: RuleRoutesServices,
  who: Actor,
  ruleId: string,
  body: Body,
): Promise<RuleJson> {
  const rule = await findRule(store, who.orgId, ruleId)
  const { kind, endpointId, threshold, minutes, eventsMin } = rule
  const before: RuleNumbers = { threshold, minutes, eventsMin }
  const own = Object.entries(before).filter(([, value]) => value !== null)
  const named = own.filter(([name]) => body[name] !== undefined)
  if (named.length === 0) throw wrongField('', missingSettings(own.map(([name]) => name)), 'required')
  const numbers = numbersOf[kind]({ ...Object.fromEntries(own), ...body })
  const now = clock.now()
  const metadata = { label: kind, kind, endpointId, before: { ...before }, after: { ...numbers } }
  const audit = auditEntry(who, { action: 'webhook_rule.updated', target: ruleId, metadata }, now)
  await store.webhooks.changeRule({ orgId: who.orgId, ruleId, numbers, audit })
  return ruleView({ ...rule, ...numbers })
}

function missingSettings(own: string[]): string {
  return own.length === 0
    ? 'this kind of alert rule has no settings'
    : `at least one of ${own.join(', ')} is required`
}

async function findRule(store: Store, orgId: string, ruleId: string): Promise<Rule> {
  const rule = (await store.webhooks.rules(orgId)).find(({ id }) => id === ruleId)
  if (rule === undefined) throw new AppError('not_found', 'This organization has no alert rule with this id.')
  return rule
}

async function deleteRule({ store, clock }: RuleRoutesServices, who: Actor, ruleId: string): Promise<void> {
  const { kind, endpointId } = await findRule(store, who.orgId, ruleId)
  const audit = auditEntry(
    who,
    { action: 'webhook_rule.deleted', target: ruleId, metadata: { label: kind, kind, endpointId } },
    clock.now(),
  )
  await store.webhooks.deleteRule({ orgId: who.orgId, ruleId, audit })
}

/** Idempotent. */
async function acknowledgeIncident(
  { store, clock }: RuleRoutesServices,
  who: Actor,
  id: string,
): Promise<Incident> {
  const now = clock.now()
  const audit = auditEntry(who, { action: 'webhook_alert.acknowledged', target: id, metadata: {} }, now)
  try {
    return await store.webhooks.acknowledgeIncident({ orgId: who.orgId, id, now, by: who.actor, audit })
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    if (error.kind === 'not_found')
      throw new AppError('not_found', 'This organization has no alert with this id.')
    if (error.kind === 'conflict') throw new AppError('conflict', 'This alert is already resolved.')
    throw error
  }
}

function number(
  body: Body,
  name: string,
  { min, max, whole }: { min: number; max: number; whole: boolean },
): number {
  const value = body[name]
  const isFine =
    typeof value === 'number' && value >= min && value <= max && (!whole || Number.isInteger(value))
  if (isFine) return value
  const message = `${name} must be a ${whole ? 'whole ' : ''}number from ${min} to ${max}`
  throw wrongField(name, message, value === undefined ? 'required' : 'wrong_format')
}
