/**
 * Reads the fields of an endpoint from a request body or a setup file; throws 400 with the first invalid field. Finds
 * types in a filter that no event has, to warn about typing errors.
 */
import { AppError } from '../../errors.ts'
import { wrongField } from '../../http/validate.ts'
import { limits } from '../../limits.ts'
import { waitMs } from '../../clock.ts'
import { isHttp, parseDestination } from '../sinks/destination.ts'
import { RefusedUrl, type SinkOptions } from '../sinks/sink.ts'
import { nameProblem } from '../../text/names.ts'
import { isLongerThan, nearest } from '../../text/text.ts'
import type { EndpointFilter } from '../../../db/contract/webhooks.ts'
import type { Store } from '../../../db/contract/store.ts'

/**
 * The URL as it is stored. Names are not resolved: the answer, or the time it takes, would show which names of the
 * internal network exist. A name that resolves to a forbidden address is accepted and fails when a delivery is sent,
 * exactly like a name that does not exist. `httpOnly` is for deliveries without an endpoint.
 */
export function readUrl(options: SinkOptions, value: unknown, { httpOnly = false } = {}): string {
  if (value === undefined || value === null) throw wrongField('url', 'url is required', 'required')
  if (typeof value !== 'string') throw wrongField('url', 'url must be a string', 'wrong_type')
  try {
    const destination = parseDestination(value, options)
    if (httpOnly && !isHttp(destination)) throw new RefusedUrl('its scheme must be http or https')
    return destination.sink.check(destination.target, value, options)
  } catch (error) {
    if (error instanceof RefusedUrl) throw urlNotAllowed(error.message)
    throw error
  }
}

export function urlNotAllowed(reason: string): AppError {
  const message = `this URL is not allowed: ${reason}`
  return new AppError('invalid_body', message, {
    issues: [{ path: 'url', code: 'url_blocked', message }],
    hint: 'An operator can allow private ranges with --webhook-allow.',
  })
}

const valuesMax = 100

const filters = [
  { name: 'types', field: 'types', charsMax: limits.typeCharsMax, form: /^[a-z][a-z0-9_.-]*(?:\.\*)?$/ },
  { name: 'outcomes', field: 'outcomes', charsMax: limits.outcomeCharsMax, form: /^[a-z][a-z0-9_-]*$/ },
  { name: 'classes', field: 'classes', charsMax: limits.classCharsMax, form: null },
  { name: 'sites', field: 'siteIds', charsMax: limits.idCharsMax, form: null },
] as const

/** The filters that `body` contains. */
export function readFilters(body: { [name: string]: unknown }): Partial<EndpointFilter> {
  const endpointFilter: Partial<EndpointFilter> = {}
  for (const { name, field, charsMax, form } of filters) {
    const value = body[name]
    if (value === undefined || value === null) continue
    if (!Array.isArray(value)) throw wrongField(name, `${name} must be a list of strings`, 'wrong_type')
    if (value.length > valuesMax)
      throw wrongField(name, `${name} must have at most ${valuesMax} values`, 'too_many')
    endpointFilter[field] = value.map((text: unknown, index) => {
      const path = `${name}[${index}]`
      if (typeof text !== 'string') throw wrongField(path, `${path} must be a string`, 'wrong_type')
      if ([...text].length > charsMax + 2) throw wrongField(path, `${path} is too long`, 'too_long')
      if (form !== null && !form.test(text)) throw wrongField(path, `${path} cannot match any event`)
      return text
    })
  }
  return endpointFilter
}

/** Undefined when missing. */
export function readBatchSize(value: unknown): number | undefined {
  if (value === undefined || value === null) return undefined
  const max = limits.webhookBatchEventsMax
  if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= max) return value
  throw wrongField('batchSize', `batchSize must be a whole number from 1 to ${max}`)
}

/**
 * The wait before each retry in ms, read from whole seconds or strings such as `5m`. Null: the default of the server.
 * Undefined when missing.
 */
export function readRetryWaits(value: unknown): number[] | null | undefined {
  if (value === undefined || value === null) return value
  const { webhookRetriesMax: waitsMax, webhookRetriesMsMax: allMsMax } = limits
  if (!Array.isArray(value))
    throw wrongField('retryWaits', 'retryWaits must be a list of durations', 'wrong_type')
  if (value.length > waitsMax)
    throw wrongField('retryWaits', `retryWaits must have at most ${waitsMax} durations`, 'too_many')
  const waits = value.map((wait: unknown, index) => {
    const ms =
      typeof wait === 'number' ? wait * 1_000 : typeof wait === 'string' ? waitMs(wait.trim()) : Number.NaN
    if (ms >= 1_000 && Number.isInteger(ms / 1_000)) return ms
    const path = `retryWaits[${index}]`
    throw wrongField(path, `${path} must be a whole number of seconds, at least 1, such as 60 or "5m"`)
  })
  if (waits.reduce((sum, ms) => sum + ms, 0) > allMsMax) {
    throw wrongField(
      'retryWaits',
      `retryWaits must add up to at most ${allMsMax / 3_600_000} hours`,
      'too_long',
    )
  }
  return waits
}

/** Undefined when missing. */
export function readLabel(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined
  const label = typeof value === 'string' ? value.trim() : null
  if (label === null) throw wrongField('label', 'label must be a string', 'wrong_type')
  if (isLongerThan(label, limits.labelCharsMax))
    throw wrongField('label', `label must have at most ${limits.labelCharsMax} characters`, 'too_long')
  const problem = nameProblem(label, { optional: true })
  if (problem !== null) throw wrongField('label', `label ${problem}`)
  return label
}

/** Types of our clients and of the appliance. Other types are accepted too. */
const commonTypes = [
  'agent.detected',
  'agent.missed',
  'agent.requested',
  'agent.referred',
  'auth.identity_presented',
  'auth.identity_cleared',
  'authz.evaluated',
  'authz.policies_set',
  'tool.executed',
  'tool.surfaced',
  'tool.registered',
  'tool.progressed',
  'memory.accessed',
  'memory.updated',
  'sdk.error',
] as const

interface UnknownType {
  type: string
  suggestion: string | null
}

/** The filters that match no common type and no type that the organization ever sent. */
export async function unknownTypes(
  store: Pick<Store, 'events'>,
  orgId: string,
  filters: readonly string[],
): Promise<UnknownType[]> {
  const strange = filters.filter((filter) => !matchesOne(filter, commonTypes))
  if (strange.length === 0) return []
  const { byType } = await store.events.overview(orgId)
  const knownTypes = [...new Set([...commonTypes, ...Object.keys(byType)])]
  const prefixes = [...new Set(knownTypes.map((type) => `${type.split('.')[0]}.*`))]
  return strange
    .filter((filter) => !matchesOne(filter, knownTypes))
    .map((type) => ({ type, suggestion: nearest(type, type.endsWith('.*') ? prefixes : knownTypes) }))
}

function matchesOne(filter: string, types: readonly string[]): boolean {
  if (!filter.endsWith('.*')) return types.includes(filter)
  const start = filter.slice(0, -1)
  return types.some((type) => type.startsWith(start))
}

/** Accepted, but probably a mistake. */
export type Warning = { path: string; code: 'unknown_type'; message: string }

export function warningsOf(filters: readonly string[], unknown: readonly UnknownType[]): Warning[] {
  return unknown.map(({ type, suggestion }) => ({
    path: `types[${filters.indexOf(type)}]`,
    code: 'unknown_type',
    message: `No event has the type ${type} yet.${suggestion === null ? '' : ` Did you mean ${suggestion}?`}`,
  }))
}
