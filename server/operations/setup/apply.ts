/**
 * Applies a setup file. Whatever already matches, or is not in the file, stays as it is, except alert rules of a file:
 * those belong to it, so that one that is no longer in it is deleted.
 */
import { AppError } from '../../errors.ts'
import { changeSite, makeOrg, renameOrg } from '../../identity/organizations/organizations.ts'
import { StoreError } from '../../../db/contract/errors.ts'
import { lazySecretBox } from '../../system/encryption.ts'
import type { KeyRing } from '../../system/key-ring.ts'
import { addressGuard, resolveWith, systemResolver } from '../../webhooks/sinks/addresses.ts'
import { isoTime, type Clock } from '../../clock.ts'
import { changeKey, newKey, settingsView, storeKey } from '../../identity/keys/keys.ts'
import {
  changeEndpoint,
  createEndpoint,
  rotateEndpointSecret,
  type EndpointServices,
} from '../../webhooks/endpoints/endpoints.ts'
import { readFilters, readUrl } from '../../webhooks/endpoints/endpoint-fields.ts'
import { secretPurpose } from '../../webhooks/sinks/signing.ts'
import type { SharedDatabase, ApiKey, Org, Store } from '../../../db/contract/store.ts'
import { readDefinition } from '../../webhooks/alerts/definition.ts'
import { changeRule, createRule, deleteRule } from '../../webhooks/alerts/rules.ts'
import type { Setup, SetupAlert, SetupEndpoint, SetupKey, SetupOrg, SetupSite } from './form.ts'
import type { Log } from '../../log.ts'
import type { Endpoint } from '../../../db/contract/webhooks.ts'

interface SetupServices extends EndpointServices {
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
  for (const target of setup.organizations) {
    const { org, ...applied } = await withLocation(target.at, () => applyOrg(services, target, way))
    const actor: Acting = { orgId: org?.id ?? null, ...way }
    const slug = org?.slug ?? target.slug
    changes.push({ kind: 'organization', org: slug, name: org?.name ?? target.name ?? slug, ...applied })
    for (const site of target.sites) {
      const result = await withLocation(site.at, () => applySite(services, site, actor))
      changes.push({ kind: 'site', org: slug, name: site.siteId, ...result })
    }
    for (const key of target.keys) {
      const result = await withLocation(key.at, () => applyKey(services, key, actor))
      changes.push({ kind: 'key', org: slug, name: key.label, ...result })
    }
    for (const endpoint of target.endpoints) {
      const result = await withLocation(endpoint.at, () => applyEndpoint(services, endpoint, actor))
      changes.push({ kind: 'endpoint', org: slug, name: endpoint.label, ...result })
    }
    for (const alert of target.alerts) {
      const result = await withLocation(alert.at, () => applyAlert(services, target, alert, actor))
      changes.push({ kind: 'alert', org: slug, name: alert.name, ...result })
    }
  }
  changes.push(...(await removeAlerts(services, setup, way)))
  return changes
}

/** Adds the position in the file to an error. */
async function withLocation<T>(location: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    throw new AppError(error.code, `${location}: ${error.message}`, error.details)
  }
}

async function applyOrg(
  { store, clock }: SetupServices,
  { slug, name }: SetupOrg,
  { actor, dryRun }: Way,
): Promise<Applied & { org: Org | null }> {
  const org = await store.orgs.find(slug)
  if (org === null) {
    const newOrg = dryRun ? null : await makeOrg({ store, clock }, actor, { slug, name: name ?? slug })
    return { did: 'created', note: null, org: newOrg }
  }
  if (name === null || name === org.name) return { ...unchanged, org }
  const renamed = dryRun ? org : await renameOrg({ store, clock }, actor, org, name)
  return { did: 'changed', note: null, org: renamed }
}

async function applySite(
  { store, clock }: SetupServices,
  { siteId, name, hidden, restricted, hosts }: SetupSite,
  { orgId, actor, dryRun }: Acting,
): Promise<Applied> {
  const knownSites = orgId === null ? [] : await store.sites.list(orgId)
  const site = knownSites.find((knownSite) => knownSite.siteId === siteId)
  const hasHosts = hosts === null || JSON.stringify(site?.hosts ?? []) === JSON.stringify(hosts)
  if (site && site.name === name && site.hidden === hidden && site.restricted === restricted && hasHosts)
    return unchanged
  if (orgId !== null && !dryRun) {
    await changeSite({ store, clock }, { orgId, actor }, siteId, {
      name: name ?? '',
      hidden,
      restricted,
      hosts: hosts ?? undefined,
    })
  }
  return { did: site ? 'changed' : 'created', note: null }
}

interface Start {
  config: {
    dataDir: string
    shared: SharedDatabase | null
    keyRing?: KeyRing | null
    webhooks: { allow: string[]; sinkDir: string | null }
  }
  store: Store
  clock: Clock
  log: Log
}

