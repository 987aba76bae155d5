/** Routes of the audit trail: the list of the audit page, and exports for the dashboard and the public API. */
import { Elysia } from 'elysia'
import { rolesOf } from '../identity/permissions.ts'
import { json } from '../http/response.ts'
import { readJsonObject } from '../http/body.ts'
import { contextOf, invalidQuery, readQuery } from '../http/request.ts'
import { limits } from '../limits.ts'
import { targetName } from './entry.ts'
import { entryView, exportAudit } from './export.ts'
import { exportOfBody, filterOfQuery, filterParameters } from './filter.ts'
import type { Org, Store } from '../../db/contract/store.ts'
import type { SigningKey } from './signing.ts'
import type { SignIns } from '../identity/sign-in/sign-ins.ts'
import type { Clock } from '../clock.ts'
import type { Shares } from '../http/shares.ts'
import type { Log } from '../log.ts'
import type { KeyGuard } from '../http/guard.ts'

export interface DashboardAuditRoutesServices {
  store: Store
  clock: Clock
  log: Log
  signIns: SignIns
  auditKey: SigningKey
  exportShares: Shares
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
        const bytes = { bytesMax: limits.jsonBodyBytesMax }
        const body = exportOfBody(await readJsonObject(request, bytes, { emptyIsObject: true }))
        const answer = await exportAudit(services, { orgId: org.id, actor: `user:${account.id}` }, body)
        contextOf(request).keepOpen()
        return answer
      },
      { parse: 'none' },
    )
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

/** POST /v1/audit/export (contract §8). */
interface AuditRoutesServices {
  store: Store
  clock: Clock
  log: Log
  guard: KeyGuard
  auditKey: SigningKey
  exportShares: Shares
}

export function auditRoutes(services: AuditRoutesServices) {
  return new Elysia().post(
    '/v1/audit/export',
    async ({ request }) => {
      const key = await services.guard.gateway(request, 'audit:read')
      readQuery(request, {})
      const bytes = { bytesMax: limits.jsonBodyBytesMax }
      const body = exportOfBody(await readJsonObject(request, bytes, { emptyIsObject: true }))
      const answer = await exportAudit(services, { orgId: key.orgId, actor: `key:${key.id}` }, body)
      contextOf(request).keepOpen()
      return answer
    },
    { parse: 'none' },
  )
}
