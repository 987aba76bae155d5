/** /api/views: the saved views of an organization, read by every member. */
import { Elysia } from 'elysia'
import { rolesOf } from '../identity/permissions.ts'
import { json } from '../http/response.ts'
import { readMembers } from '../http/body-fields.ts'
import { readQuery } from '../http/query.ts'
import type { Parts } from '../services.ts'
import { changeView, createView, deleteView, viewOf } from './saved-views.ts'

const unparsed = { parse: 'none' } as const

export function viewRoutes(parts: Parts) {
  const { store, signIns } = parts
  const manager = async (request: Request) => {
    const { org, account } = await signIns.require(request, rolesOf('view.manage'))
    readQuery(request, {})
    return { orgId: org.id, actor: `user:${account.id}`, accountId: account.id }
  }
  return new Elysia()
    .get('/api/views', async ({ request }) => {
      const { org } = await signIns.require(request)
      readQuery(request, {})
      return json({ views: (await store.views.list(org.id)).map(viewOf) })
    })
    .post(
      '/api/views',
      async ({ request }) => {
        const who = await manager(request)
        const asked = await readMembers(request, { name: 'text', search: 'text' })
        return json({ view: viewOf(await createView(parts, who, asked)) }, 201)
      },
      unparsed,
    )
    .patch(
      '/api/views/:id',
      async ({ request, params }) => {
        const who = await manager(request)
        const asked = await readMembers(request, { name: 'text?', search: 'text?' })
        return json({ view: viewOf(await changeView(parts, who, params.id, asked)) })
      },
      unparsed,
    )
    .delete(
      '/api/views/:id',
      async ({ request, params }) => {
        await deleteView(parts, await manager(request), params.id)
        return json({ ok: true })
      },
      unparsed,
    )
}
