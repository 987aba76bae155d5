/** Query parameters that several operations share. */
import { t } from 'elysia'
import { integer } from '../http/wire-types.ts'
import { limits } from '../limits.ts'
import type { Parameter } from './operation.ts'

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
