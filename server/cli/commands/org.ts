/** `sightglass org`: creates and lists organizations. */
import type { Json, Org, Store } from '../../../db/contract/store.ts'
import { isoTime } from '../../clock.ts'
import { AppError, UsageError } from '../../errors.ts'
import { isSlug, nameProblem, slugCharsMax, slugOf } from '../../identity/organizations/organizations.ts'
import { applianceOrgId, makeOrg } from '../../identity/organizations/organizations.ts'
import { textOf, textOrNull, type Params } from '../../runtime/params.ts'
import type { VerbContext } from '../../runtime/verb-context.ts'

export { applianceOrgId }

export async function createOrg(context: VerbContext, params: Params): Promise<Json> {
  const name = textOf(params, 'name').trim()
  const problem = nameProblem(name)
  if (problem !== null) throw new UsageError(`the name of an organization ${problem}`)
  const slug = textOrNull(params, 'slug') ?? slugOf(name)
  if (!isSlug(slug)) {
    throw new UsageError(
      slug === '' ? 'no slug can be made from this name; give one with --slug' : `"${slug}" cannot be a slug`,
      `a slug is lower-case letters, digits and single dashes, at most ${slugCharsMax}: acme-shop`,
    )
  }
  return orgView(await makeOrg(context, 'cli', { name, slug }))
}

export async function listOrgs({ store }: VerbContext): Promise<Json> {
  return { orgs: (await store.orgs.list()).map(orgView) }
}

/** The organization with this id or slug; throws `not_found` with a way to see which there are. */
export async function requireOrg(store: Pick<Store, 'orgs'>, idOrSlug: string): Promise<Org> {
  const org = await store.orgs.find(idOrSlug)
  if (org) return org
  throw new AppError('not_found', `There is no organization "${idOrSlug}".`, { hint: 'sightglass org list' })
}

function orgView({ id, slug, name, createdAtMs }: Org): { [member: string]: Json } {
  return { id, slug, name, createdAt: isoTime(createdAtMs) }
}
