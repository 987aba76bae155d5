/** The work of the verbs around people, organizations, sites and the changing of keys. */
import type { Json, Store } from '../../../db/contract/store.ts'
import { invite as makeInvitation } from '../../identity/people/invitations.ts'
import { readEmail } from '../../identity/people/email.ts'
import { changeRole, readRole, removeMember as takeOut, type Acting } from '../../identity/people/members.ts'
import { auditEntry } from '../../audit/entry.ts'
import { isoTime } from '../../clock.ts'
import { AppError, UsageError } from '../../errors.ts'
import { changeKey as changeTerms, rotateKey as makeSuccessor } from '../../identity/keys/keys.ts'
import { nameProblem } from '../../identity/organizations/organizations.ts'
import {
  applianceOrgId,
  askDeletion,
  changeSignInRule,
  deletionOf,
  keepOrg as takeBack,
  renameOrg as rename,
} from '../../identity/organizations/organizations.ts'
import { changeSite as chooseForSite } from '../../identity/organizations/sites.ts'
import { readSpan } from './expiry.ts'
import { keyView, orgOfKey } from './key.ts'
import { requireOrg } from './org.ts'
import { textOf, textOrNull, textsOf, type Params } from '../../runtime/params.ts'
import type { VerbContext } from '../../runtime/verb-context.ts'

/** Who has the machine may do everything. */
async function machine(store: Pick<Store, 'orgs'>, params: Params): Promise<Acting> {
  const { id } = await requireOrg(store, textOf(params, 'org'))
  return { orgId: id, actor: 'cli', role: 'machine' }
}

async function requireAccount(store: Pick<Store, 'accounts'>, params: Params) {
  const email = readEmail(textOf(params, 'email'))
  const account = await store.accounts.findByEmail(email)
  if (account) return account
  throw new AppError('not_found', `There is no account with the e-mail ${email}.`, {
    hint: 'sightglass account list',
  })
}

export async function invite(context: VerbContext, params: Params): Promise<Json> {
  const who = await machine(context.store, params)
  const asked = { email: textOf(params, 'email'), role: readRole(textOf(params, 'role')) }
  const { invitation, token } = await makeInvitation(context, who, asked)
  const { id, email, role, orgId, expiresAtMs } = invitation
  const link = `${context.baseUrl}/invitation#${token}`
  return { id, email, role, orgId, link, expiresAt: isoTime(expiresAtMs) }
}

export async function setRole(context: VerbContext, params: Params): Promise<Json> {
  const who = await machine(context.store, params)
  const { id, email } = await requireAccount(context.store, params)
  const role = readRole(textOf(params, 'role'))
  await changeRole(context, who, id, role)
  return { accountId: id, email, role, orgId: who.orgId }
}

export async function removeMember(context: VerbContext, params: Params): Promise<Json> {
  const who = await machine(context.store, params)
  const { id, email } = await requireAccount(context.store, params)
  await takeOut(context, who, id)
  return { accountId: id, email, orgId: who.orgId }
}

export function setOperator(operator: boolean) {
  return async ({ store, clock }: VerbContext, params: Params): Promise<Json> => {
    const { id, email, operator: before } = await requireAccount(store, params)
    if (before === operator) return { accountId: id, email, operator }
    const metadata = { email, before: { operator: before }, after: { operator } }
    const act = { action: 'account.operator_changed', target: id, metadata }
    const audit = auditEntry({ orgId: applianceOrgId, actor: 'cli' }, act, clock.now())
    if ((await store.accounts.setOperator({ accountId: id, operator, audit })) === 'last_operator')
      throw new AppError('conflict', 'The appliance keeps at least one operator.', {
        hint: 'sightglass account make-operator',
      })
    return { accountId: id, email, operator }
  }
}

