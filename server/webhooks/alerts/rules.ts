/** Creates, changes, silences and deletes alert rules, for the API, the dashboard and setup files. */
import { auditEntry, type Actor } from '../../audit/entry.ts'
import { AppError } from '../../errors.ts'
import { isoTime, parseTime, type Clock } from '../../clock.ts'
import { newId } from '../../ids.ts'
import { limits } from '../../limits.ts'
import { wrongField } from '../../http/validate.ts'
import { definitionFields, readDefinition, readRuleName, type Body } from './definition.ts'
import { StoreError } from '../../../db/contract/errors.ts'
import type { Store } from '../../../db/contract/store.ts'
import type { Rule, RuleChange, RuleKind, RuleNumbers } from '../../../db/contract/alerts.ts'

interface RuleServices {
  store: Pick<Store, 'webhooks'>
  clock: Clock
}

const eventsMinDefault = 20
const minutesMax = 7 * 24 * 60

const emptyNumbers: RuleNumbers = { threshold: null, minutes: null, eventsMin: null }
const share = (body: Body): RuleNumbers => ({
  threshold: number(body, 'threshold', { min: 0, max: 1, whole: false }),
  minutes: null,
  eventsMin: number({ eventsMin: eventsMinDefault, ...body }, 'eventsMin', { min: 1, max: 1e9, whole: true }),
})

const numbersOf: { readonly [kind in RuleKind]: (body: Body) => RuleNumbers } = {
  new_vendor: () => emptyNumbers,
  blocked_share: share,
  tool_error_rate: share,
  silence: (body) => ({
    ...emptyNumbers,
    minutes: number(body, 'minutes', { min: 1, max: minutesMax, whole: true }),
  }),
  key_leaked: () => emptyNumbers,
  measure: () => emptyNumbers,
}

const kinds = Object.keys(numbersOf) as RuleKind[]

/** `fromFile`: the rule is defined in the setup file. A null field is absent here; in a change it may remove one. */
export async function createRule(
  { store, clock }: RuleServices,
  actor: Actor,
  requestBody: Body,
  { fromFile = false } = {},
): Promise<Rule> {
  const body: Body = Object.fromEntries(Object.entries(requestBody).filter(([, value]) => value !== null))
  const kind = kinds.find((ruleKind) => ruleKind === body['kind'])
  if (kind === undefined) throw wrongField('kind', `kind must be one of ${kinds.join(', ')}`)
  const { endpointId } = body
  if (typeof endpointId !== 'string') throw wrongField('endpointId', 'endpointId is required', 'required')
  const numbers = numbersOf[kind](body)
  const definition = kind === 'measure' ? readDefinition(body) : null
  const name = kind === 'measure' || body['name'] !== undefined ? readRuleName(body['name']) : ''
  await requireEndpoint(store, actor.orgId, endpointId)
  const now = clock.now()
  const rule: Rule = {
    id: newId('rul'),
    orgId: actor.orgId,
    endpointId,
    kind,
    ...numbers,
    createdAtMs: now,
    name,
    definition,
    fromFile,
    silencedUntilMs: null,
  }
  const metadata = {
    label: name || kind,
    kind,
    endpointId,
    ...numbers,
    ...(definition && { definition: { ...definition } }),
  }
  const audit = auditEntry(actor, { action: 'webhook_rule.created', target: rule.id, metadata }, now)
  const rulesMax = limits.webhookRulesPerOrgMax
  try {
    await store.webhooks.createRule({ rule, rulesMax, audit })
  } catch (error) {
    if (!(error instanceof StoreError) || error.kind !== 'conflict') throw error
    throw new AppError('conflict', `An organization can have at most ${rulesMax} alert rules.`)
  }
  return rule
}

async function requireEndpoint(store: RuleServices['store'], orgId: string, id: string): Promise<void> {
  if ((await store.webhooks.endpoint({ orgId, id })) === null)
    throw wrongField('endpointId', 'this organization has no endpoint with this id', 'not_found')
}

/** Changes the settings in `body`. Open incidents stay open until the next evaluation. */
export async function changeRule(
  services: RuleServices,
  actor: Actor,
  ruleId: string,
  body: Body,
  { fromFile = false } = {},
): Promise<Rule> {
  const { store, clock } = services
  const rule = await findRule(store, actor.orgId, ruleId)
  requireOwner(rule, fromFile)
  const change = rule.definition === null ? fixedChange(rule, body) : measureChange(rule, body)
  if (change.endpointId !== undefined && change.endpointId !== rule.endpointId)
    await requireEndpoint(store, actor.orgId, change.endpointId)
  const previousValues = Object.fromEntries(
    Object.keys(change).map((name) => [name, rule[name as keyof RuleChange] ?? null]),
  )
  const { kind, endpointId, name } = rule
  const metadata = {
    label: name || kind,
    kind,
    endpointId,
    before: plain(previousValues),
    after: plain(change),
  }
  const audit = auditEntry(actor, { action: 'webhook_rule.updated', target: ruleId, metadata }, clock.now())
  await store.webhooks.changeRule({ orgId: actor.orgId, ruleId, change, audit })
  return { ...rule, ...change }
}

