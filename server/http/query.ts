/** Reads a query string by the strict rules of contract §1: unknown or repeated parameters are refused. */
import { AppError, type Issue } from '../errors.ts'
import { limits } from '../limits.ts'
import { parseTime } from '../text/time.ts'
import type { Seal } from './cursor-cipher.ts'

const valueCharsMax = 2_000

/** Clients loop with `cursor=${cursor ?? ''}`: these count as absent when empty (contract §1). */
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

/** Parses `request`'s query against the allowed parameters; throws 400 `invalid_query` naming the first wrong one. */
export function readQuery(request: Request, allowed: Record<string, ParameterKind>): Query {
  const mark = request.url.indexOf('?')
  const values = new Map<string, string[]>()
  if (mark === -1) return new Query(values)
  for (const [name, value] of new URLSearchParams(request.url.slice(mark + 1))) {
    const kind = Object.hasOwn(allowed, name) ? allowed[name] : undefined
    if (!kind) {
      const known = Object.keys(allowed).join(', ')
      throw invalidQuery(name, `'${cut(name)}' is not a parameter here; known: ${known || 'none'}`, 'unknown')
    }
    if (value === '' && absentWhenEmpty.has(name)) continue
    const list = values.get(name)
    if (list && kind === 'one') throw invalidQuery(name, `'${name}' may be given only once`, 'repeated')
    if (list && list.length >= 100) throw invalidQuery(name, `'${name}' is repeated too often`, 'too_many')
    if (value.length > (name === 'cursor' ? limits.cursorCharsMax : valueCharsMax))
      throw invalidQuery(name, `'${name}' is too long`, 'too_long')
    if (list) list.push(value)
    else values.set(name, [value])
  }
  return new Query(values)
}

/** A 400 that names the parameter at fault. */
export function invalidQuery(name: string, message: string, code = 'wrong_format'): AppError {
  const issue: Issue = { path: cut(name), message, code }
  return new AppError('invalid_query', message, { issues: [issue] })
}

function cut(name: string): string {
  return name.length > 60 ? `${name.slice(0, 60)}…` : name
}

/** UTC milliseconds; throws 400 `invalid_query` naming the parameter. A bare date is its first millisecond in UTC. */
export function parseQueryTime(name: string, text: string): number {
  const whole = /^\d{4}-\d{2}-\d{2}$/.test(text)
    ? `${text}T00:00:00Z`
    : text.replace(/ (?=\d{2}:\d{2}$)/, '+')
  const ms = parseTime(whole)
  if (ms === null) {
    throw invalidQuery(
      name,
      `${name} must be a time such as 2026-06-23T12:00:00Z, or a date such as 2026-06-23`,
    )
  }
  return ms
}

/** A positive whole number; above `max` it means `max`. Throws 400 `invalid_query`. */
export function readLimit(query: Query, standard: number, max: number): number {
  const text = query.one('limit')
  if (text === undefined) return standard
  if (!/^[0-9]+$/.test(text) || Number(text) < 1) {
    throw invalidQuery('limit', `limit must be a whole number from 1; above ${max} it means ${max}`)
  }
  return Math.min(Number(text), max)
}

/**
 * What a cursor holds, null without one. It belongs to one list, organization and question; the question may be left
 * out beside it. Throws 400 `invalid_query` for any other.
 */
export function readCursor<Asked, Position>(
  seal: Seal,
  list: string,
  orgId: string,
  query: Query,
  asked: Asked | null,
): { asked: Asked; position: Position } | null {
  const text = query.one('cursor')
  if (text === undefined) return null
  const opened = seal.open(list, text) as [string, Asked, Position] | null
  if (!opened || opened[0] !== orgId) throw invalidQuery('cursor', 'This cursor is not one of ours.')
  if (asked !== null && JSON.stringify(asked) !== JSON.stringify(opened[1])) {
    throw invalidQuery('cursor', 'This cursor belongs to a list with other filters; send it alone.')
  }
  return { asked: opened[1], position: opened[2] }
}

export function closeCursor(
  seal: Seal,
  list: string,
  orgId: string,
  asked: unknown,
  position: unknown,
): string {
  return seal.close(list, [orgId, asked, position])
}
