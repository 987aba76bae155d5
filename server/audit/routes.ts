/** POST /v1/audit/export: the calling organization's audit trail as JSON or CSV (contract §8). */
import { Elysia } from 'elysia'
import { readJsonObject } from '../http/body.ts'
import { contextOf } from '../http/request-context.ts'
import { readQuery } from '../http/query.ts'
import { limits } from '../limits.ts'
import type { Parts } from '../services.ts'
import { exportAudit } from './export.ts'
import { exportOfBody } from './filter.ts'

export function auditRoutes(parts: Parts) {
  return new Elysia().post(
    '/v1/audit/export',
    async ({ request }) => {
      const key = await parts.guard.gateway(request, 'audit:read')
      readQuery(request, {})
      const bytes = { bytesMax: limits.jsonBodyBytesMax }
      const wanted = exportOfBody(await readJsonObject(request, bytes, { emptyIsObject: true }))
      const answer = await exportAudit(parts, { orgId: key.orgId, actor: `key:${key.id}` }, wanted)
      contextOf(request).keepOpen()
      return answer
    },
    { parse: 'none' },
  )
}
