/** Settings → Sites: every site that events came from or that was named, and what was chosen for each. */
import { Elysia } from 'elysia'
import { rolesOf } from '../permissions.ts'
import { json } from '../../http/response.ts'
import { readMembers } from '../../http/body-fields.ts'
import { readQuery } from '../../http/query.ts'
import type { Parts } from '../../services.ts'
import { changeSite } from './change.ts'

export function siteRoutes(parts: Parts) {
  const { store, signIns } = parts
  return new Elysia()
    .get('/api/sites', async ({ request }) => {
      const { org } = await signIns.require(request, rolesOf('site.read'))
      readQuery(request, {})
      return json({ sites: await store.sites.list(org.id) })
    })
    .post(
      '/api/sites',
      async ({ request }) => {
        const { org, account } = await signIns.require(request, rolesOf('site.manage'))
        const members = { siteId: 'text', name: 'text?', hidden: 'flag?', restricted: 'flag?' } as const
        const { siteId, ...change } = await readMembers(request, members)
        const who = { orgId: org.id, actor: `user:${account.id}` }
        return json({ site: await changeSite(parts, who, siteId, change) })
      },
      { parse: 'none' },
    )
}
