/** Second factors in SQLite: an encrypted seed, the last step used, and hashes of the recovery codes. */
import { and, count, eq, lt } from 'drizzle-orm'
import { StoreError } from '../../contract/errors.ts'
import type { Proof, SecondFactor, SecondFactorStore } from '../../contract/store.ts'
import { appendAudit } from '../audit/append.ts'
import type { ReadContext, WriteContext } from '../threads/contexts.ts'
import { recoveryCode, secondFactor } from './schema.ts'

type Orm = WriteContext['orm']
type Command<K extends 'set' | 'setRecovery' | 'remove'> = Parameters<SecondFactorStore[K]>[0]

export function findSecondFactor({ orm }: ReadContext, accountId: string): SecondFactor | null {
  const found = orm.select().from(secondFactor).where(eq(secondFactor.accountId, accountId)).get()
  if (found === undefined) return null
  const left = orm
    .select({ n: count() })
    .from(recoveryCode)
    .where(eq(recoveryCode.accountId, accountId))
    .get()
  return { ...found, recoveryLeft: left?.n ?? 0 }
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
  const found = orm.select().from(secondFactor).where(eq(secondFactor.accountId, accountId)).get()
  if (found === undefined) throw new StoreError('not_found', `${accountId} has no second factor`)
  orm.delete(recoveryCode).where(eq(recoveryCode.accountId, accountId)).run()
  insertCodes(orm, accountId, recoveryHashes)
  appendAudit(db, audit)
}

export function removeSecondFactor({ db, orm }: WriteContext, { accountId, audit }: Command<'remove'>): void {
  const gone = orm.delete(secondFactor).where(eq(secondFactor.accountId, accountId)).returning().all()
  if (gone.length === 0) throw new StoreError('not_found', `${accountId} has no second factor`)
  appendAudit(db, audit)
}

/** Consumes a code for a sign-in; false when it was used before. */
export function useProof(orm: Orm, accountId: string, proof: Proof): boolean {
  if ('step' in proof) {
    const moved = orm
      .update(secondFactor)
      .set({ lastStep: proof.step })
      .where(and(eq(secondFactor.accountId, accountId), lt(secondFactor.lastStep, proof.step)))
      .returning({ id: secondFactor.accountId })
      .all()
    return moved.length === 1
  }
  const gone = orm
    .delete(recoveryCode)
    .where(and(eq(recoveryCode.accountId, accountId), eq(recoveryCode.hash, proof.recoveryHash)))
    .returning({ hash: recoveryCode.hash })
    .all()
  return gone.length === 1
}

function insertCodes(orm: Orm, accountId: string, hashes: string[]): void {
  for (const hash of hashes) orm.insert(recoveryCode).values({ accountId, hash }).run()
}