export async function resetSecondFactor({ store, clock }: VerbContext, params: Params): Promise<Json> {
  const { id, email } = await requireAccount(store, params)
  if ((await store.secondFactors.find(id)) === null)
    throw new AppError('conflict', `${email} has no second factor.`)
  const orgId = (await store.accounts.find(id))?.memberships[0]?.orgId ?? applianceOrgId
  const act = { action: 'account.second_factor_removed', target: id, metadata: { email } }
  await store.secondFactors.remove({
    accountId: id,
    audit: auditEntry({ orgId, actor: 'cli' }, act, clock.now()),
  })
  return { accountId: id, email }
}

export async function renameOrg(context: VerbContext, params: Params): Promise<Json> {
  const org = await requireOrg(context.store, textOf(params, 'org'))
  const name = textOf(params, 'name').trim()
  const problem = nameProblem(name)
  if (problem !== null) throw new UsageError(`the name of an organization ${problem}`)
  const { id, slug } = await rename(context, 'cli', org, name)
  return { id, slug, name }
}

export async function deleteOrg(context: VerbContext, params: Params): Promise<Json> {
  const org = await requireOrg(context.store, textOf(params, 'org'))
  if (await deletionOf(context, org.id))
    throw new AppError('conflict', `"${org.slug}" is to be deleted already.`, { hint: 'sightglass org keep' })
  const { dueAtMs } = await askDeletion(context, 'cli', org, textOf(params, 'confirm'))
  return { id: org.id, slug: org.slug, deletesAt: isoTime(dueAtMs) }
}

export async function keepOrg(context: VerbContext, params: Params): Promise<Json> {
  const org = await requireOrg(context.store, textOf(params, 'org'))
  if (!(await deletionOf(context, org.id)))
    throw new AppError('conflict', `Nobody asked to delete "${org.slug}".`)
  await takeBack(context, 'cli', org)
  return { id: org.id, slug: org.slug }
}

/** Also the way back for whoever is locked out by it. */
export async function setSignInRule(context: VerbContext, params: Params): Promise<Json> {
  const org = await requireOrg(context.store, textOf(params, 'org'))
  const secondFactor = textOf(params, 'secondFactor')
  await changeSignInRule(context, 'cli', org, { secondFactorRequired: secondFactor === 'required' })
  return { id: org.id, slug: org.slug, secondFactor }
}

export async function listSites({ store }: VerbContext, params: Params): Promise<Json> {
  const { orgId } = await machine(store, params)
  return { sites: (await store.sites.list(orgId)).map((site) => ({ ...site })) }
}

export async function changeSite(context: VerbContext, params: Params): Promise<Json> {
  const who = await machine(context.store, params)
  const [name, hidden, restricted] = ['name', 'hidden', 'restricted'].map((each) => textOrNull(params, each))
  const site = await chooseForSite(context, who, textOf(params, 'siteId'), {
    name: name ?? undefined,
    hidden: hidden === null ? undefined : hidden === 'yes',
    restricted: restricted === null ? undefined : restricted === 'yes',
  })
  return { ...site }
}

export async function rotateKey(context: VerbContext, params: Params): Promise<Json> {
  const keyId = textOf(params, 'id')
  const overlap = textOf(params, 'overlap')
  const overlapMs = readSpan(overlap)
  if (overlapMs === null) throw new UsageError(`"${overlap}" is not a span like 0h, 12h or 7d`)
  const orgId = await orgOfKey(context.store, keyId, textOrNull(params, 'org'))
  const { key, secret, old } = await makeSuccessor(context, { orgId, actor: 'cli' }, keyId, overlapMs)
  return { key: secret, ...keyView(key), old: keyView(old) }
}

export async function changeKey(context: VerbContext, params: Params): Promise<Json> {
  const keyId = textOf(params, 'id')
  const orgId = await orgOfKey(context.store, keyId, textOrNull(params, 'org'))
  const listOf = (name: string) => ((params[name] ?? null) === null ? undefined : textsOf(params, name))
  const behindProxy = params['behindProxy']
  const change = {
    label: textOrNull(params, 'label') ?? undefined,
    siteIds: listOf('site'),
    scopes: listOf('scope'),
    behindProxy: typeof behindProxy === 'boolean' ? behindProxy : undefined,
  }
  return keyView(await changeTerms(context, { orgId, actor: 'cli' }, keyId, change))
}
