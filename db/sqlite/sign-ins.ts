/** Dashboard sign-ins in SQLite. */
import { and, eq, lte, or } from 'drizzle-orm'
import { StoreError } from '../errors.ts'
import type { SignInStore, SignInView } from '../store.ts'
import { appendAudit } from './audit.ts'
import type { ReadContext, WriteContext } from './contexts.ts'
import { account, membership, org, signIn } from './schema.ts'

export function createSignIn({ db, orm }: WriteContext, command: Parameters<SignInStore['create']>[0]): void {
  orm.insert(signIn).values(command.signIn).run()
  appendAudit(db, command.audit)
}

/** Null as well when the account is no longer a member of the organization the sign-in shows. */
export function findSignIn({ orm }: ReadContext, tokenHash: string): SignInView | null {
  const found = orm
    .select({ signIn, account, role: membership.role, org })
    .from(signIn)
    .innerJoin(account, eq(account.id, signIn.accountId))
    .innerJoin(org, eq(org.id, signIn.orgId))
    .innerJoin(
      membership,
      and(eq(membership.accountId, signIn.accountId), eq(membership.orgId, signIn.orgId)),
    )
    .where(eq(signIn.tokenHash, tokenHash))
    .get()
  return found ?? null
}

export function touchSignIn({ orm }: WriteContext, command: { tokenHash: string; now: number }): void {
  orm.update(signIn).set({ lastSeenAtMs: command.now }).where(eq(signIn.tokenHash, command.tokenHash)).run()
}

export function endSignIn({ db, orm }: WriteContext, command: Parameters<SignInStore['end']>[0]): void {
  const ended = orm.delete(signIn).where(eq(signIn.tokenHash, command.tokenHash)).returning().all()
  if (ended.length === 0) throw new StoreError('not_found', 'the sign-in has ended already')
  appendAudit(db, command.audit)
}

export function pruneSignIns({ orm }: WriteContext, command: { now: number; idleMs: number }): number {
  return orm
    .delete(signIn)
    .where(or(lte(signIn.expiresAtMs, command.now), lte(signIn.lastSeenAtMs, command.now - command.idleMs)))
    .returning({ id: signIn.id })
    .all().length
}
