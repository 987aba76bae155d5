/** The robots.txt of sites in the dashboard: versions, a new one, and the test of one against stored requests. */
import { Elysia } from 'elysia'
import { rolesOf } from '../identity/permissions.ts'
import { parseTime } from '../clock.ts'
import { readJsonObject } from '../http/body.ts'
import { readQuery } from '../http/request.ts'
import { json } from '../http/response.ts'
import { wrongField } from '../http/validate.ts'
import type { Role, Store } from '../../db/contract/store.ts'
import type { SignIns } from '../identity/sign-in/sign-ins.ts'
import { noRobots, robotsDetail, robotsViews, setRobots, testRobots, type RobotsServices } from './robots.ts'

interface RobotsRoutesServices extends RobotsServices {
  store: Store
  signIns: SignIns
}

const unparsed = { parse: 'none' } as const

/** A text of 500 KiB, each character escaped. */
const bodyBytesMax = 4 * 1024 * 1024

export function robotsRoutes(services: RobotsRoutesServices) {
  const { store, signIns } = services
  const viewer = async (request: Request) => {
    readQuery(request, {})
    const { org, role } = await signIns.require(request, rolesOf('site.read'))
    return { orgId: org.id, nameOf: await memberNames(store, org.id, role) }
  }
  return new Elysia()
    .get('/api/robots', async ({ request }) => {
      const { orgId, nameOf } = await viewer(request)
      const sites = await store.robots.sites(orgId)
      return json({ sites: sites.map((site) => robotsViews([site], nameOf)[0]!) })
    })
    .get('/api/robots/:siteId', async ({ request, params }) => {
      const { orgId, nameOf } = await viewer(request)
      const versions = await store.robots.list({ orgId, siteId: params.siteId })
      if (versions.length === 0) throw noRobots()
      return json({ versions: robotsViews(versions, nameOf) })
    })
    .get('/api/robots/:siteId/versions/:version', async ({ request, params }) => {
      const { orgId, nameOf } = await viewer(request)
      const version = /^[1-9][0-9]{0,8}$/.test(params.version) ? Number(params.version) : 0
      return json(await robotsDetail(services, orgId, params.siteId, version, nameOf))
    })
    .post(
      '/api/robots',
      async ({ request }) => {
        const { org, account } = await signIns.require(request, rolesOf('site.manage'))
        const body = await readText(request, ['from'])
        const from = body['from'] ?? null
        const fromMs = from === null ? null : typeof from === 'string' ? parseTime(from) : null
        if (from !== null && fromMs === null)
          throw wrongField('from', 'from must be an RFC 3339 time, such as 2026-11-20T12:00:00Z.')
        const actor = { orgId: org.id, actor: `user:${account.id}` }
        return json(await setRobots(services, actor, { ...body, fromMs }))
      },
      unparsed,
    )
    .post(
      '/api/robots/test',
      async ({ request }) => {
        const { org } = await signIns.require(request, rolesOf('site.read'))
        return json(await testRobots(services, org.id, await readText(request, [])))
      },
      unparsed,
    )
}

/** Names of members by actor, for those who may read the audit trail. Viewers do not see members. */
async function memberNames(store: Pick<Store, 'accounts'>, orgId: string, role: Role) {
  if (!(rolesOf('audit.read') as readonly Role[]).includes(role)) return () => null
  const members = (await store.accounts.list()).filter(({ memberships }) =>
    memberships.some((membership) => membership.orgId === orgId),
  )
  const emails = new Map(members.map(({ id, email }) => [`user:${id}`, email]))
  return (actor: string) => emails.get(actor) ?? null
}

interface Sent {
  siteId: string
  text: string
  [field: string]: unknown
}

async function readText(request: Request, extraFields: string[]): Promise<Sent> {
  const body: { [name: string]: unknown } = await readJsonObject(request, { bytesMax: bodyBytesMax })
  for (const name of ['siteId', 'text'])
    if (typeof body[name] !== 'string') throw wrongField(name, `${name} must be a string.`, 'wrong_type')
  for (const name of Object.keys(body))
    if (!['siteId', 'text', ...extraFields].includes(name))
      throw wrongField(name.slice(0, 60), `${name.slice(0, 60)} is not a known field.`, 'unknown')
  return body as Sent
}
