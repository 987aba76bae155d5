/** Brings the appliance to what a set-up file says; what is so already stays untouched, what it does not name too. */
import type { Org, Store } from '../../../db/contract/store.ts'
import { AppError } from '../../errors.ts'
import { makeOrg, renameOrg } from '../../identity/organizations/organizations.ts'
import { changeSite } from '../../identity/organizations/sites.ts'
import type { EndpointServices } from '../../webhooks/endpoints/endpoints.ts'
import { applyEndpoint } from './apply-endpoint.ts'
import { applyKey } from './apply-key.ts'
import { unchanged, type Acting, type Applied, type SetupChange } from './change.ts'
import type { Setup, SetupOrg, SetupSite } from './form.ts'

export interface SetupServices extends EndpointServices {
  store: Store
}

/**
 * Every item is looked at before the first one is done, so a mistake leaves everything as it was. Each act has its
 * audit row; doing it again does what is left to do.
 */
export async function applySetup(
  services: SetupServices,
  setup: Setup,
  { actor, dryRun }: Pick<Acting, 'actor' | 'dryRun'>,
): Promise<SetupChange[]> {
  const planned = await walk(services, setup, { actor, dryRun: true })
  const isDone = planned.every(({ did }) => did === 'unchanged' || did === 'left')
  return dryRun || isDone ? planned : walk(services, setup, { actor, dryRun: false })
}

type Way = Pick<Acting, 'actor' | 'dryRun'>

async function walk(services: SetupServices, setup: Setup, way: Way): Promise<SetupChange[]> {
  const changes: SetupChange[] = []
  for (const wanted of setup.organizations) {
    const { org, ...applied } = await at(wanted.at, () => applyOrg(services, wanted, way))
    const who: Acting = { orgId: org?.id ?? null, ...way }
    const slug = org?.slug ?? wanted.slug
    changes.push({ kind: 'organization', org: slug, name: org?.name ?? wanted.name ?? slug, ...applied })
    for (const site of wanted.sites) {
      const done = await at(site.at, () => applySite(services, site, who))
      changes.push({ kind: 'site', org: slug, name: site.siteId, ...done })
    }
    for (const key of wanted.keys) {
      const done = await at(key.at, () => applyKey(services, key, who))
      changes.push({ kind: 'key', org: slug, name: key.label, ...done })
    }
    for (const endpoint of wanted.endpoints) {
      const done = await at(endpoint.at, () => applyEndpoint(services, endpoint, who))
      changes.push({ kind: 'endpoint', org: slug, name: endpoint.label, ...done })
    }
  }
  return changes
}

/** What is refused says where the file asks for it. */
async function at<T>(where: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    throw new AppError(error.code, `${where}: ${error.message}`, error.details)
  }
}

async function applyOrg(
  { store, clock }: SetupServices,
  { slug, name }: SetupOrg,
  { actor, dryRun }: Way,
): Promise<Applied & { org: Org | null }> {
  const org = await store.orgs.find(slug)
  if (org === null) {
    const made = dryRun ? null : await makeOrg({ store, clock }, actor, { slug, name: name ?? slug })
    return { did: 'created', note: null, org: made }
  }
  if (name === null || name === org.name) return { ...unchanged, org }
  const renamed = dryRun ? org : await renameOrg({ store, clock }, actor, org, name)
  return { did: 'changed', note: null, org: renamed }
}

async function applySite(
  { store, clock }: SetupServices,
  { siteId, name, hidden, restricted }: SetupSite,
  { orgId, actor, dryRun }: Acting,
): Promise<Applied> {
  const known = orgId === null ? [] : await store.sites.list(orgId)
  const site = known.find((each) => each.siteId === siteId)
  if (site && site.name === name && site.hidden === hidden && site.restricted === restricted) return unchanged
  if (orgId !== null && !dryRun) {
    await changeSite({ store, clock }, { orgId, actor }, siteId, {
      name: name ?? '',
      hidden,
      restricted,
    })
  }
  return { did: site ? 'changed' : 'created', note: null }
}
