/** Dashboard sign-ins in SQLite. */
import { and, desc, eq, lte, ne, or } from 'drizzle-orm'
import { StoreError } from '../errors.ts'
import type { Account, SignIn, SignInStore, SignInView } from '../store.ts'
import { appendAudit } from './audit.ts'
import type { ReadContext, WriteContext } from './contexts.ts'
import { account, externalIdentity, membership, org, signIn } from './schema.ts'
import { useProof } from './second-factors.ts'

export function createSignIn(
  { db, orm }: WriteContext,
  command: Parameters<SignInStore['create']>[0],
): 'done' | 'used' {
  const { accountId } = command.signIn
  if (command.proof !== undefined && !useProof(orm, accountId, command.proof)) return 'used'
  orm.insert(signIn).values(command.signIn).run()
  if (command.external !== undefined) {
    orm
      .insert(externalIdentity)
      .values({ ...command.external, accountId })
      .onConflictDoNothing()
      .run()
  }
  appendAudit(db, command.audit)
  return 'done'
}

export function findExternal(
  { orm }: ReadContext,
  { issuer, subject }: { issuer: string; subject: string },
): Account | null {
  const found = orm
    .select({ account })
    .from(externalIdentity)
    .innerJoin(account, eq(account.id, externalIdentity.accountId))
    .where(and(eq(externalIdentity.issuer, issuer), eq(externalIdentity.subject, subject)))
    .get()
  return found?.account ?? null
}

/** The one last seen first. */
export function listSignIns({ orm }: ReadContext, accountId: string): SignIn[] {
  return orm
    .select()
    .from(signIn)
    .where(eq(signIn.accountId, accountId))
    .orderBy(desc(signIn.lastSeenAtMs), signIn.id)
    .all()
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

export function endSignInById(
  { db, orm }: WriteContext,
  { accountId, id, audit }: Parameters<SignInStore['endById']>[0],
): void {
  const ended = orm
    .delete(signIn)
    .where(and(eq(signIn.id, id), eq(signIn.accountId, accountId)))
    .returning({ id: signIn.id })
    .all()
  if (ended.length === 0) throw new StoreError('not_found', `the account has no sign-in ${id}`)
  appendAudit(db, audit)
}

export function endOtherSignIns(
  { db, orm }: WriteContext,
  { accountId, keepTokenHash, audit }: Parameters<SignInStore['endOthers']>[0],
): number {
  const ended = orm
    .delete(signIn)
    .where(and(eq(signIn.accountId, accountId), ne(signIn.tokenHash, keepTokenHash)))
    .returning({ id: signIn.id })
    .all().length
  if (ended > 0) appendAudit(db, { ...audit, metadata: { ...audit.metadata, ended } })
  return ended
}

/** A new token too: what the cookie of before could reach must not follow into another organization. */
export function switchSignInOrg(
  { db, orm }: WriteContext,
  { tokenHash, newTokenHash, orgId, audit }: Parameters<SignInStore['switchOrg']>[0],
): void {
  const found = orm.select().from(signIn).where(eq(signIn.tokenHash, tokenHash)).get()
  const member =
    found &&
    orm
      .select()
      .from(membership)
      .where(and(eq(membership.accountId, found.accountId), eq(membership.orgId, orgId)))
      .get()
  if (!member) throw new StoreError('not_found', `the account is no member of ${orgId}`)
  orm.update(signIn).set({ tokenHash: newTokenHash, orgId }).where(eq(signIn.tokenHash, tokenHash)).run()
  appendAudit(db, audit)
}

export function pruneSignIns({ orm }: WriteContext, command: { now: number; idleMs: number }): number {
  return orm
    .delete(signIn)
    .where(or(lte(signIn.expiresAtMs, command.now), lte(signIn.lastSeenAtMs, command.now - command.idleMs)))
    .returning({ id: signIn.id })
    .all().length
}
