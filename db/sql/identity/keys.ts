/** API keys. Only their hashes are stored. */
import { and, eq, isNull } from 'drizzle-orm'
import { StoreError } from '../../contract/errors.ts'
import type { ApiKey, KeyKind, KeyStore } from '../../contract/store.ts'
import { appendAudit } from '../audit/append.ts'
import type { ReadContext, WriteContext } from '../contexts.ts'
import { noteChange } from '../nodes/nodes.ts'
import { apiKey } from './schema.ts'

export function createKey({ db, orm }: WriteContext, command: Parameters<KeyStore['create']>[0]): void {
  orm.insert(apiKey).values(command.key).run()
  noteChange(db, 'keys')
  appendAudit(db, command.audit)
}

export function listKeys(
  { orm }: ReadContext,
  query: { orgId: string; kind?: KeyKind | undefined },
): ApiKey[] {
  const ofOrg = eq(apiKey.orgId, query.orgId)
  return orm
    .select()
    .from(apiKey)
    .where(query.kind === undefined ? ofOrg : and(ofOrg, eq(apiKey.kind, query.kind)))
    .orderBy(apiKey.createdAtMs, apiKey.id)
    .all()
}

/** Every key of every organization, for the calling thread's cache. */
export function allKeys({ orm }: ReadContext): ApiKey[] {
  return orm.select().from(apiKey).all()
}

export function revokeKey({ db, orm }: WriteContext, command: Parameters<KeyStore['revoke']>[0]): boolean {
  requireKey(orm, command)
  const revoked = orm
    .update(apiKey)
    .set({ revokedAtMs: command.now })
    .where(and(eq(apiKey.id, command.keyId), isNull(apiKey.revokedAtMs)))
    .returning({ id: apiKey.id })
    .all()
  if (revoked.length === 0) return false
  noteChange(db, 'keys')
  appendAudit(db, command.audit)
  return true
}

export function changeKey({ db, orm }: WriteContext, command: Parameters<KeyStore['change']>[0]): void {
  requireKey(orm, command)
  const changed = orm
    .update(apiKey)
    .set(command.settings)
    .where(and(eq(apiKey.id, command.keyId), isNull(apiKey.revokedAtMs)))
    .returning({ id: apiKey.id })
    .all()
  if (changed.length === 0) throw new StoreError('conflict', `the key ${command.keyId} is revoked`)
  noteChange(db, 'keys')
  appendAudit(db, command.audit)
}

export function rotateKey({ db, orm }: WriteContext, command: Parameters<KeyStore['rotate']>[0]): void {
  requireKey(orm, command)
  const old = orm.select().from(apiKey).where(eq(apiKey.id, command.keyId)).get()
  if (old === undefined || old.revokedAtMs !== null) {
    throw new StoreError('conflict', `the key ${command.keyId} is revoked`)
  }
  const expiresAtMs = Math.min(old.expiresAtMs ?? command.oldEndsAtMs, command.oldEndsAtMs)
  orm.update(apiKey).set({ expiresAtMs }).where(eq(apiKey.id, old.id)).run()
  orm.insert(apiKey).values(command.successor).run()
  noteChange(db, 'keys')
  appendAudit(db, command.audit)
}

export function markKeyExposed(
  { db, orm }: WriteContext,
  command: Parameters<KeyStore['markExposed']>[0],
): boolean {
  requireKey(orm, command)
  const marked = orm
    .update(apiKey)
    .set({ exposedAtMs: command.now })
    .where(and(eq(apiKey.id, command.keyId), isNull(apiKey.exposedAtMs)))
    .returning({ id: apiKey.id })
    .all()
  if (marked.length === 0) return false
  noteChange(db, 'keys')
  appendAudit(db, command.audit)
  return true
}

/** Uses may arrive out of order; the latest is kept. */
export function touchKeys({ db }: WriteContext, uses: Parameters<KeyStore['touch']>[0]): void {
  const statement = db.query(
    `UPDATE api_key SET last_used_at_ms = ?2, last_used_address = ?3
     WHERE id = ?1 AND (last_used_at_ms IS NULL OR last_used_at_ms <= ?2)`,
  )
  // In one order, so that nodes that note uses at once cannot wait for each other.
  const inOrder = uses.toSorted((a, b) => (a.keyId < b.keyId ? -1 : 1))
  for (const use of inOrder) statement.run(use.keyId, use.atMs, use.address)
}

function requireKey(orm: WriteContext['orm'], { orgId, keyId }: { orgId: string; keyId: string }): void {
  const keyRow = orm
    .select({ id: apiKey.id })
    .from(apiKey)
    .where(and(eq(apiKey.id, keyId), eq(apiKey.orgId, orgId)))
    .get()
  if (keyRow === undefined) throw new StoreError('not_found', `the organization has no key ${keyId}`)
}