/** Runs before the server listens. An error in the file prevents the start; a full disk does not (contract §10). */
export async function setUpAtStart({ config, store, clock, log }: Start, setup: Setup): Promise<void> {
  const { allow, sinkDir } = config.webhooks
  const resolve = resolveWith(systemResolver, addressGuard(allow))
  const services = {
    store,
    clock,
    box: lazySecretBox(config.dataDir, () => config.keyRing ?? null),
    resolve,
    sinkDir,
  }
  const apply = () => applySetup(services, setup, { actor: 'system', dryRun: false })
  try {
    const changes = await (config.shared === null ? apply() : inTurn(store, config.shared.node, clock, apply))
    for (const change of changes) if (change.did !== 'unchanged') log.info('setup', { ...change })
  } catch (error) {
    if (!(error instanceof StoreError) || error.kind !== 'storage_full') throw error
    log.error('setup_not_applied', { message: error.message })
  }
}

const turnMs = 60_000
const askEveryMs = 200

/** Nodes that start together apply the file one after another: the first creates, the others find all of it. */
async function inTurn<T>(
  { jobs }: Pick<Store, 'jobs'>,
  node: string,
  clock: Clock,
  work: () => Promise<T>,
): Promise<T> {
  const claim = () => jobs.claim({ job: 'set-up', node, leaseMs: turnMs, now: clock.now() })
  let lease = await claim()
  for (; lease === null; lease = await claim()) await Bun.sleep(askEveryMs)
  try {
    return await work()
  } finally {
    await jobs.release({ ...lease, quietMs: 0, now: clock.now() }).catch(() => undefined)
  }
}

/** `left`: the file contains something that was ended since, such as a revoked key; `note` has the reason. */
interface Applied {
  did: 'created' | 'changed' | 'unchanged' | 'left' | 'deleted'
  note: string | null
}

interface SetupChange extends Applied {
  kind: 'organization' | 'site' | 'key' | 'endpoint' | 'alert'
  org: string // slug
  name: string
}

/** Who applies an item, and where. In a dry run the organization may not exist yet. */
interface Acting {
  orgId: string | null // null: not created yet
  actor: string
  dryRun: boolean
}

const unchanged: Applied = { did: 'unchanged', note: null }

interface Services {
  store: Pick<Store, 'keys'>
  clock: Clock
}

/** A key is identified by its hash. */
async function applyKey(services: Services, target: SetupKey, actor: Acting): Promise<Applied> {
  const { keys } = services.store
  // The list first: memory may lack a key that another node made within the last second.
  const orgKeys = actor.orgId === null ? [] : await keys.list({ orgId: actor.orgId })
  const existingKey = orgKeys.find(({ hash }) => hash === target.hash) ?? (await keys.findByHash(target.hash))
  if (existingKey === null) return createKey(services, target, actor)
  if (existingKey.orgId !== actor.orgId || existingKey.kind !== target.kind)
    throw new AppError(
      'conflict',
      'A key with this hash exists in another organization or with another kind.',
    )
  if (existingKey.revokedAtMs !== null)
    return leaveUnchanged(`revoked on ${isoTime(existingKey.revokedAtMs)}`)
  if (isSame(existingKey, target)) return { did: 'unchanged', note: null }
  if (existingKey.expiresAtMs !== null && existingKey.expiresAtMs <= services.clock.now())
    return leaveUnchanged(`expired on ${isoTime(existingKey.expiresAtMs)}`)
  if (!actor.dryRun) {
    const { label, scopes, siteIds, behindProxy, expiresAtMs } = target
    const change = { label, scopes, siteIds, behindProxy, expiresAtMs }
    await changeKey(services, { orgId: existingKey.orgId, actor: actor.actor }, existingKey.id, change)
  }
  return { did: 'changed', note: null }
}

async function createKey({ store, clock }: Services, target: SetupKey, actor: Acting): Promise<Applied> {
  const now = clock.now()
  const { hash, prefix, expiresAtMs } = target
  if (expiresAtMs !== null && expiresAtMs <= now) return leaveUnchanged(`expired on ${isoTime(expiresAtMs)}`)
  const request = { ...target, orgId: actor.orgId ?? '', actor: actor.actor }
  // newKey validates the fields as for any key. Its random secret is discarded in favor of the hash in the file.
  const key = { ...newKey(request, now).key, hash, prefix }
  if (!actor.dryRun) await storeKey(store, key, actor.actor)
  return { did: 'created', note: null }
}

function leaveUnchanged(note: string): Applied {
  return { did: 'left', note }
}

function isSame(existingKey: ApiKey, target: SetupKey): boolean {
  const sorted = ({ scopes, siteIds, ...settings }: ReturnType<typeof settingsView>) =>
    JSON.stringify({ ...settings, scopes: scopes.toSorted(), siteIds: siteIds.toSorted() })
  return sorted(settingsView(existingKey)) === sorted(settingsView(target))
}

