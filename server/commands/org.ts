/** `sightglass org`: creates and lists organizations. */
import type { Json, Org, Store } from '../../db/store.ts'
import { isoTime } from '../clock.ts'
import { AppError } from '../errors.ts'
import { newId } from '../ids.ts'
import { limits } from '../limits.ts'
import { UsageError } from '../option-values.ts'
import { textOf, textOrNull, type Params } from './params.ts'
import type { VerbContext } from './verb-context.ts'

/** Acts on the appliance as a whole stand in this chain (contract §8). */
export const applianceOrgId = 'org_system'

const slugForm = /^[a-z0-9]+(?:-[a-z0-9]+)*$/
const slugCharsMax = 40

export async function createOrg({ store, clock }: VerbContext, params: Params): Promise<Json> {
  const name = readName(textOf(params, 'name'))
  const slug = textOrNull(params, 'slug') ?? slugOf(name)
  if (!slugForm.test(slug) || slug.length > slugCharsMax || slug === 'system') {
    throw new UsageError(
      slug === '' ? 'no slug can be made from this name; give one with --slug' : `"${slug}" cannot be a slug`,
      `a slug is lower-case letters, digits and single dashes, at most ${slugCharsMax}: acme-shop`,
    )
  }
  if (await store.orgs.find(slug))
    throw new AppError('conflict', `There is already an organization "${slug}".`)
  const now = clock.now()
  const org: Org = { id: newId('org'), slug, name, createdAtMs: now }
  await store.orgs.create({
    org,
    audit: {
      id: newId('aud'),
      orgId: applianceOrgId,
      actor: 'cli',
      action: 'org.created',
      target: org.id,
      metadata: { name, slug },
      occurredAtMs: now,
    },
  })
  return orgView(org)
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

function readName(text: string): string {
  const name = text.trim()
  const chars = [...name].length
  if (chars < 1 || chars > limits.labelCharsMax || /[\u0000-\u001f\u007f]/.test(name)) {
    throw new UsageError(
      `the name of an organization has 1 to ${limits.labelCharsMax} characters on one line`,
    )
  }
  return name
}

function slugOf(name: string): string {
  const words =
    name
      .normalize('NFKD')
      .replace(/\p{M}/gu, '')
      .toLowerCase()
      .match(/[a-z0-9]+/g) ?? []
  return words.join('-').slice(0, slugCharsMax).replace(/-$/, '')
}
