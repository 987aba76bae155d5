/** Dashboard sign-ins and second factors. */
import { and, count, desc, eq, gt, lt, lte, ne, or } from 'drizzle-orm'
import { StoreError } from '../../contract/errors.ts'
import { appendAudit } from '../audit/append.ts'
import {
  account,
  accountNetwork,
  externalIdentity,
  membership,
  org,
  orgSignInRule,
  recoveryCode,
  secondFactor,
  signIn,
} from './schema.ts'
import type {
  Account,
  Proof,
  SecondFactor,
  SecondFactorStore,
  SignIn,
  SignInStore,
  SignInView,
} from '../../contract/store.ts'
import type { ReadContext, WriteContext } from '../contexts.ts'

export function createSignIn(
  { db, orm }: WriteContext,
  command: Parameters<SignInStore['create']>[0],
): 'done' | 'used' | 'stale' {
  const { accountId, createdAtMs } = command.signIn
  if (command.passwordHash !== undefined && !hasPassword(orm, accountId, command.passwordHash)) return 'stale'
  if (command.proof !== undefined && !useProof(orm, accountId, command.proof)) return 'used'
  orm.insert(signIn).values(command.signIn).run()
  if (command.external !== undefined) {
    orm
      .insert(externalIdentity)
      .values({ ...command.external, accountId })
      .onConflictDoNothing()
      .run()
  }
  if (command.network !== undefined) rememberNetwork({ db, orm }, accountId, command.network, createdAtMs)
  appendAudit(db, command.audit)
  return 'done'
}

/** A password that changed during the check signs nobody in. */
function hasPassword(orm: WriteContext['orm'], accountId: string, passwordHash: string): boolean {
  return orm.select().from(account).where(eq(account.id, accountId)).get()?.passwordHash === passwordHash
}

/** An account has few networks: a person's own, not those of everybody who ever had its password. */
const networksMax = 20

export function rememberNetwork(
  { db, orm }: Pick<WriteContext, 'db' | 'orm'>,
  accountId: string,
  network: string,
  lastAtMs: number,
): void {
  db.query(
    `INSERT INTO account_network (account_id, network, last_at_ms) VALUES (?, ?, ?)
     ON CONFLICT (account_id, network) DO UPDATE SET last_at_ms = excluded.last_at_ms`,
  ).run(accountId, network, lastAtMs)
  const networkRows = orm
    .select()
    .from(accountNetwork)
    .where(eq(accountNetwork.accountId, accountId))
    .orderBy(desc(accountNetwork.lastAtMs))
    .all()
  for (const { network: old } of networkRows.slice(networksMax)) {
    orm
      .delete(accountNetwork)
      .where(and(eq(accountNetwork.accountId, accountId), eq(accountNetwork.network, old)))
      .run()
  }
}

export function knowsNetwork(
  { orm }: ReadContext,
  { accountId, network, sinceMs }: Parameters<SignInStore['knowsNetwork']>[0],
): boolean {
  const condition = and(
    eq(accountNetwork.accountId, accountId),
    eq(accountNetwork.network, network),
    gt(accountNetwork.lastAtMs, sinceMs),
  )
  return orm.select().from(accountNetwork).where(condition).get() !== undefined
}

export function findExternal(
  { orm }: ReadContext,
  { issuer, subject }: { issuer: string; subject: string },
): Account | null {
  const identityRow = orm
    .select({ account })
    .from(externalIdentity)
    .innerJoin(account, eq(account.id, externalIdentity.accountId))
    .where(and(eq(externalIdentity.issuer, issuer), eq(externalIdentity.subject, subject)))
    .get()
  return identityRow?.account ?? null
}

/** Last used first. */
export function listSignIns({ orm }: ReadContext, accountId: string): SignIn[] {
  return orm
    .select()
    .from(signIn)
    .where(eq(signIn.accountId, accountId))
    .orderBy(desc(signIn.lastSeenAtMs), signIn.id)
    .all()
}

/** Also null when the account is no longer a member of the sign-in's organization. */
export function findSignIn({ orm }: ReadContext, tokenHash: string): SignInView | null {
  const signInRow = orm
    .select({
      signIn,
      account,
      role: membership.role,
      org,
      rule: orgSignInRule,
      factor: secondFactor.sinceMs,
    })
    .from(signIn)
    .innerJoin(account, eq(account.id, signIn.accountId))
    .innerJoin(org, eq(org.id, signIn.orgId))
    .innerJoin(
      membership,
      and(eq(membership.accountId, signIn.accountId), eq(membership.orgId, signIn.orgId)),
    )
    .leftJoin(orgSignInRule, eq(orgSignInRule.orgId, signIn.orgId))
    .leftJoin(secondFactor, eq(secondFactor.accountId, signIn.accountId))
    .where(eq(signIn.tokenHash, tokenHash))
    .get()
  if (signInRow === undefined) return null
  const { rule, factor, ...view } = signInRow
  const required = rule?.secondFactorRequired ?? false
  return { ...view, lacksSecondFactor: required && factor === null && !view.signIn.byProvider }
}

