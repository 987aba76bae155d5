/** Routes of organizations and sites: list, create, rename, delete, sign-in rule, site settings. */
import { Elysia } from 'elysia'
import { listMembers } from '../people/members.ts'
import { rolesOf } from '../permissions.ts'
import { isoTime, type Clock } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import { json } from '../../http/response.ts'
import { readFields, wrongField } from '../../http/validate.ts'
import { readQuery } from '../../http/request.ts'
import {
  askDeletion,
  changeSignInRule,
  changeSite,
  deletionOf,
  isSlug,
  keepOrg,
  makeOrg,
  renameOrg,
  slugCharsMax,
  slugOf,
} from './organizations.ts'
import { nameProblem } from '../../text/names.ts'
import type { Org, OrgDeletion, Store } from '../../../db/contract/store.ts'
import type { SignIns } from '../sign-in/sign-ins.ts'

interface OrgRoutesServices {
  store: Store
  clock: Clock
  signIns: SignIns
}

const unparsed = { parse: 'none' } as const

export function orgRoutes(services: OrgRoutesServices) {
  const { store, signIns } = services
  const asOwner = async (request: Request) => {
    const { org, account } = await signIns.require(request, rolesOf('org.manage'))
    return { org, actor: `user:${account.id}` }
  }
  return new Elysia()
    .get('/api/orgs', async ({ request }) => {
      const { account } = await signIns.requirePerson(request)
      readQuery(request, {})
      const roles = new Map(
        (await store.accounts.find(account.id))?.memberships.map((m) => [m.orgId, m.role]),
      )
      const deletions = new Map((await store.orgs.deletions()).map((deletion) => [deletion.orgId, deletion]))
      const memberOrgs = (await store.orgs.list()).filter(({ id }) => roles.has(id))
      const view = (org: Org) => ({ ...orgView(org, deletions.get(org.id)), role: roles.get(org.id) })
      return json({ orgs: memberOrgs.map(view) })
    })
    .post(
      '/api/orgs',
      async ({ request }) => {
        const { account } = await signIns.require(request)
        if (!account.operator) throw operatorsOnly()
        const { name: typed, slug: requestedSlug } = await readFields(request, {
          name: 'text',
          slug: 'text?',
        })
        const name = readName(typed)
        const slug = requestedSlug ?? slugOf(name)
        if (!isSlug(slug)) {
          const form = `lower-case letters, digits and single dashes, at most ${slugCharsMax}`
          throw wrongField('slug', `The slug must be ${form}.`)
        }
        const org = await makeOrg(services, `user:${account.id}`, { name, slug, ownerId: account.id })
        return json({ org: orgView(org) }, 201)
      },
      unparsed,
    )
    .post(
      '/api/org/rename',
      async ({ request }) => {
        const { org, actor } = await asOwner(request)
        const { name } = await readFields(request, { name: 'text' })
        return json({ org: orgView(await renameOrg(services, actor, org, readName(name))) })
      },
      unparsed,
    )
    .post(
      '/api/org/delete',
      async ({ request }) => {
        const { org, actor } = await asOwner(request)
        const { confirm } = await readFields(request, { confirm: 'text' })
        if (await deletionOf(services, org.id))
          throw new AppError('conflict', 'The deletion of this organization is already scheduled.')
        return json({ org: orgView(org, await askDeletion(services, actor, org, confirm)) })
      },
      unparsed,
    )
    .post(
      '/api/org/keep',
      async ({ request }) => {
        const { org, actor } = await asOwner(request)
        await readFields(request, {})
        await keepOrg(services, actor, org)
        return json({ org: orgView(org) })
      },
      unparsed,
    )
    .use(signInRuleRoutes(services))
}

/** Whether members need a second factor, and which members have none yet. */
function signInRuleRoutes(services: OrgRoutesServices) {
  const { store, signIns } = services
  const rule = async (orgId: string) => {
    const { secondFactorRequired } = await store.orgs.signInRule(orgId)
    const lacking = (await listMembers(services, orgId)).filter(({ secondFactor }) => !secondFactor)
    return json({ secondFactorRequired, lacking: lacking.map(({ id, email }) => ({ id, email })) })
  }
  return new Elysia()
    .get('/api/org/sign-in-rule', async ({ request }) => {
      const { org } = await signIns.require(request, rolesOf('org.protect'))
      readQuery(request, {})
      return rule(org.id)
    })
    .post(
      '/api/org/sign-in-rule',
      async ({ request }) => {
        const { org, account, signIn } = await signIns.require(request, rolesOf('org.protect'))
        const { secondFactorRequired } = await readFields(request, { secondFactorRequired: 'flag' })
        const hasOne = signIn.byProvider || (await store.secondFactors.find(account.id)) !== null
        if (secondFactorRequired && !hasOne) {
          throw new AppError('conflict', 'Set up your own second factor first.', {
            hint: 'Open Settings, Your account. Without a second factor this setting would lock you out.',
          })
        }
        await changeSignInRule(services, `user:${account.id}`, org, { secondFactorRequired })
        return rule(org.id)
      },
      unparsed,
    )
}

function operatorsOnly(): AppError {
  return new AppError('forbidden', 'Only operators of the appliance can do this.', { reason: 'wrong_role' })
}

function orgView({ id, slug, name, createdAtMs }: Org, deletion?: OrgDeletion) {
  const deletesAt = deletion === undefined ? null : isoTime(deletion.dueAtMs)
  return { id, slug, name, createdAt: isoTime(createdAtMs), deletesAt }
}

export type OrgView = ReturnType<typeof orgView>

function readName(text: string): string {
  const name = text.trim()
  const problem = nameProblem(name)
  if (problem !== null) throw wrongField('name', `The name ${problem}.`)
  return name
}

/** Every site that sent events or was named, with its settings. */
interface SiteRoutesServices {
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
        const fields = {
          siteId: 'text',
          name: 'text?',
          hidden: 'flag?',
          restricted: 'flag?',
          hosts: 'texts?',
        } as const
        const { siteId, ...change } = await readFields(request, fields)
        const actor = { orgId: org.id, actor: `user:${account.id}` }
        return json({ site: await changeSite(services, actor, siteId, change) })
      },
      { parse: 'none' },
    )
}
