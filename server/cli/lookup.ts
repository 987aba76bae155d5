/** Finds what a command names: an organization, an account, a key. Errors say where to list them. */
import type { Org, Store } from '../../db/contract/store.ts'
import { AppError } from '../errors.ts'
import { readEmail } from '../identity/people/email.ts'
import type { Acting } from '../identity/people/members.ts'
import { textOf, type Params } from '../runtime/work.ts'

export async function requireOrg(store: Pick<Store, 'orgs'>, idOrSlug: string): Promise<Org> {
  const org = await store.orgs.find(idOrSlug)
  if (org) return org
  throw new AppError('not_found', `No organization "${idOrSlug}".`, { hint: 'sightglass org list' })
}

export async function requireAccount(store: Pick<Store, 'accounts'>, params: Params) {
  const email = readEmail(textOf(params, 'email'))
  const account = await store.accounts.findByEmail(email)
  if (account) return account
  throw new AppError('not_found', `No account with the email ${email}.`, { hint: 'sightglass account list' })
}

/** The command line in the organization of `params`: it may do everything. */
export async function machineIn(store: Pick<Store, 'orgs'>, params: Params): Promise<Acting> {
  const { id } = await requireOrg(store, textOf(params, 'org'))
  return { orgId: id, actor: 'cli', role: 'machine' }
}

/** The organization of a key. `idOrSlug` only narrows the search, because ids are unique. */
export async function orgOfKey(
  store: Pick<Store, 'orgs' | 'keys'>,
  keyId: string,
  idOrSlug: string | null,
): Promise<string> {
  const orgs = idOrSlug === null ? await store.orgs.list() : [await requireOrg(store, idOrSlug)]
  for (const org of orgs) {
    if ((await store.keys.list({ orgId: org.id })).some((key) => key.id === keyId)) return org.id
  }
  throw new AppError('not_found', `No key "${keyId}".`, { hint: 'sightglass key list' })
}
