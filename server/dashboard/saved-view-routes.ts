/** /api/views: the saved views of an organization, read by every member. */
import { Elysia } from 'elysia'
import { rolesOf } from '../identity/permissions.ts'
import { json } from '../http/response.ts'
import { readMembers } from '../http/body-fields.ts'
import { readQuery } from '../http/query.ts'
import type { Store } from '../../db/contract/store.ts'
import type { SignIns } from '../identity/sign-in/sign-ins.ts'
import type { Clock } from '../clock.ts'
import { changeView, createView, deleteView, viewOf } from './saved-views.ts'

export interface ViewRoutesServices {
  store: Store
  clock: Clock
  signIns: SignIns
}

const unparsed = { parse: 'none' } as const

export function viewRoutes(services: ViewRoutesServices) {
  const { store, signIns } = services
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
        return json({ view: viewOf(await createView(services, who, asked)) }, 201)
      },
      unparsed,
    )
    .patch(
      '/api/views/:id',
      async ({ request, params }) => {
        const who = await manager(request)
        const asked = await readMembers(request, { name: 'text?', search: 'text?' })
        return json({ view: viewOf(await changeView(services, who, params.id, asked)) })
      },
      unparsed,
    )
    .delete(
      '/api/views/:id',
      async ({ request, params }) => {
        await deleteView(services, await manager(request), params.id)
        return json({ ok: true })
      },
      unparsed,
    )
}