/** An endpoint is identified by its label in its organization. */
async function applyEndpoint(
  services: EndpointServices,
  { at: _, secret, ...target }: SetupEndpoint,
  { orgId, actor, dryRun }: Acting,
): Promise<Applied> {
  const endpoints = orgId === null ? [] : await services.store.webhooks.endpoints(orgId)
  const labelMatches = endpoints.map(({ endpoint }) => endpoint).filter(({ label }) => label === target.label)
  if (labelMatches.length > 1)
    throw new AppError('conflict', `${labelMatches.length} endpoints have this label; rename all but one.`)
  const [existingEndpoint] = labelMatches
  readFilters(target)
  // An unchanged URL was checked when it was added. Stricter rules since then must not prevent a start.
  const url = existingEndpoint?.url === target.url ? target.url : readUrl(services, target.url)
  if (existingEndpoint === undefined) {
    if (orgId === null || dryRun) return { did: 'created', note: null }
    const { warnings } = await createEndpoint(services, { orgId, actor }, target, secret ?? undefined)
    return { did: 'created', note: warnings.map(({ message }) => message).join(' ') || null }
  }
  const orgActor = { orgId: existingEndpoint.orgId, actor }
  const changes = differing(existingEndpoint, { ...target, url })
  const isNewSecret = secret !== null && decryptSecret(services, existingEndpoint) !== secret
  if (!dryRun && Object.keys(changes).length > 0)
    await changeEndpoint(services, orgActor, existingEndpoint.id, changes)
  if (!dryRun && isNewSecret) await rotateEndpointSecret(services, orgActor, existingEndpoint.id, secret)
  return { did: Object.keys(changes).length > 0 || isNewSecret ? 'changed' : 'unchanged', note: null }
}

function differing(
  existingEndpoint: Endpoint,
  target: Omit<SetupEndpoint, 'at' | 'secret'>,
): { [field: string]: unknown } {
  const currentFields: { [field: string]: unknown } = {
    ...existingEndpoint,
    sites: existingEndpoint.siteIds,
    retryWaits: existingEndpoint.retryWaitsMs?.map((ms) => ms / 1_000) ?? null,
  }
  return Object.fromEntries(
    Object.entries(target).filter(
      ([name, value]) => JSON.stringify(currentFields[name]) !== JSON.stringify(value),
    ),
  )
}

/** Null when it was encrypted under another key file: then the secret of the setup file wins. */
function decryptSecret({ box }: EndpointServices, { orgId, id, encryptedSecret }: Endpoint): string | null {
  try {
    return box.decrypt(secretPurpose({ orgId, endpointId: id }), encryptedSecret)
  } catch {
    return null
  }
}

/** An alert rule of a file is identified by its name among those of its organization. */
async function applyAlert(
  services: SetupServices,
  org: SetupOrg,
  { name, endpoint, definition: rawDefinition }: SetupAlert,
  { orgId, actor, dryRun }: Acting,
): Promise<Applied> {
  const definition = readDefinition(rawDefinition)
  const { webhooks } = services.store
  const endpoints = orgId === null ? [] : await webhooks.endpoints(orgId)
  const [target] = endpoints.map((entry) => entry.endpoint).filter(({ label }) => label === endpoint)
  const isPlanned = org.endpoints.some(({ label }) => label === endpoint)
  if (target === undefined && !(dryRun && isPlanned))
    throw new AppError(
      'conflict',
      `No endpoint of this organization has the label ${JSON.stringify(endpoint)}.`,
    )
  const rules = orgId === null ? [] : await webhooks.rules(orgId)
  const existingRule = rules.find((rule) => rule.fromFile && rule.name === name)
  const body = { kind: 'measure', name, endpointId: target?.id, ...definition }
  const way = { fromFile: true }
  if (existingRule === undefined) {
    if (orgId !== null && !dryRun) await createRule(services, { orgId, actor }, body, way)
    return { did: 'created', note: null }
  }
  if (
    existingRule.endpointId === target?.id &&
    JSON.stringify(existingRule.definition) === JSON.stringify(definition)
  )
    return unchanged
  if (!dryRun) await changeRule(services, { orgId: existingRule.orgId, actor }, existingRule.id, body, way)
  return { did: 'changed', note: null }
}

/** Alert rules of a file that are no longer in it. */
async function removeAlerts(
  services: SetupServices,
  { organizations }: Setup,
  { actor, dryRun }: Way,
): Promise<SetupChange[]> {
  const { webhooks, orgs } = services.store
  const fromFile = (await webhooks.rules(null)).filter((rule) => rule.fromFile)
  const targets = new Map(organizations.map((target) => [target.slug, target]))
  const changes: SetupChange[] = []
  for (const { id, orgId, name } of fromFile) {
    const org = (await orgs.find(orgId))?.slug ?? orgId
    const target = targets.get(org)
    if (target?.alerts.some((alert) => alert.name === name)) continue
    if (!dryRun) await deleteRule(services, { orgId, actor }, id, { fromFile: true })
    changes.push({ kind: 'alert', org, name, did: 'deleted', note: null })
  }
  return changes
}
