/** What people do with organizations: make, rename, ask to delete, take that back; and the job that deletes. */
import { applianceOrgId } from '../../../db/contract/audit.ts'
import { auditEntry } from '../../audit/entry.ts'
import { isoTime, type Clock } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import { newId } from '../../ids.ts'
import { limits } from '../../limits.ts'
import { makeSteps } from '../../operations/retention/steps.ts'
import type { Org, OrgDeletion, SignInRule, Store } from '../../../db/contract/store.ts'
import type { Log } from '../../log.ts'

interface Services {
  store: Pick<Store, 'orgs'>
  clock: Clock
}

/** `name` and `slug` are checked already; 409 when the slug is taken. With `ownerId` that account owns it. */
export async function makeOrg(
  { store, clock }: Services,
  actor: string,
  { name, slug, ownerId }: { name: string; slug: string; ownerId?: string },
): Promise<Org> {
  if (await store.orgs.find(slug))
    throw new AppError('conflict', `An organization with the short name "${slug}" already exists.`)
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

/** The same rule again is done without a word. */
export async function changeSignInRule(
  { store, clock }: Services,
  actor: string,
  org: Org,
  rule: SignInRule,
): Promise<void> {
  const before = await store.orgs.signInRule(org.id)
  if (before.secondFactorRequired === rule.secondFactorRequired) return
  const metadata = { label: org.name, before: { ...before }, after: { ...rule } }
  const act = { action: 'org.sign_in_rule_changed', target: org.id, metadata }
  const audit = auditEntry({ orgId: org.id, actor }, act, clock.now())
  await store.orgs.changeSignInRule({ orgId: org.id, rule, audit })
}

export async function deletionOf(
  { store }: Pick<Services, 'store'>,
  orgId: string,
): Promise<OrgDeletion | null> {
  return (await store.orgs.deletions()).find((each) => each.orgId === orgId) ?? null
}

/** `typed` must be the slug: nobody deletes an organization by a slip. */
export async function askDeletion(
  { store, clock }: Services,
  actor: string,
  org: Org,
  typed: string,
): Promise<OrgDeletion> {
  if (typed !== org.slug) {
    const message = `Type the short name of the organization, ${org.slug}, to confirm.`
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
 * Deletes what is due, in steps that leave room for ingest; the row stands in the appliance's chain, and the
 * organization's own chain stays. After a crash the next run goes on.
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
      (small) => store.orgs.empty({ orgId, now, small }),
      (part) => part.events,
    )
    const audit = auditEntry({ orgId: applianceOrgId, actor: 'system' }, act, now)
    await steps.once(() => store.orgs.remove({ orgId, now, audit }))
    log.info('org_deleted', { orgId, events })
  }
}

/** What organizations may be called: a name for people, a slug for commands. */
const slugForm = /^[a-z0-9]+(?:-[a-z0-9]+)*$/
export const slugCharsMax = 40

/** What is wrong with a name, in words that follow it, or null. */
export function nameProblem(name: string): string | null {
  const chars = [...name].length
  const fits = chars >= 1 && chars <= limits.labelCharsMax && !/[\u0000-\u001f\u007f]/.test(name)
  return fits ? null : `must have 1 to ${limits.labelCharsMax} characters, without line breaks`
}

export function isSlug(text: string): boolean {
  return slugForm.test(text) && text.length <= slugCharsMax && text !== 'system'
}

/** A slug made from a name; '' when there is nothing in it to make one of. */
export function slugOf(name: string): string {
  const words =
    name
      .normalize('NFKD')
      .replace(/\p{M}/gu, '')
      .toLowerCase()
      .match(/[a-z0-9]+/g) ?? []
  return words.join('-').slice(0, slugCharsMax).replace(/-$/, '')
}
