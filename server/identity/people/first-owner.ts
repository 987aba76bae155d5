/** Creates the first owner and operator: from the environment, or through a one-time link that is printed at start. */
import { auditEntry } from '../../audit/entry.ts'
import { checkPasswordRules, hashPassword } from '../sign-in/password.ts'
import { newId, newToken, sha256Hex } from '../../ids.ts'
import { readEmail } from './members.ts'
import { AppError } from '../../errors.ts'
import { limits } from '../../limits.ts'
import { isOpenedBy, secretBox } from '../../system/encryption.ts'
import type { NodeRole } from '../../../db/contract/nodes.ts'
import type { Account, OneTimeLink, SignIn, Store } from '../../../db/contract/store.ts'
import type { KeyRing } from '../../system/key-ring.ts'
import type { Clock } from '../../clock.ts'
import type { Log } from '../../log.ts'

interface FirstOwnerRequest {
  email: string
  password: string
  linkHash: string | null // of the one-time setup link; null for the environment and the command line
  /** Begins a sign-in of the new owner, stored in the same transaction under the same audit entry. */
  signIn?: (member: { accountId: string; orgId: string }) => { signIn: SignIn; network: string }
  actor: string
}

type FirstOwnerResult =
  | { status: 'created'; account: Account; orgId: string }
  | { status: 'owner_exists' }
  | { status: 'link_invalid' }

const firstOrgSlug = 'default'

/** Throws an `AppError` for an invalid email or password. Of concurrent requests at most one succeeds. */
export async function createFirstOwner(
  store: Pick<Store, 'accounts' | 'orgs'>,
  request: FirstOwnerRequest,
  clock: Clock,
): Promise<FirstOwnerResult> {
  // Checked before the expensive hash, so that late requests cost nothing.
  if (await store.accounts.ownerExists()) return { status: 'owner_exists' }
  const { linkHash } = request
  if (linkHash !== null) {
    const link = await store.accounts.findLink({ hash: linkHash, now: clock.now() })
    if (link?.purpose !== 'setup') return { status: 'link_invalid' }
  }
  const email = readEmail(request.email)
  checkPasswordRules(request.password, email)
  const org = (await store.orgs.find(firstOrgSlug)) ?? (await store.orgs.list())[0]
  if (!org) throw new Error('the data folder has no organization')
  const passwordHash = await hashPassword(request.password)
  const now = clock.now()
  const account: Account = { id: newId('usr'), email, passwordHash, operator: true, createdAtMs: now }
  const draft = request.signIn?.({ accountId: account.id, orgId: org.id })
  const signedIn = draft === undefined ? {} : { session: draft.signIn.id, address: draft.signIn.address }
  const action = 'account.created'
  const metadata = { email, role: 'owner', operator: true, ...signedIn }
  const status = await store.accounts.createFirstOwner({
    account,
    orgId: org.id,
    linkHash,
    now,
    ...(draft === undefined ? {} : { signIn: draft.signIn, network: draft.network }),
    audit: auditEntry({ orgId: org.id, actor: request.actor }, { action, target: account.id, metadata }, now),
  })
  return status === 'created' ? { status, account, orgId: org.id } : { status }
}

interface FirstRun {
  store: Store
  config: {
    admin: { email: string; password: string } | null
    shared: object | null // other nodes on the same database print the same setup link
    role: NodeRole
    keyRing: KeyRing | null
  }
  clock: Clock
  log: Log
}

const linkPurpose = 'setup link'

/**
 * Returns the token of a setup link while there is no owner, otherwise null. Nodes that share a database have one link,
 * which works on each that serves the dashboard; the others return null. An invalid password in the environment stops
 * the start (contract §10). With a full disk the appliance starts without a link, because it cannot store one.
 */
export async function prepareFirstOwner({ store, config, clock, log }: FirstRun): Promise<string | null> {
  if (await store.accounts.ownerExists()) return null
  const { admin, shared, role, keyRing } = config
  if (admin) {
    await createFirstOwner(store, { ...admin, linkHash: null, actor: 'system' }, clock)
    return null
  }
  if (role === 'ingest' || role === 'jobs') return null
  const token = newToken()
  const now = clock.now()
  const link: OneTimeLink = {
    hash: sha256Hex(token),
    purpose: 'setup',
    accountId: null,
    expiresAtMs: now + limits.setupLinkMs,
  }
  try {
    if (shared !== null && keyRing !== null) {
      const box = secretBox(keyRing.encryption)
      const sealedToken = box.encrypt(linkPurpose, token)
      const shared = await store.accounts.shareSetupLink({ link, sealedToken, now })
      if (isOpenedBy(box, linkPurpose, shared)) return box.decrypt(linkPurpose, shared)
    }
    await store.accounts.createLink({ link, audit: null }) // also in place of one under a key that was given up
    return token
  } catch (error) {
    log.error('setup_link_not_made', { message: error instanceof AppError ? error.message : String(error) })
    return null
  }
}
