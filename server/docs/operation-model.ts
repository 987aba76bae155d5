/**
 * The shape of an API operation, from which OpenAPI and /docs are built, and what operations share: query parameters,
 * and example values with times that shift to now, so that a pasted example is current.
 */
import { t } from 'elysia'
import { integer } from '../http/field-models.ts'
import type { Schema } from '../http/validate.ts'
import { limits } from '../limits.ts'
import type { Scope } from '../http/guard.ts'
import { errorStatus, type ErrorCode } from '../errors.ts'
import { dayMs, hourMs } from '../../db/contract/units.ts'

export interface Parameter {
  schema: Schema
  description: string
  repeats?: true // matches any of the values
  required?: true
  example?: string
}

export interface Answer {
  description: string
  type?: string // JSON by default
  schema?: Schema
  example?: unknown
}

export interface Operation {
  id: string
  method: 'get' | 'post' | 'patch' | 'delete'
  path: string // with {parameters}
  tag: string
  summary: string
  about?: string
  key: 'ingest' | 'secret' | 'none'
  scope?: Scope // of a secret key
  params?: { [name: string]: { description: string; example: string } }
  query?: { [name: string]: Parameter }
  /** `type` is JSON by default. */
  body?: { schema: Schema; example: unknown; optional?: true; type?: string; otherTypes?: string[] }
  answers: { [status: number]: Answer | Answer[] }
  /** Errors are `google.rpc.Status`, where a full disk is 503, instead of the common form. */
  errorForm?: 'rpc'
  /** In addition to the errors that every operation of this kind has. */
  errors?: ErrorCode[]
}

/** The status of an error in the answers of this operation. */
export function statusIn({ errorForm }: Operation, code: ErrorCode): number {
  return errorForm === 'rpc' && code === 'storage_full' ? 503 : errorStatus[code]
}

/** Every error code that an operation can answer. */
export function errorsOf({ key, body, query, params, errors = [] }: Operation): ErrorCode[] {
  const codes: ErrorCode[] = [
    'invalid_query',
    ...errors,
    'rate_limited',
    'internal_error',
    'overloaded',
    'shutting_down',
    'unavailable',
  ]
  if (key !== 'none') codes.push('unauthorized', 'forbidden')
  if (key === 'ingest') codes.push('key_exposed', 'storage_full')
  if (params !== undefined) codes.push('not_found')
  if (body !== undefined)
    codes.push(
      'invalid_json',
      'invalid_body',
      'payload_too_large',
      'unsupported_media_type',
      'unsupported_encoding',
    )
  return query === undefined && body === undefined ? codes : [...new Set(codes)]
}

const time = t.String({
  description: 'RFC 3339, or a date',
  examples: ['2026-06-23T12:00:00Z', '2026-06-23'],
})

export const since: Parameter = {
  schema: time,
  description: 'Events at this time or later.',
  example: '2026-06-01',
}
export const until: Parameter = {
  schema: time,
  description: 'Events before this time.',
  example: '2026-07-01',
}

export function limit(standard: number, max: number): Parameter {
  return {
    schema: integer({ minimum: 1, default: standard }),
    description: `Maximum number of results. Values above ${max} count as ${max}.`,
    example: '10',
  }
}

export const cursor: Parameter = {
  schema: t.String({ maxLength: limits.cursorCharsMax }),
  description: 'The nextCursor of the previous page. It contains the filters, so send it alone.',
}

/** A filter that compares the whole value, case-sensitively. Repeated, it matches any of its values. */
export function anyOf(description: string, charsMax: number, example: string): Parameter {
  return {
    schema: t.String({ maxLength: charsMax }),
    description,
    repeats: true,
    example,
  }
}

export const siteIds: Parameter = {
  schema: t.String({ maxLength: limits.idCharsMax }),
  description: 'Only this site.',
  repeats: true,
  example: 'shop-acme',
}

export const exampleEvent = {
  id: 'evt_1',
  siteId: 'shop-acme',
  sessionId: 'sess_1',
  occurredAt: '2026-06-23T12:00:00Z',
  type: 'authz.evaluated',
  outcome: 'blocked',
  tool: 'checkout.pay',
  durationMs: 3,
  agent: { class: 'dom', trust: 'detected', vendor: 'Operator' },
  policy: { decision: 'deny', ruleId: 'tool:checkout.pay', reason: 'trust below verified' },
  metadata: { page: '/checkout', protocol: 'web-bot-auth' },
}

export const exampleTool = {
  name: 'checkout.pay',
  description: 'Pays for the items in the cart.',
  group: 'checkout',
  page: '/checkout',
  inputSchema: { type: 'object', properties: { cartId: { type: 'string' } }, required: ['cartId'] },
  outputSchema: { type: 'object', properties: { orderId: { type: 'string' } } },
  tokens: 120,
}

export const exampleMemory = {
  siteMap: { pages: [{ path: '/checkout', name: 'Checkout', purpose: 'Pay', availableActions: ['pay'] }] },
  policies: { refunds: ['within 30 days'] },
}

export const exampleTime = '2026-06-23T12:00:00.000Z'

/** The time that the examples above are written for. */
const writtenMs = Date.UTC(2026, 5, 23, 12)

/** A time (also URL-encoded) or a date in the two months that the examples use. */
const times = /\b2026-0[67]-\d\d(?:T(\d\d)(:|%3A)(\d\d)(?::|%3A)(\d\d)(\.\d{3})?Z)?(?![\d-])/g

/** Shifts times by the hours between `writtenMs` and the current hour, and dates by whole days. */
export function withCurrentTimes(text: string, nowMs: number): string {
  const byMs = Math.floor(nowMs / hourMs) * hourMs - writtenMs
  return text.replace(times, (timeText: string, _hour?: string, colon?: string) => {
    if (colon === undefined)
      return new Date(Date.parse(timeText) + Math.floor(byMs / dayMs) * dayMs).toISOString().slice(0, 10)
    const moved = new Date(Date.parse(timeText.replaceAll('%3A', ':')) + byMs).toISOString()
    const whole = timeText.includes('.') ? moved : moved.replace('.000Z', 'Z')
    return whole.replaceAll(':', colon)
  })
}
