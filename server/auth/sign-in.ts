/**
 * Signing in with e-mail and password: throttled by account and by sender, audited, alike in time for unknown names.
 */
import type { Account, AuditEntry } from '../../db/store.ts'
import { auditEntry } from '../audit/entry.ts'
import { AppError } from '../errors.ts'
import type { Parts } from '../parts.ts'
import { hashPassword, needsRehash, verifyPassword } from './password.ts'
import { senderName } from './throttle.ts'

export interface Who {
  accountId: string
  orgId: string
  email: string
}

type Needed = Pick<Parts, 'store' | 'clock' | 'throttle'>

/** Returns who signed in; throws 401 when name or password is wrong, 429 with `Retry-After` while they must wait. */
export async function signInWithPassword(
  parts: Needed,
  email: string,
  password: string,
  address: string,
): Promise<Who> {
  const { store, throttle } = parts
  const name = email.trim().toLowerCase()
  const names = throttledNames(name, address)
  const account = await store.accounts.findByEmail(name)
  throttle.require(names)
  const right = await verifyPassword(password, account?.passwordHash ?? null)
  const orgId = account && right ? await homeOf(parts, account.id) : null
  if (!account || !right || !orgId) {
    await fail(parts, names, account, address)
    throw new AppError('unauthorized', 'E-mail or password is wrong.', { reason: 'no_session' })
  }
  for (const each of names) throttle.succeeded(each)
  if (needsRehash(account.passwordHash)) await rehash(parts, account.id, orgId, password)
  return { accountId: account.id, orgId, email: account.email }
}

/** Asks a known account for its password once more; throws 401 when it is wrong, under the same throttle. */
export async function checkPassword(
  parts: Needed,
  account: Account,
  password: string,
  address: string,
): Promise<void> {
  const names = throttledNames(account.email, address)
  parts.throttle.require(names)
  if (!(await verifyPassword(password, account.passwordHash))) {
    await fail(parts, names, account, address)
    throw new AppError('forbidden', 'The password is wrong.', { reason: 'wrong_password' })
  }
  for (const each of names) parts.throttle.succeeded(each)
}

/** The organization that a new sign-in shows: the account's first. */
export async function homeOf({ store }: Pick<Parts, 'store'>, accountId: string): Promise<string | null> {
  return (await store.accounts.find(accountId))?.memberships[0]?.orgId ?? null
}

function throttledNames(email: string, address: string): string[] {
  return [`account ${email}`, `sender ${senderName(address)}`]
}

/** The refused tries since the last failure are told in one row, so that a flood cannot fill the audit log. */
async function fail(parts: Needed, names: string[], account: Account | null, address: string): Promise<void> {
  const { store, clock, throttle } = parts
  const refused = names.reduce((most, each) => Math.max(most, throttle.refused(each) - 1), 0)
  for (const each of names) throttle.failed(each)
  if (account === null) return
  const orgId = (await homeOf(parts, account.id)) ?? 'org_system'
  const metadata = { email: account.email, address, ...(refused > 0 ? { refusedBefore: refused } : {}) }
  const act = { action: 'session.failed', target: account.id, metadata }
  await store.audit.append(auditEntry({ orgId, actor: `user:${account.id}` }, act, clock.now()))
}

/** Brings an old hash to today's parameters. Like every new password it ends the account's other sign-ins. */
async function rehash(
  { store, clock }: Needed,
  accountId: string,
  orgId: string,
  password: string,
): Promise<void> {
  const act = { action: 'account.password_rehashed', target: accountId }
  const audit: AuditEntry = auditEntry({ orgId, actor: 'system' }, act, clock.now())
  await store.accounts.setPassword({ accountId, passwordHash: await hashPassword(password), audit })
}
