/** A question of an assistant: its arguments as filters of the gateway API, its range, and the parts of each answer. */
import { filterableFields, traceParameter, type EventFilter } from '../../db/contract/event-fields.ts'
import { vouchedJudges } from '../../db/contract/provenance.ts'
import { onlyVouched } from '../../db/rules/vouched-verdicts.ts'
import { readFilter } from '../api/traces/filter.ts'
import { isoTime, type Clock } from '../clock.ts'
import { AppError, type Issue } from '../errors.ts'
import type { Scope } from '../http/guard.ts'
import { invalidQuery, type Query } from '../http/request.ts'
import { checkSchema, type Schema } from '../http/validate.ts'
import type { Cipher } from '../system/encryption.ts'
import type { Store } from '../../db/contract/store.ts'
import { fieldNames } from './model.ts'
import { clean } from './untrusted.ts'
import { hourMs } from '../../db/contract/units.ts'

export interface Asking {
  store: Store
  clock: Clock
  cursorCipher: Cipher
  orgId: string
  /** Whether the caller may read what needs this scope. */
  may(scope: Scope): boolean
  baseUrl: string // of the dashboard, for links
}

export interface Args {
  [name: string]: unknown
}

/** Its answer is an object that the tool's `output` describes. */
export type Run = (asking: Asking, args: Args) => Promise<{ [field: string]: unknown }>

const spanMs = { h: hourMs, d: 24 * hourMs }

/** Throws 400 that names the wrong argument. Models fill arguments that they do not need with null, '' or []. */
export function checkArguments(schema: Schema, rawArguments: Args): Args {
  const args = Object.fromEntries(
    Object.entries(rawArguments).flatMap(([name, value]) => {
      const isList = schema.properties?.[name]?.type === 'array'
      const isRequired = schema.required?.includes(name) === true
      // In a list '' means events without the field.
      const isEmpty = isList ? Array.isArray(value) && value.length === 0 : value === ''
      if (value === null || (isEmpty && !isRequired)) return []
      return [[name, isList && typeof value === 'string' ? [value] : value]]
    }),
  )
  const issues: Issue[] = []
  checkSchema(schema, args, issues)
  const [first] = issues
  if (first === undefined) return args
  const knownNames = Object.keys(schema.properties ?? {}).join(', ')
  const hint = first.code === 'unknown' ? ` Known: ${knownNames}.` : ''
  throw new AppError('invalid_query', `${clean(first.path, 60)} ${first.message}.${hint}`, { issues })
}

function queryOf(args: Args): Query {
  const readMany = (name: string): string[] | undefined => {
    const value = args[name]
    if (Array.isArray(value)) return value as string[]
    return typeof value === 'string' ? [value] : undefined
  }
  return { one: (name) => readMany(name)?.[0], many: readMany }
}

export interface Question {
  filter: EventFilter & { sinceMs: number }
  /** The filter as the answer shows it. */
  shown: { [name: string]: unknown }
  link(path: string, extraParams?: { [name: string]: string }): string
}

const listsMax = 100

/** Fields as parameters of links to Logs. */
const parameters = new Map<string, string>(filterableFields.map(({ name }) => [name, traceParameter(name)]))

/** `toHour` rounds the range down to hours, as GET /v1/metrics does. */
export function readQuestion({ clock, baseUrl }: Asking, args: Args, toHour = false): Question {
  const { last, ...otherArgs } = args
  const down = (ms: number): number => Math.floor(ms / hourMs) * hourMs
  if (last !== undefined && (otherArgs['since'] !== undefined || otherArgs['until'] !== undefined))
    throw invalidQuery('last', 'last cannot be combined with since and until')
  for (const [name, value] of Object.entries(otherArgs)) {
    if (Array.isArray(value) && value.length > listsMax)
      throw invalidQuery(name, `${name} must have at most ${listsMax} values`, 'too_many')
  }
  const sinceMs = down(clock.now() - spanOf(typeof last === 'string' ? last : '30d'))
  const query = queryOf({ since: isoTime(sinceMs), ...otherArgs })
  const { sinceMs: since = sinceMs, untilMs, ...lists } = onlyVouched(readFilter(query))
  const until = untilMs === undefined ? {} : { untilMs: toHour ? down(untilMs) : untilMs }
  const filter = { ...lists, sinceMs: toHour ? down(since) : since, ...until }
  const names = [...fieldNames, 'network', 'q']
  const isNarrowed = query.many('verdict') !== undefined && query.many('judgedBy') === undefined
  const judged = isNarrowed ? { judgedBy: [...vouchedJudges] } : {}
  const shown = Object.fromEntries(
    names.flatMap((name) => {
      const texts = query.many(name)?.map((text) => clean(text))
      return texts === undefined || texts.length === 0 ? [] : [[name, name === 'q' ? texts[0] : texts]]
    }),
  )
  return {
    filter,
    shown: { ...shown, ...judged },
    link(path, extraParams = {}) {
      const params = new URLSearchParams()
      for (const name of names)
        for (const value of query.many(name) ?? []) params.append(parameters.get(name) ?? name, value)
      for (const judge of judged.judgedBy ?? []) params.append('judgedBy', judge)
      params.set('since', isoTime(filter.sinceMs))
      if (filter.untilMs !== undefined) params.set('until', isoTime(filter.untilMs))
      for (const [name, value] of Object.entries(extraParams)) params.set(name, value)
      return `${baseUrl}${path}?${params}`
    },
  }
}

function spanOf(text: string): number {
  return Number(text.slice(0, -1)) * spanMs[text.endsWith('h') ? 'h' : 'd']
}

/** The parts of every answer. */
export function answerOf(
  { filter, shown }: Question,
  { count, complete, link }: { count: number | null; complete: boolean; link: string },
) {
  const { sinceMs, untilMs } = filter
  const range = { since: isoTime(sinceMs), until: untilMs === undefined ? null : isoTime(untilMs) }
  return { filter: shown, range, count, complete, link }
}

/** A key for the metrics alone sees no more than GET /v1/metrics: counts by type, outcome, site and hour. */
export function requireForMetrics(asking: Asking, question: Question, dimension: string | undefined): void {
  if (asking.may('traces:read')) return
  const open = ['type', 'outcome', 'siteId']
  const wrong = [...Object.keys(question.shown), ...(dimension === undefined ? [] : [dimension])].find(
    (name) => !open.includes(name),
  )
  if (wrong === undefined) return
  throw new AppError('forbidden', `${wrong} needs a key with the scope traces:read.`, {
    reason: 'wrong_scope',
  })
}

export const numberArg = (args: Args, name: string, byDefault: number): number =>
  typeof args[name] === 'number' ? args[name] : byDefault

export const textArg = (args: Args, name: string): string | undefined =>
  typeof args[name] === 'string' ? args[name] : undefined
