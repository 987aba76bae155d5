/**
 * Checks e-mail and password: throttled by account and sender, audited, alike in time for unknown names. An address
 * from which the account signed in before has a throttle of its own, so an attacker elsewhere keeps nobody out.
 */
import { applianceOrgId } from '../../../db/contract/audit.ts'
import type { Account, AuditEntry, Store } from '../../../db/contract/store.ts'
import { auditEntry } from '../../audit/entry.ts'
import { AppError } from '../../errors.ts'
import { limits } from '../../limits.ts'
import type { Clock } from '../../clock.ts'
import type { Who } from './half-sign-ins.ts'
import { hashPassword, needsRehash, verifyPassword, type HashLane } from './password.ts'
import { senderName } from '../../http/proxy.ts'
import type { Throttle } from './throttle.ts'

export interface SignInServices {
  store: Store
  clock: Clock
  throttle: Throttle
}

/** Returns who signed in; throws 401 when name or password is wrong, 429 with `Retry-After` while they must wait. */
export async function signInWithPassword(
  services: SignInServices,
  email: string,
  password: string,
  address: string,
): Promise<Who> {
  const name = email.trim().toLowerCase()
  const account = await services.store.accounts.findByEmail(name)
  const { names, lane } = await throttledNames(services, { account, email: name, address })
  let orgId: string | null = null
  const { right, refusedBefore } = await services.throttle.attempt(names, async () => {
    const verified = await verifyPassword(password, account?.passwordHash ?? null, lane)
    if (account && verified) orgId = await homeOf(services, account.id)
    return orgId !== null
  })
  if (!right || account === null || orgId === null) {
    await noteFailure(services, account, address, refusedBefore)
    throw new AppError('unauthorized', 'Email or password is wrong.', { reason: 'no_session' })
  }
  const passwordHash = needsRehash(account.passwordHash)
    ? await rehash(services, account.id, orgId, password)
    : account.passwordHash
  return { accountId: account.id, orgId, email: account.email, passwordHash }
}

/** Asks a known account for its password; throws 403 when it is wrong, under the same throttle as a sign-in. */
export async function checkPassword(
  services: SignInServices,
  account: Account,
  password: string,
  address: string,
): Promise<void> {
  const { names, lane } = await throttledNames(services, { account, email: account.email, address })
  await requirePassword(services, { account, password, address, names, lane })
}

/** Asks the person of a sign-in once more. Strangers who guess at the account do not make them wait. */
export async function confirmPassword(
  services: SignInServices,
  account: Account,
  password: string,
  address: string,
): Promise<void> {
  const names = [`confirm ${account.id} ${senderName(address)}`]
  await requirePassword(services, { account, password, address, names, lane: 'known' })
}

/** The organization that a new sign-in shows: the account's first. */
export async function homeOf(
  { store }: Pick<SignInServices, 'store'>,
  accountId: string,
): Promise<string | null> {
  return (await store.accounts.find(accountId))?.memberships[0]?.orgId ?? null
}

/** What an attempt counts against; `kind` keeps passwords and codes apart. */
export async function throttledNames(
  { store, clock }: Pick<SignInServices, 'store' | 'clock'>,
  { account, email, address }: { account: Pick<Account, 'id'> | null; email: string; address: string },
  kind = 'password',
): Promise<{ names: string[]; lane: HashLane }> {
  const network = senderName(address)
  const sinceMs = clock.now() - limits.knownNetworkMs
  const asked = { accountId: account?.id ?? '', network, sinceMs } // unknown accounts take the same time
  if (await store.signIns.knowsNetwork(asked))
    return { names: [`${kind} ${email} ${network}`], lane: 'known' }
  return { names: [`${kind} ${email}`, `sender ${network}`], lane: 'sign-in' }
}

interface Asked {
  account: Account
  password: string
  address: string
  names: string[]
  lane: HashLane
}

async function requirePassword(
  services: SignInServices,
  { account, password, address, names, lane }: Asked,
): Promise<void> {
  const { right, refusedBefore } = await services.throttle.attempt(names, () =>
    verifyPassword(password, account.passwordHash, lane),
  )
  if (right) return
  await noteFailure(services, account, address, refusedBefore)
  throw new AppError('forbidden', 'The password is wrong.', { reason: 'wrong_password' })
}

/** One row counts the refused attempts since the last failure, so that a flood cannot fill the audit log. */
async function noteFailure(
  services: SignInServices,
  account: Account | null,
  address: string,
  refused: number,
): Promise<void> {
  if (account === null) return
  const { store, clock } = services
  const orgId = (await homeOf(services, account.id)) ?? applianceOrgId
  const metadata = { email: account.email, address, ...(refused > 0 ? { refusedBefore: refused } : {}) }
  const act = { action: 'session.failed', target: account.id, metadata }
  await store.audit.append(auditEntry({ orgId, actor: `user:${account.id}` }, act, clock.now()))
}

/** Brings an old hash to today's parameters. Like every new password it ends the account's other sign-ins. */
async function rehash(
  { store, clock }: SignInServices,
  accountId: string,
  orgId: string,
  password: string,
): Promise<string> {
  const act = { action: 'account.password_rehashed', target: accountId }
  const audit: AuditEntry = auditEntry({ orgId, actor: 'system' }, act, clock.now())
  const passwordHash = await hashPassword(password, 'sign-in')
  await store.accounts.setPassword({ accountId, passwordHash, audit })
  return passwordHash
}
