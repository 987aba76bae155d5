/** Reads the filter of audit entries from a query string or a request body, by the same rules. */
import type { AuditFilter } from '../../db/contract/store.ts'
import { AppError } from '../errors.ts'
import { parseQueryTime, type ParameterKind, type Query } from '../http/request.ts'
import { limits } from '../limits.ts'

export const filterParameters = {
  since: 'one',
  until: 'one',
  actor: 'many',
  action: 'many',
  target: 'many',
  q: 'one',
} as const satisfies Record<string, ParameterKind>

export function filterOfQuery(query: Query): AuditFilter {
  const since = query.one('since')
  const until = query.one('until')
  const text = query.one('q')
  return {
    ...(since === undefined ? {} : { sinceMs: parseQueryTime('since', since) }),
    ...(until === undefined ? {} : { untilMs: parseQueryTime('until', until) }),
    ...listOf('actors', query.many('actor')),
    ...listOf('actions', query.many('action')),
    ...listOf('targets', query.many('target')),
    ...(text === undefined || text === '' ? {} : { text: text.slice(0, limits.searchCharsMax) }),
  }
}

const fields = ['format', 'since', 'until', 'actor', 'action', 'target', 'q', 'raw']

export interface ExportBody {
  format: 'json' | 'csv'
  raw: boolean
  filter: AuditFilter
}

/** The body of an export; throws 400 `invalid_body` with the invalid field. */
export function exportOfBody(body: { [name: string]: unknown }): ExportBody {
  const strange = Object.keys(body).find((name) => !fields.includes(name))
  if (strange !== undefined)
    throw wrong(strange.slice(0, 60), `is not a known field. Known fields: ${fields.join(', ')}`)
  // Null counts as missing, because clients in some languages send every field.
  const format = body['format'] ?? 'json'
  const raw = body['raw'] ?? false
  if (format !== 'json' && format !== 'csv') throw wrong('format', 'must be json or csv')
  if (typeof raw !== 'boolean') throw wrong('raw', 'must be true or false')
  const sinceMs = timeOf(body, 'since')
  const untilMs = timeOf(body, 'until')
  const text = textsOf(body, 'q')?.[0]
  const filter = {
    ...(sinceMs === undefined ? {} : { sinceMs }),
    ...(untilMs === undefined ? {} : { untilMs }),
    ...listOf('actors', textsOf(body, 'actor')),
    ...listOf('actions', textsOf(body, 'action')),
    ...listOf('targets', textsOf(body, 'target')),
    ...(text === undefined || text === '' ? {} : { text }),
  }
  return { format, raw, filter }
}

function timeOf(body: { [name: string]: unknown }, name: string): number | undefined {
  const text = body[name] ?? ''
  if (text === '') return undefined // as in a query
  if (typeof text !== 'string') throw wrong(name, 'must be an RFC 3339 time such as 2026-06-23T12:00:00Z')
  try {
    return parseQueryTime(name, text)
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    throw wrong(name, error.message.replace(`${name} `, '')) // `parseQueryTime` adds the name itself
  }
}

/** One string or a list of strings. */
function textsOf(body: { [name: string]: unknown }, name: string): string[] | undefined {
  const value = body[name] ?? undefined
  if (value === undefined) return undefined
  const texts: unknown[] = Array.isArray(value) ? value : [value]
  const isText = (each: unknown): each is string =>
    typeof each === 'string' && each.length <= limits.searchCharsMax
  if (!texts.every(isText) || texts.length > 100) throw wrong(name, 'must be a string or a list of strings')
  return texts
}

function listOf<Name extends string>(name: Name, values: string[] | undefined): { [N in Name]?: string[] } {
  return values === undefined || values.length === 0 ? {} : ({ [name]: values } as { [N in Name]: string[] })
}

function wrong(path: string, message: string): AppError {
  return new AppError('invalid_body', `${path} ${message}`, {
    issues: [{ path, message, code: 'wrong_format' }],
  })
}
