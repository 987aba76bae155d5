/** Reads the members of an endpoint that people give: its label and the filters of what it hears. */
import type { EndpointFilter } from '../../../db/contract/webhooks.ts'
import { limits } from '../../limits.ts'
import { waitMs } from '../../text/time.ts'
import { wrongBody } from '../delivery/destination.ts'

const valuesMax = 100

const filters = [
  { name: 'types', member: 'types', charsMax: limits.typeCharsMax, form: /^[a-z][a-z0-9_.-]*(?:\.\*)?$/ },
  { name: 'outcomes', member: 'outcomes', charsMax: limits.outcomeCharsMax, form: /^[a-z][a-z0-9_-]*$/ },
  { name: 'classes', member: 'classes', charsMax: limits.classCharsMax, form: null },
  { name: 'sites', member: 'siteIds', charsMax: limits.idCharsMax, form: null },
] as const

/** The filters that `body` names; throws 400 naming the first wrong one. */
export function readFilters(body: { [member: string]: unknown }): Partial<EndpointFilter> {
  const found: Partial<EndpointFilter> = {}
  for (const { name, member, charsMax, form } of filters) {
    const value = body[name]
    if (value === undefined || value === null) continue
    if (!Array.isArray(value)) throw wrongBody(name, 'wrong_type', `${name} must be a list of texts`)
    if (value.length > valuesMax) throw wrongBody(name, 'too_many', `${name} has at most ${valuesMax} values`)
    found[member] = value.map((text: unknown, index) => {
      const path = `${name}[${index}]`
      if (typeof text !== 'string') throw wrongBody(path, 'wrong_type', `${path} must be a text`)
      if ([...text].length > charsMax + 2) throw wrongBody(path, 'too_long', `${path} is too long`)
      if (form !== null && !form.test(text))
        throw wrongBody(path, 'wrong_format', `${path} can match no event`)
      return text
    })
  }
  return found
}

/** Undefined when not given. */
export function readBatchSize(value: unknown): number | undefined {
  if (value === undefined || value === null) return undefined
  const max = limits.webhookBatchEventsMax
  if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= max) return value
  throw wrongBody('batchSize', 'wrong_format', `batchSize must be a whole number from 1 to ${max}`)
}

/**
 * The waits before an endpoint's retries, whole seconds or texts such as `5m`; null: those of the server. Undefined
 * when not given.
 */
export function readRetryWaits(value: unknown): number[] | null | undefined {
  if (value === undefined || value === null) return value
  const { webhookWaitsMax: waitsMax, webhookWaitsMsMax: allMsMax } = limits
  if (!Array.isArray(value)) throw wrongBody('retryWaits', 'wrong_type', 'retryWaits must be a list of waits')
  if (value.length > waitsMax)
    throw wrongBody('retryWaits', 'too_many', `retryWaits has at most ${waitsMax} waits`)
  const waits = value.map((wait: unknown, index) => {
    const ms =
      typeof wait === 'number' ? wait * 1_000 : typeof wait === 'string' ? waitMs(wait.trim()) : Number.NaN
    if (ms >= 1_000 && Number.isInteger(ms / 1_000)) return ms
    const path = `retryWaits[${index}]`
    throw wrongBody(path, 'wrong_format', `${path} must be whole seconds from 1, like 60 or "5m"`)
  })
  if (waits.reduce((sum, ms) => sum + ms, 0) > allMsMax) {
    throw wrongBody(
      'retryWaits',
      'too_long',
      `retryWaits must add up to at most ${allMsMax / 3_600_000} hours`,
    )
  }
  return waits
}

/** Undefined when not given. */
export function readLabel(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined
  const label = typeof value === 'string' ? value.trim() : null
  if (label === null) throw wrongBody('label', 'wrong_type', 'label must be a text')
  if ([...label].length > limits.labelCharsMax || /[\u0000-\u001f\u007f]/.test(label)) {
    throw wrongBody('label', 'too_long', `label has at most ${limits.labelCharsMax} characters on one line`)
  }
  return label
}
