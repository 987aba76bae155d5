/** Applies a setup file. Whatever already matches, or is not in the file, stays as it is. */
import { AppError } from '../../errors.ts'
import { makeOrg, renameOrg } from '../../identity/organizations/organizations.ts'
import { changeSite } from '../../identity/organizations/sites.ts'
import {
  applyEndpoint,
  applyKey,
  unchanged,
  type Acting,
  type Applied,
  type SetupChange,
} from './apply-item.ts'
import { StoreError } from '../../../db/contract/errors.ts'
import { lazySecretBox } from '../../system/encryption.ts'
import { addressGuard } from '../../webhooks/delivery/address-guard.ts'
import { resolveWith, systemResolver } from '../../webhooks/delivery/resolve.ts'
import type { Org, Store } from '../../../db/contract/store.ts'
import type { EndpointServices } from '../../webhooks/endpoints/endpoints.ts'
import type { Setup, SetupOrg, SetupSite } from './form.ts'
import type { Clock } from '../../clock.ts'
import type { Log } from '../../log.ts'

export interface SetupServices extends EndpointServices {
  store: Store
}

/**
 * A dry run over every item comes first, so that an error changes nothing. Each change has its audit entry. After an
 * interruption, applying the file again makes the remaining changes.
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

/** Adds the position in the file to an error. */
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

interface Start {
  config: { dataDir: string; webhooks: { allow: string[]; sinkDir: string | null } }
  store: Store
  clock: Clock
  log: Log
}

/** Runs before the server listens. An error in the file prevents the start; a full disk does not (contract §10). */
export async function setUpAtStart({ config, store, clock, log }: Start, setup: Setup): Promise<void> {
  const { allow, sinkDir } = config.webhooks
  const resolve = resolveWith(systemResolver, addressGuard(allow))
  const services = { store, clock, box: lazySecretBox(config.dataDir), resolve, sinkDir }
  try {
    const changes = await applySetup(services, setup, { actor: 'system', dryRun: false })
    for (const change of changes) if (change.did !== 'unchanged') log.info('setup', { ...change })
  } catch (error) {
    if (!(error instanceof StoreError) || error.kind !== 'storage_full') throw error
    log.error('setup_not_applied', { message: error.message })
  }
}
