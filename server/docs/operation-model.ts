/** What the reference says of one operation of the public API; OpenAPI and the page at /docs are made from these. */
import { t } from 'elysia'
import { integer } from '../http/wire-types.ts'
import { limits } from '../limits.ts'
import type { Scope } from '../http/guard.ts'
import type { Schema } from '../http/validate.ts'
import type { ErrorCode } from '../errors.ts'

export interface Parameter {
  schema: Schema
  description: string
  repeats?: true // any of
  example?: string
}

export interface Answer {
  description: string
  /** JSON unless named. */
  type?: string
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
  body?: { schema: Schema; example: unknown; optional?: true; otherTypes?: string[] }
  answers: { [status: number]: Answer | Answer[] }
  /** Errors beyond those that every operation of its kind has. */
  errors?: ErrorCode[]
}

/** Every error code an operation can answer, by what kind it is. */
export function errorsOf({ key, body, query, params, errors = [] }: Operation): ErrorCode[] {
  const codes: ErrorCode[] = [
    'invalid_query',
    ...errors,
    'rate_limited',
    'internal_error',
    'overloaded',
    'shutting_down',
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

/** Query parameters that several operations share. */
const time = t.String({
  description: 'RFC 3339, or a bare date',
  examples: ['2026-06-23T12:00:00Z', '2026-06-23'],
})

export const since: Parameter = {
  schema: time,
  description: 'From here on, inclusive.',
  example: '2026-06-01',
}
export const until: Parameter = { schema: time, description: 'Up to here, exclusive.', example: '2026-07-01' }

export function limit(standard: number, max: number): Parameter {
  return {
    schema: integer({ minimum: 1, default: standard }),
    description: `How many at most; above ${max} it means ${max}.`,
    example: '10',
  }
}

export const cursor: Parameter = {
  schema: t.String({ maxLength: limits.cursorCharsMax }),
  description: 'The nextCursor of the page before. It carries its filters: send it alone.',
}

/** Exact and case-sensitive. */
export function anyOf(what: string, charsMax: number, example: string): Parameter {
  return {
    schema: t.String({ maxLength: charsMax }),
    description: `${what} Repeat it for any of; empty: events without it.`,
    repeats: true,
    example,
  }
}

export const siteIds: Parameter = {
  schema: t.String({ maxLength: limits.idCharsMax }),
  description: 'Only this site. Repeat it for any of.',
  repeats: true,
  example: 'shop-acme',
}
