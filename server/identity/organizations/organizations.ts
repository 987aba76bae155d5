/**
 * Creates, renames and deletes organizations, and changes their sites. Deletion waits for a grace period and can be
 * canceled in it.
 */
import { applianceOrgId } from '../../../db/contract/audit.ts'
import { auditEntry, type Actor } from '../../audit/entry.ts'
import { isoTime, type Clock } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import { newId } from '../../ids.ts'
import { limits } from '../../limits.ts'
import { makeSteps } from '../../system/steps.ts'
import { wrongField } from '../../http/validate.ts'
import { nameProblem, unseenProblem } from '../../text/names.ts'
import { readHosts } from './site-hosts.ts'
import type { Org, OrgDeletion, SignInRule, Site, Store } from '../../../db/contract/store.ts'
import type { Log } from '../../log.ts'

interface Services {
  store: Pick<Store, 'orgs'>
  clock: Clock
}

/** `name` and `slug` must be valid; 409 when the slug exists. The account `ownerId`, if given, becomes its owner. */
export async function makeOrg(
  { store, clock }: Services,
  actor: string,
  { name, slug, ownerId }: { name: string; slug: string; ownerId?: string },
): Promise<Org> {
  if (await store.orgs.find(slug))
    throw new AppError('conflict', `An organization with the slug "${slug}" already exists.`)
  const now = clock.now()
  const org: Org = { id: newId('org'), slug, name, createdAtMs: now }
  const act = { action: 'org.created', target: org.id, metadata: { name, slug, ownerId: ownerId ?? null } }
  const audit = auditEntry({ orgId: applianceOrgId, actor }, act, now)
  await store.orgs.create({ org, ...(ownerId === undefined ? {} : { ownerId }), audit })
  return org
}

export async function renameOrg(
  { store, clock }: Services,
  actor: string,
  org: Org,
  name: string,
): Promise<Org> {
  const metadata = { before: { name: org.name }, after: { name } }
  const act = { action: 'org.renamed', target: org.id, metadata }
  await store.orgs.rename({
    orgId: org.id,
    name,
    audit: auditEntry({ orgId: org.id, actor }, act, clock.now()),
  })
  return { ...org, name }
}

/** Writes no audit entry when the rule does not change. */
export async function changeSignInRule(
  { store, clock }: Services,
  actor: string,
  org: Org,
  rule: SignInRule,
): Promise<void> {
  const oldRule = await store.orgs.signInRule(org.id)
  if (oldRule.secondFactorRequired === rule.secondFactorRequired) return
  const metadata = { label: org.name, before: { ...oldRule }, after: { ...rule } }
  const act = { action: 'org.sign_in_rule_changed', target: org.id, metadata }
  const audit = auditEntry({ orgId: org.id, actor }, act, clock.now())
  await store.orgs.changeSignInRule({ orgId: org.id, rule, audit })
}

export async function deletionOf(
  { store }: Pick<Services, 'store'>,
  orgId: string,
): Promise<OrgDeletion | null> {
  return (await store.orgs.deletions()).find((deletion) => deletion.orgId === orgId) ?? null
}

/** `typed` must be the slug, so that nobody deletes an organization by mistake. */
export async function askDeletion(
  { store, clock }: Services,
  actor: string,
  org: Org,
  typed: string,
): Promise<OrgDeletion> {
  if (typed !== org.slug) {
    const message = `Enter the slug of the organization, ${org.slug}, to confirm.`
    throw new AppError('invalid_body', message, {
      issues: [{ path: 'confirm', message, code: 'wrong_format' }],
    })
  }
  if ((await store.orgs.list()).length === 1)
    throw new AppError('conflict', 'The only organization of the appliance cannot be deleted.')
  const now = clock.now()
  const deletion = { orgId: org.id, askedAtMs: now, dueAtMs: now + limits.orgGraceMs }
  const metadata = { name: org.name, slug: org.slug, dueAt: isoTime(deletion.dueAtMs) }
  const act = { action: 'org.deletion_asked', target: org.id, metadata }
  await store.orgs.requestDeletion({ ...deletion, audit: auditEntry({ orgId: org.id, actor }, act, now) })
  return deletion
}

export async function keepOrg({ store, clock }: Services, actor: string, org: Org): Promise<void> {
  const act = { action: 'org.kept', target: org.id, metadata: { name: org.name } }
  const now = clock.now()
  await store.orgs.cancelDeletion({
    orgId: org.id,
    now,
    audit: auditEntry({ orgId: org.id, actor }, act, now),
  })
}