export function touchSignIn({ orm }: WriteContext, command: { tokenHash: string; now: number }): void {
  orm.update(signIn).set({ lastSeenAtMs: command.now }).where(eq(signIn.tokenHash, command.tokenHash)).run()
}

export function endSignIn({ db, orm }: WriteContext, command: Parameters<SignInStore['end']>[0]): void {
  const ended = orm.delete(signIn).where(eq(signIn.tokenHash, command.tokenHash)).returning().all()
  if (ended.length === 0) throw new StoreError('not_found', 'the sign-in has already ended')
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

/** With a new token, so that the previous cookie cannot reach another organization. */
export function switchSignInOrg(
  { db, orm }: WriteContext,
  { tokenHash, newTokenHash, orgId, audit }: Parameters<SignInStore['switchOrg']>[0],
): void {
  const signInRow = orm.select().from(signIn).where(eq(signIn.tokenHash, tokenHash)).get()
  const member =
    signInRow &&
    orm
      .select()
      .from(membership)
      .where(and(eq(membership.accountId, signInRow.accountId), eq(membership.orgId, orgId)))
      .get()
  if (!member) throw new StoreError('not_found', `the account is not a member of ${orgId}`)
  orm.update(signIn).set({ tokenHash: newTokenHash, orgId }).where(eq(signIn.tokenHash, tokenHash)).run()
  appendAudit(db, audit)
}

export function pruneSignIns(
  { orm }: WriteContext,
  command: { now: number; idleMs: number; networksBeforeMs?: number },
): number {
  const { networksBeforeMs } = command
  if (networksBeforeMs !== undefined)
    orm.delete(accountNetwork).where(lt(accountNetwork.lastAtMs, networksBeforeMs)).run()
  return orm
    .delete(signIn)
    .where(or(lte(signIn.expiresAtMs, command.now), lte(signIn.lastSeenAtMs, command.now - command.idleMs)))
    .returning({ id: signIn.id })
    .all().length
}

/** Second factors: an encrypted seed, the last step used, and hashes of the recovery codes. */
type Orm = WriteContext['orm']
type Command<K extends 'set' | 'setRecovery' | 'remove'> = Parameters<SecondFactorStore[K]>[0]

export function findSecondFactor({ orm }: ReadContext, accountId: string): SecondFactor | null {
  const factorRow = orm.select().from(secondFactor).where(eq(secondFactor.accountId, accountId)).get()
  if (factorRow === undefined) return null
  const codeCount = orm
    .select({ n: count() })
    .from(recoveryCode)
    .where(eq(recoveryCode.accountId, accountId))
    .get()
  return { ...factorRow, recoveryLeft: codeCount?.n ?? 0 }
}

export function setSecondFactor(
  { db, orm }: WriteContext,
  { factor, recoveryHashes, audit }: Command<'set'>,
): void {
  orm.delete(secondFactor).where(eq(secondFactor.accountId, factor.accountId)).run()
  orm.insert(secondFactor).values(factor).run()
  insertCodes(orm, factor.accountId, recoveryHashes)
  appendAudit(db, audit)
}

export function setRecovery(
  { db, orm }: WriteContext,
  { accountId, recoveryHashes, audit }: Command<'setRecovery'>,
): void {
  const factorRow = orm.select().from(secondFactor).where(eq(secondFactor.accountId, accountId)).get()
  if (factorRow === undefined) throw new StoreError('not_found', `${accountId} has no second factor`)
  orm.delete(recoveryCode).where(eq(recoveryCode.accountId, accountId)).run()
  insertCodes(orm, accountId, recoveryHashes)
  appendAudit(db, audit)
}

export function removeSecondFactor({ db, orm }: WriteContext, { accountId, audit }: Command<'remove'>): void {
  const deletedFactors = orm
    .delete(secondFactor)
    .where(eq(secondFactor.accountId, accountId))
    .returning()
    .all()
  if (deletedFactors.length === 0) throw new StoreError('not_found', `${accountId} has no second factor`)
  appendAudit(db, audit)
}

/** Consumes a code for a sign-in; false when it was used before. */
function useProof(orm: Orm, accountId: string, proof: Proof): boolean {
  if ('step' in proof) {
    const moved = orm
      .update(secondFactor)
      .set({ lastStep: proof.step })
      .where(and(eq(secondFactor.accountId, accountId), lt(secondFactor.lastStep, proof.step)))
      .returning({ id: secondFactor.accountId })
      .all()
    return moved.length === 1
  }
  const usedCodes = orm
    .delete(recoveryCode)
    .where(and(eq(recoveryCode.accountId, accountId), eq(recoveryCode.hash, proof.recoveryHash)))
    .returning({ hash: recoveryCode.hash })
    .all()
  return usedCodes.length === 1
}

function insertCodes(orm: Orm, accountId: string, hashes: string[]): void {
  for (const hash of hashes) orm.insert(recoveryCode).values({ accountId, hash }).run()
}
