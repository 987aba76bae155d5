/** What the reference says of one operation of the public API; OpenAPI and the page at /docs are made from these. */
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
