/** POST /v1/audit/export: the calling organization's audit trail as JSON or CSV (contract §8). */
import { Elysia } from 'elysia'
import { readJsonObject } from '../http/body.ts'
import { contextOf } from '../http/request-context.ts'
import { readQuery } from '../http/query.ts'
import { limits } from '../limits.ts'
import type { Store } from '../../db/contract/store.ts'
import type { SigningKey } from './signing-key.ts'
import type { Clock } from '../clock.ts'
import type { KeyGuard } from '../http/guard.ts'
import type { Shares } from '../http/shares.ts'
import type { Log } from '../log.ts'
import { exportAudit } from './export.ts'
import { exportOfBody } from './filter.ts'

export interface AuditRoutesServices {
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
      const wanted = exportOfBody(await readJsonObject(request, bytes, { emptyIsObject: true }))
      const answer = await exportAudit(services, { orgId: key.orgId, actor: `key:${key.id}` }, wanted)
      contextOf(request).keepOpen()
      return answer
    },
    { parse: 'none' },
  )
}