/**
 * Deletes organizations whose grace period is over, in steps that do not block ingest. The audit entry is in the chain
 * of the appliance; the organization's own chain stays. After a crash the next run continues.
 */
export async function deleteDueOrgs(
  { store }: { store: Pick<Store, 'orgs' | 'retention'> },
  log: Log,
  now: number,
  ending: AbortSignal,
): Promise<void> {
  const steps = makeSteps(store, ending)
  for (const { orgId, dueAtMs } of await store.orgs.deletions()) {
    if (dueAtMs > now) continue
    const org = await store.orgs.find(orgId)
    const metadata = { name: org?.name ?? null, slug: org?.slug ?? null }
    const act = { action: 'org.deleted', target: orgId, metadata }
    const events = await steps.untilDone(
      () => store.orgs.empty({ orgId, now }),
      (part) => part.events,
    )
    const audit = auditEntry({ orgId: applianceOrgId, actor: 'system' }, act, now)
    await steps.once(() => store.orgs.remove({ orgId, now, audit }))
    log.info('org_deleted', { orgId, events })
  }
}

const slugForm = /^[a-z0-9]+(?:-[a-z0-9]+)*$/
export const slugCharsMax = 40

export function isSlug(text: string): boolean {
  return slugForm.test(text) && text.length <= slugCharsMax && text !== 'system'
}

/** A slug derived from a name; '' when the name has no usable character. */
export function slugOf(name: string): string {
  const words =
    name
      .normalize('NFKD')
      .replace(/\p{M}/gu, '')
      .toLowerCase()
      .match(/[a-z0-9]+/g) ?? []
  return words.join('-').slice(0, slugCharsMax).replace(/-$/, '')
}

interface SiteChange {
  name?: string | undefined // '' removes the name
  hidden?: boolean | undefined
  restricted?: boolean | undefined
  hosts?: readonly string[] | undefined
}

/** Works before the first event of a site, so that it can be named and restricted in advance. */
export async function changeSite(
  { store, clock }: { store: Pick<Store, 'sites'>; clock: Clock },
  actor: Actor,
  siteId: string,
  change: SiteChange,
): Promise<Site> {
  if (siteId === '' || [...siteId].length > limits.idCharsMax)
    throw wrongField('siteId', `A site id must have 1 to ${limits.idCharsMax} characters.`)
  const name = change.name?.trim()
  const problem = nameProblem(name ?? '', { optional: true })
  if (problem !== null) throw wrongField('name', `The name ${problem}.`)
  const existingSite = (await store.sites.list(actor.orgId)).find((site) => site.siteId === siteId)
  // A sender's events may have any id, which a person can still name.
  const idProblem = existingSite === undefined ? unseenProblem(siteId) : null
  if (idProblem !== null) throw wrongField('siteId', `A site id ${idProblem}.`)
  const oldSite = existingSite ?? {
    siteId,
    name: null,
    hidden: false,
    restricted: false,
    hosts: [],
    seen: false,
  }
  const site: Site = {
    ...oldSite,
    name: name === undefined ? oldSite.name : name || null,
    hidden: change.hidden ?? oldSite.hidden,
    restricted: change.restricted ?? oldSite.restricted,
    hosts: change.hosts === undefined ? oldSite.hosts : readHosts(change.hosts),
  }
  const metadata = { before: settingsOf(oldSite), after: settingsOf(site) }
  const audit = auditEntry(actor, { action: actionOf(oldSite, site), target: siteId, metadata }, clock.now())
  await store.sites.change({ orgId: actor.orgId, site: { siteId, ...settingsOf(site) }, audit })
  return site
}

/** A change of the name alone has its own action, so that renamed sites can be found in the audit trail. */
function actionOf(oldSite: Site, newSite: Site): string {
  const otherSettings = ({ hidden, restricted, hosts }: Site): string =>
    JSON.stringify([hidden, restricted, hosts])
  const isOnlyName = oldSite.name !== newSite.name && otherSettings(oldSite) === otherSettings(newSite)
  return isOnlyName ? 'site.renamed' : 'site.changed'
}

function settingsOf({ name, hidden, restricted, hosts }: Site) {
  return { name, hidden, restricted, hosts }
}
