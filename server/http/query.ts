/** Reads query strings strictly (contract §1): unknown and repeated parameters are errors. Also cursors. */
import { AppError, type Issue } from '../errors.ts'
import { limits } from '../limits.ts'
import { parseTime } from '../text/time.ts'
import type { CursorCipher } from './cursor-cipher.ts'

const valueCharsMax = 2_000

/** Clients loop with `cursor=${cursor ?? ''}`, so these count as absent when empty (contract §1). */
const absentWhenEmpty = new Set(['cursor', 'since', 'until'])

export type ParameterKind = 'one' | 'many'

export class Query {
  readonly #values: Map<string, string[]>
  constructor(values: Map<string, string[]>) {
    this.#values = values
  }
  /** The single value, or undefined when the parameter is absent. */
  one(name: string): string | undefined {
    return this.#values.get(name)?.[0]
  }
  /** All values, or undefined when the parameter is absent. */
  many(name: string): string[] | undefined {
    return this.#values.get(name)
  }
}

/** Reads the allowed parameters; throws 400 `invalid_query` that names the first wrong one. */
export function readQuery(request: Request, allowed: Record<string, ParameterKind>): Query {
  const mark = request.url.indexOf('?')
  const values = new Map<string, string[]>()
  if (mark === -1) return new Query(values)
  for (const [name, value] of new URLSearchParams(request.url.slice(mark + 1))) {
    const kind = Object.hasOwn(allowed, name) ? allowed[name] : undefined
    if (!kind) {
      const known = Object.keys(allowed).join(', ')
      throw invalidQuery(name, `Unknown parameter '${cut(name)}'. Accepted: ${known || 'none'}.`, 'unknown')
    }
    if (value === '' && absentWhenEmpty.has(name)) continue
    const list = values.get(name)
    if (list && kind === 'one') throw invalidQuery(name, `'${name}' must not be repeated`, 'repeated')
    if (list && list.length >= 100)
      throw invalidQuery(name, `'${name}' must have at most 100 values`, 'too_many')
    const charsMax = name === 'cursor' ? limits.cursorCharsMax : valueCharsMax
    if (value.length > charsMax)
      throw invalidQuery(name, `'${name}' must have at most ${charsMax} characters`, 'too_long')
    if (list) list.push(value)
    else values.set(name, [value])
  }
  return new Query(values)
}

/** A 400 that names the wrong parameter. */
export function invalidQuery(name: string, message: string, code = 'wrong_format'): AppError {
  const issue: Issue = { path: cut(name), message, code }
  return new AppError('invalid_query', message, { issues: [issue] })
}

function cut(name: string): string {
  return name.length > 60 ? `${name.slice(0, 60)}…` : name
}

/** UTC milliseconds; a bare date is midnight UTC. Throws 400 `invalid_query` that names the parameter. */
export function parseQueryTime(name: string, text: string): number {
  const whole = /^\d{4}-\d{2}-\d{2}$/.test(text)
    ? `${text}T00:00:00Z`
    : text.replace(/ (?=\d{2}:\d{2}$)/, '+')
  const ms = parseTime(whole)
  if (ms === null) {
    throw invalidQuery(
      name,
      `${name} must be an RFC 3339 time such as 2026-06-23T12:00:00Z, or a date such as 2026-06-23`,
    )
  }
  return ms
}

/** A positive integer, reduced to `max`. Throws 400 `invalid_query`. */
export function readLimit(query: Query, byDefault: number, max: number): number {
  const text = query.one('limit')
  if (text === undefined) return byDefault
  if (!/^[0-9]+$/.test(text) || Number(text) < 1) {
    throw invalidQuery(
      'limit',
      `limit must be a positive integer. Values above ${max} are reduced to ${max}.`,
    )
  }
  return Math.min(Number(text), max)
}

/**
 * The contents of the cursor, null without one. A cursor belongs to one list, organization and set of filters; the
 * request may omit the filters. Throws 400 `invalid_query` when they differ.
 */
export function readCursor<Filters, Position>(
  cursorCipher: CursorCipher,
  list: string,
  orgId: string,
  query: Query,
  filters: Filters | null,
): { filters: Filters; position: Position } | null {
  const text = query.one('cursor')
  if (text === undefined) return null
  const opened = cursorCipher.decrypt(list, text) as [string, Filters, Position] | null
  if (!opened || opened[0] !== orgId) throw invalidQuery('cursor', 'Invalid cursor.')
  if (filters !== null && JSON.stringify(filters) !== JSON.stringify(opened[1])) {
    throw invalidQuery('cursor', 'This cursor was issued for other filters. Send it without filters.')
  }
  return { filters: opened[1], position: opened[2] }
}

export function encodeCursor(
  cursorCipher: CursorCipher,
  list: string,
  orgId: string,
  filters: unknown,
  position: unknown,
): string {
  return cursorCipher.encrypt(list, [orgId, filters, position])
}
