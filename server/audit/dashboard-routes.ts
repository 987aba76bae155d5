/** The audit page: entries by who, what, when and any text, and exports of exactly what is filtered. */
import { Elysia } from 'elysia'
import { rolesOf } from '../auth/permissions.ts'
import { json } from '../http/answer.ts'
import { readJsonObject } from '../http/body.ts'
import { contextOf } from '../http/context.ts'
import { invalidQuery, readQuery } from '../http/query.ts'
import { limits } from '../limits.ts'
import type { Parts } from '../parts.ts'
import { entryView, exportAudit } from './export.ts'
import { exportOfBody, filterOfQuery, filterParameters } from './filter.ts'

export function dashboardAuditRoutes(parts: Parts) {
  const { store, signIns } = parts
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
      const accounts = await store.accounts.list()
      const emails = new Map(accounts.map(({ id, email }) => [`user:${id}`, email]))
      const entries = page.entries.map((entry) => ({
        ...entryView(entry),
        position: entry.seq,
        actorName: emails.get(entry.actor) ?? null,
      }))
      return json({ entries, nextBefore: page.next })
    })
    .post(
      '/api/audit/export',
      async ({ request }) => {
        const { org, account } = await signIns.require(request, rolesOf('audit.export'))
        const bytes = { bytesMax: limits.jsonBodyBytesMax }
        const wanted = exportOfBody(await readJsonObject(request, bytes, { emptyIsObject: true }))
        const answer = await exportAudit(parts, { orgId: org.id, actor: `user:${account.id}` }, wanted)
        contextOf(request).keepOpen()
        return answer
      },
      { parse: 'none' },
    )
}

function wholeNumber(name: string, text: string | undefined): number | null {
  if (text === undefined) return null
  if (/^[1-9]\d{0,11}$/.test(text)) return Number(text)
  throw invalidQuery(name, `${name} must be a whole number from 1`)
}
