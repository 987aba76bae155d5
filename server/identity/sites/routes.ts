/** Settings → Sites: every site that events came from or that was named, and what was chosen for each. */
import { Elysia } from 'elysia'
import { rolesOf } from '../permissions.ts'
import { json } from '../../http/response.ts'
import { readFields } from '../../http/body-fields.ts'
import { readQuery } from '../../http/query.ts'
import type { Store } from '../../../db/contract/store.ts'
import type { SignIns } from '../sign-in/sign-ins.ts'
import type { Clock } from '../../clock.ts'
import { changeSite } from './change.ts'

export interface SiteRoutesServices {
  store: Store
  clock: Clock
  signIns: SignIns
}

export function siteRoutes(services: SiteRoutesServices) {
  const { store, signIns } = services
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
        const { siteId, ...change } = await readFields(request, members)
        const who = { orgId: org.id, actor: `user:${account.id}` }
        return json({ site: await changeSite(services, who, siteId, change) })
      },
      { parse: 'none' },
    )
}
