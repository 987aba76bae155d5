/**
 * Signing in with e-mail and password: throttled by account and by sender, audited, alike in time for unknown names.
 */
import type { AuditEntry } from '../../db/store.ts'
import { AppError } from '../errors.ts'
import { newId } from '../ids.ts'
import type { Parts } from '../parts.ts'
import { hashPassword, needsRehash, verifyPassword } from './password.ts'
import { senderName } from './throttle.ts'

interface Who {
  accountId: string
  orgId: string
  email: string
}

/** Returns who signed in; throws 401 when name or password is wrong, 429 with `Retry-After` while they must wait. */
export async function signInWithPassword(
  parts: Parts,
  email: string,
  password: string,
  address: string,
): Promise<Who> {
  const { store, clock, throttle } = parts
  const name = email.trim().toLowerCase()
  const names = [`account ${name}`, `sender ${senderName(address)}`]
  const waitMs = Math.max(...names.map((each) => throttle.waitMs(each)))
  const account = await store.accounts.findByEmail(name)
  if (waitMs > 0) {
    for (const each of names) throttle.refused(each)
    const seconds = Math.ceil(waitMs / 1000)
    throw new AppError('rate_limited', `Too many wrong passwords; wait ${seconds} s and try again.`, {
      headers: { 'retry-after': String(seconds) },
    })
  }
  const right = await verifyPassword(password, account?.passwordHash ?? null)
  const membership = account && right ? await firstMembership(parts, account.id) : null
  if (!account || !right || !membership) {
    // The refused tries since the last failure are told in one row, so that a flood cannot fill the audit log.
    const refused = names.reduce((most, each) => Math.max(most, throttle.refused(each) - 1), 0)
    for (const each of names) throttle.failed(each)
    if (account)
      await store.audit.append(await failedEntry(parts, account.id, name, address, Math.max(0, refused)))
    throw new AppError('unauthorized', 'E-mail or password is wrong.', { reason: 'no_session' })
  }
  for (const each of names) throttle.succeeded(each)
  if (needsRehash(account.passwordHash)) await rehash(parts, account.id, membership, password)
  return { accountId: account.id, orgId: membership, email: account.email }
}

async function firstMembership({ store }: Parts, accountId: string): Promise<string | null> {
  const accounts = await store.accounts.list()
  return accounts.find((each) => each.id === accountId)?.memberships[0]?.orgId ?? null
}

async function failedEntry(
  parts: Parts,
  accountId: string,
  email: string,
  address: string,
  refused: number,
): Promise<AuditEntry> {
  return {
    id: newId('aud'),
    orgId: (await firstMembership(parts, accountId)) ?? 'org_system',
    actor: `user:${accountId}`,
    action: 'session.failed',
    target: accountId,
    metadata: { email, address, ...(refused > 0 ? { refusedBefore: refused } : {}) },
    occurredAtMs: parts.clock.now(),
  }
}

/** Brings an old hash to today's parameters. Like every new password it ends the account's other sign-ins. */
async function rehash(
  { store, clock }: Parts,
  accountId: string,
  orgId: string,
  password: string,
): Promise<void> {
  const audit: AuditEntry = {
    id: newId('aud'),
    orgId,
    actor: 'system',
    action: 'account.password_rehashed',
    target: accountId,
    metadata: {},
    occurredAtMs: clock.now(),
  }
  await store.accounts.setPassword({ accountId, passwordHash: await hashPassword(password), audit })
}
