/** Reads a query string by the strict rules of contract §1: unknown or repeated parameters are refused. */
import { AppError, type Issue } from '../errors.ts'
import { limits } from '../limits.ts'

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
