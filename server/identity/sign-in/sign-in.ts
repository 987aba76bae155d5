/**
 * Verifies email and password: throttled by account and sender, audited, and as slow for unknown accounts. An address
 * from which the account signed in before has its own throttle, so an attacker elsewhere locks nobody out.
 */
import { applianceOrgId } from '../../../db/contract/audit.ts'
import { auditEntry } from '../../audit/entry.ts'
import { AppError } from '../../errors.ts'
import { limits } from '../../limits.ts'
import { canonicalEmail, findAccountByEmail } from './email.ts'
import { hashPassword, needsRehash, verifyPassword, type HashLane } from './password.ts'
import { senderName } from '../../http/address.ts'
import type { Account, AuditEntry, Store } from '../../../db/contract/store.ts'
import type { Clock } from '../../clock.ts'
import type { Who } from './second-factor.ts'
import { senderPrefix, type Throttle } from './throttle.ts'

interface SignInServices {
  store: Store
  clock: Clock
  throttle: Throttle
}

/** Throws 401 when the email or the password is wrong, 429 with `Retry-After` while throttled. */
export async function signInWithPassword(
  services: SignInServices,
  email: string,
  password: string,
  address: string,
): Promise<Who> {
  const name = canonicalEmail(email)
  const account = await findAccountByEmail(services.store, email)
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

/** Verifies the password of a known account, throttled like a sign-in; throws 403 when it is wrong. */
export async function checkPassword(
  services: SignInServices,
  account: Account,
  password: string,
  address: string,
): Promise<void> {
  const { names, lane } = await throttledNames(services, { account, email: account.email, address })
  await requirePassword(services, { account, password, address, names, lane })
}

/** Verifies the password of a signed-in person again. Failed sign-ins from elsewhere do not throttle it. */
export async function confirmPassword(
  services: SignInServices,
  account: Account,
  password: string,
  address: string,
): Promise<void> {
  const names = [`confirm ${account.id} ${senderName(address)}`]
  await requirePassword(services, { account, password, address, names, lane: 'known' })
}

/** The organization of a new sign-in: the first one of the account. */
export async function homeOf(
  { store }: Pick<SignInServices, 'store'>,
  accountId: string,
): Promise<string | null> {
  return (await store.accounts.find(accountId))?.memberships[0]?.orgId ?? null
}

/** The throttles of an attempt; `kind` separates passwords from codes. */
export async function throttledNames(
  { store, clock }: Pick<SignInServices, 'store' | 'clock'>,
  { account, email, address }: { account: Pick<Account, 'id'> | null; email: string; address: string },
  kind = 'password',
): Promise<{ names: string[]; lane: HashLane }> {
  const network = senderName(address)
  const sinceMs = clock.now() - limits.knownNetworkMs
  const query = { accountId: account?.id ?? '', network, sinceMs } // as slow for unknown accounts
  if (await store.signIns.knowsNetwork(query))
    return { names: [`${kind} ${email} ${network}`], lane: 'known' }
  return { names: [`${kind} ${email}`, `${senderPrefix}${network}`], lane: 'sign-in' }
}

interface PasswordCheck {
  account: Account
  password: string
  address: string
  names: string[]
  lane: HashLane
}

async function requirePassword(
  services: SignInServices,
  { account, password, address, names, lane }: PasswordCheck,
): Promise<void> {
  const { right, refusedBefore } = await services.throttle.attempt(names, () =>
    verifyPassword(password, account.passwordHash, lane),
  )
  if (right) return
  await noteFailure(services, account, address, refusedBefore)
  throw new AppError('forbidden', 'The password is wrong.', { reason: 'wrong_password' })
}

/** One entry counts the throttled attempts since the last failure, so that a flood cannot fill the audit trail. */
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

/** Replaces a hash with outdated parameters. Like every new password it ends the account's other sign-ins. */
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
