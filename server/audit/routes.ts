/** Routes of the audit trail, and their filters: the list of the audit page, exports for the dashboard and the API. */
import { Elysia } from 'elysia'
import { rolesOf } from '../identity/permissions.ts'
import { json } from '../http/response.ts'
import { readJsonObject } from '../http/body.ts'
import {
  contextOf,
  invalidQuery,
  parseQueryTime,
  readQuery,
  type ParameterKind,
  type Query,
} from '../http/request.ts'
import { limits } from '../limits.ts'
import { targetName, type Actor } from './entry.ts'
import { entryView, exportAudit, type AuditExportServices, type ExportBody } from './export.ts'
import { AppError } from '../errors.ts'
import type { AuditFilter, Org } from '../../db/contract/store.ts'
import type { SignIns } from '../identity/sign-in/sign-ins.ts'
import type { KeyGuard } from '../http/guard.ts'

interface DashboardAuditRoutesServices extends AuditExportServices {
  signIns: SignIns
}

export function dashboardAuditRoutes(services: DashboardAuditRoutesServices) {
  const { store, signIns } = services
  return new Elysia()
    .get('/api/audit', async ({ request }) => {
      const { org } = await signIns.require(request, rolesOf('audit.read'))
      const query = readQuery(request, { ...filterParameters, limit: 'one', before: 'one' })
      const limit = Math.min(
        wholeNumber('limit', query.one('limit')) ?? limits.auditPageDefault,
        limits.auditPageMax,
      )
      const beforeSeq = wholeNumber('before', query.one('before'))
      const page = await store.audit.list({ orgId: org.id, limit, beforeSeq, filter: filterOfQuery(query) })
      const names = await currentNames(services, org)
      const entries = page.entries.map((entry) => {
        const { actorLabel, address } = entry.metadata
        return {
          ...entryView(entry),
          position: entry.seq,
          actorName: textOr(actorLabel, names.get(entry.actor) ?? null),
          targetName: targetName(entry) ?? names.get(entry.target) ?? null,
          address: textOr(address, null),
        }
      })
      return json({ entries, nextBefore: page.next })
    })
    .post(
      '/api/audit/export',
      async ({ request }) => {
        const { org, account } = await signIns.require(request, rolesOf('audit.export'))
        return sendExport(services, request, { orgId: org.id, actor: `user:${account.id}` })
      },
      { parse: 'none' },
    )
}

/** POST /v1/audit/export (contract §8). */
interface AuditRoutesServices extends AuditExportServices {
  guard: KeyGuard
}

export function auditRoutes(services: AuditRoutesServices) {
  return new Elysia().post(
    '/v1/audit/export',
    async ({ request }) => {
      const key = await services.guard.gateway(request, 'audit:read')
      readQuery(request, {})
      return sendExport(services, request, { orgId: key.orgId, actor: `key:${key.id}` })
    },
    { parse: 'none' },
  )
}

async function sendExport(services: AuditExportServices, request: Request, actor: Actor): Promise<Response> {
  const bytes = { bytesMax: limits.jsonBodyBytesMax }
  const body = exportOfBody(await readJsonObject(request, bytes, { emptyIsObject: true }))
  const answer = await exportAudit(services, actor, body)
  contextOf(request).keepOpen()
  return answer
}

/** Current names, for entries without a name of their own. */
async function currentNames({ store }: DashboardAuditRoutesServices, org: Org): Promise<Map<string, string>> {
  const [accounts, keys, endpoints] = await Promise.all([
    store.accounts.list(),
    store.keys.list({ orgId: org.id }),
    store.webhooks.endpoints(org.id),
  ])
  return new Map([
    ['cli', 'Command line'],
    ['system', 'Sightglass'],
    [org.id, org.name],
    ...accounts.flatMap(({ id, email }): [string, string][] => [
      [id, email],
      [`user:${id}`, email],
    ]),
    ...keys.map(({ id, label }): [string, string] => [`key:${id}`, label]),
    ...endpoints.map(({ endpoint: { id, label, url } }): [string, string] => [id, label || url]),
  ])
}

function textOr(value: unknown, otherwise: string | null): string | null {
  return typeof value === 'string' && value !== '' ? value : otherwise
}

function wholeNumber(name: string, text: string | undefined): number | null {
  if (text === undefined) return null
  if (/^[1-9]\d{0,11}$/.test(text)) return Number(text)
  throw invalidQuery(name, `${name} must be a whole number from 1`)
}

/** The filters of the list. A body of an export has the same ones, by the same rules. */
const filterParameters = {
  since: 'one',
  until: 'one',
  actor: 'many',
  action: 'many',
  target: 'many',
  q: 'one',
} as const satisfies Record<string, ParameterKind>

function filterOfQuery(query: Query): AuditFilter {
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
  const isText = (item: unknown): item is string =>
    typeof item === 'string' && item.length <= limits.searchCharsMax
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