/** As the audit log stores it. */
function plain(value: object): { [name: string]: string } {
  return JSON.parse(JSON.stringify(value)) as { [name: string]: string }
}

function fixedChange(rule: Rule, body: Body): RuleChange {
  const { kind, threshold, minutes, eventsMin } = rule
  const previousNumbers: RuleNumbers = { threshold, minutes, eventsMin }
  const ownSettings = Object.entries(previousNumbers).filter(([, value]) => value !== null)
  const changedSettings = ownSettings.filter(([name]) => body[name] !== undefined)
  if (changedSettings.length === 0)
    throw wrongField('', missingSettings(ownSettings.map(([name]) => name)), 'required')
  return numbersOf[kind]({ ...Object.fromEntries(ownSettings), ...body })
}

function missingSettings(settingNames: string[]): string {
  return settingNames.length === 0
    ? 'this kind of alert rule has no settings'
    : `at least one of ${settingNames.join(', ')} is required`
}

/** The rest of the definition stays, except the part of a share when another measure is chosen. */
function measureChange(rule: Rule, body: Body): RuleChange {
  const changedFields = ['name', 'endpointId', ...definitionFields].filter((name) => body[name] !== undefined)
  if (changedFields.length === 0)
    throw wrongField(
      '',
      `at least one of name, endpointId, ${definitionFields.join(', ')} is required`,
      'required',
    )
  const { endpointId } = body
  if (endpointId !== undefined && typeof endpointId !== 'string')
    throw wrongField('endpointId', 'endpointId must be a string', 'wrong_type')
  const dropsPart = body['measure'] !== undefined && body['measure'] !== 'share'
  return {
    definition: readDefinition({ ...rule.definition, ...(dropsPart && { of: null }), ...body }),
    ...(body['name'] !== undefined && { name: readRuleName(body['name']) }),
    ...(endpointId !== undefined && { endpointId }),
  }
}

async function findRule(store: RuleServices['store'], orgId: string, ruleId: string): Promise<Rule> {
  const rule = (await store.webhooks.rules(orgId)).find(({ id }) => id === ruleId)
  if (rule === undefined) throw new AppError('not_found', 'This organization has no alert rule with this id.')
  return rule
}

function requireOwner(rule: Rule, fromFile: boolean): void {
  if (rule.fromFile && !fromFile)
    throw new AppError('conflict', 'This alert rule is defined in the setup file. Change it there.')
}

export async function deleteRule(
  { store, clock }: RuleServices,
  actor: Actor,
  ruleId: string,
  { fromFile = false } = {},
): Promise<void> {
  const rule = await findRule(store, actor.orgId, ruleId)
  requireOwner(rule, fromFile)
  const { kind, endpointId, name } = rule
  const metadata = { label: name || kind, kind, endpointId }
  const audit = auditEntry(actor, { action: 'webhook_rule.deleted', target: ruleId, metadata }, clock.now())
  await store.webhooks.deleteRule({ orgId: actor.orgId, ruleId, audit })
}

/** Until a time, or null to end it. A rule of the setup file can be silenced too. */
export async function silenceRule(
  { store, clock }: RuleServices,
  actor: Actor,
  ruleId: string,
  body: Body,
): Promise<Rule> {
  const now = clock.now()
  const silencedUntilMs = body['until'] === null ? null : readUntil(body['until'], now)
  const rule = await findRule(store, actor.orgId, ruleId)
  const metadata = {
    label: rule.name || rule.kind,
    until: silencedUntilMs === null ? null : isoTime(silencedUntilMs),
  }
  const audit = auditEntry(actor, { action: 'webhook_rule.silenced', target: ruleId, metadata }, now)
  await store.webhooks.changeRule({ orgId: actor.orgId, ruleId, change: { silencedUntilMs }, audit })
  return { ...rule, silencedUntilMs }
}

function readUntil(value: unknown, now: number): number {
  const ms = typeof value === 'string' ? parseTime(value) : null
  if (ms !== null && ms > now && ms <= now + limits.alertSilenceMsMax) return ms
  const days = limits.alertSilenceMsMax / 86_400_000
  const code = value === undefined ? 'required' : 'wrong_format'
  throw wrongField('until', `until must be null or a time (RFC 3339) within the next ${days} days`, code)
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
