/** Routes of Settings → People: members, their roles, invitations by one-time link. */
import { Elysia } from 'elysia'
import type { Invitation, Store } from '../../../db/contract/store.ts'
import { rolesOf } from '../permissions.ts'
import { isoTime, type Clock } from '../../clock.ts'
import { addressOf } from '../../http/address.ts'
import { json } from '../../http/response.ts'
import { readFields } from '../../http/validate.ts'
import { readQuery } from '../../http/request.ts'
import type { SignIns } from '../sign-in/sign-ins.ts'
import { invite, revokeInvitation } from './members.ts'
import { changeRole, listMembers, readRole, removeMember, type Acting } from './members.ts'

export interface PeopleRoutesServices {
  store: Store
  clock: Clock
  publicUrl: string | null
  basePath: string
  signIns: SignIns
}

const unparsed = { parse: 'none' } as const

export function peopleRoutes(services: PeopleRoutesServices) {
  const { store, signIns, clock } = services
  const manager = async (request: Request): Promise<Acting> => {
    const { org, account, role } = await signIns.require(request, rolesOf('people.manage'))
    return { orgId: org.id, actor: `user:${account.id}`, role }
  }
  return new Elysia()
    .get('/api/people', async ({ request }) => {
      const { orgId } = await manager(request)
      readQuery(request, {})
      const open = (await store.invitations.list(orgId)).filter((each) => each.expiresAtMs > clock.now())
      return json({ members: await listMembers(services, orgId), invitations: open.map(invitationView) })
    })
    .post(
      '/api/people/:id/role',
      async ({ request, params }) => {
        const who = await manager(request)
        const { role } = await readFields(request, { role: 'text' })
        await changeRole(services, who, params.id, readRole(role))
        return json({ members: await listMembers(services, who.orgId) })
      },
      unparsed,
    )
    .post(
      '/api/people/:id/remove',
      async ({ request, params }) => {
        const who = await manager(request)
        await readFields(request, {})
        await removeMember(services, who, params.id)
        return json({ members: await listMembers(services, who.orgId) })
      },
      unparsed,
    )
    .post(
      '/api/invitations',
      async ({ request }) => {
        const who = await manager(request)
        const { email, role } = await readFields(request, { email: 'text', role: 'text' })
        const { invitation, token } = await invite(services, who, { email, role: readRole(role) })
        // After the # the token appears in no request line and in no log.
        const link = `${addressOf(request, services)}/invitation#${token}`
        return json({ invitation: invitationView(invitation), link }, 201)
      },
      unparsed,
    )
    .post(
      '/api/invitations/:id/revoke',
      async ({ request, params }) => {
        const who = await manager(request)
        await readFields(request, {})
        await revokeInvitation(services, who, params.id)
        return new Response(null, { status: 204 })
      },
      unparsed,
    )
}

function invitationView({ id, email, role, createdAtMs, expiresAtMs }: Invitation) {
  return { id, email, role, createdAt: isoTime(createdAtMs), expiresAt: isoTime(expiresAtMs) }
}

export type InvitationView = ReturnType<typeof invitationView>
