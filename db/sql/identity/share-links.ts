/** Share links: a row per link, which stays for a while after its end. */
import { StoreError } from '../../contract/errors.ts'
import type { Role } from '../../contract/identity.ts'
import type { ShareLink, ShareLinkStore } from '../../contract/share-links.ts'
import { appendAudit } from '../audit/append.ts'
import type { Database } from '../database.ts'
import type { ReadContext, WriteContext } from '../contexts.ts'

type Command<V extends keyof ShareLinkStore> = Parameters<ShareLinkStore[V]>[0]

export const shareLinkWriteVerbs = {
  'shareLinks.create': create,
  'shareLinks.revoke': revoke,
  'shareLinks.opened': noteOpened,
}

export const shareLinkReadVerbs = { 'shareLinks.list': list, 'shareLinks.find': find }

const columns = `id, org_id AS orgId, token_hash AS tokenHash, name, content, created_by AS createdBy,
  created_at_ms AS createdAtMs, expires_at_ms AS expiresAtMs, revoked_at_ms AS revokedAtMs, opened,
  last_opened_at_ms AS lastOpenedAtMs`

function create({ db }: WriteContext, command: Command<'create'>): void {
  const { link, roles, linksMax, endedBeforeMs, audit } = command
  const creator = db
    .query<{ role: Role }, [string, string]>(
      'SELECT role FROM membership WHERE org_id = ? AND account_id = ?',
    )
    .get(link.orgId, link.createdBy)
  if (creator === null || !roles.includes(creator.role))
    throw new StoreError('not_found', `${link.createdBy} may not share pages of ${link.orgId}`)
  db.query('DELETE FROM share_link WHERE org_id = ? AND (expires_at_ms < ? OR revoked_at_ms < ?)').run(
    link.orgId,
    endedBeforeMs,
    endedBeforeMs,
  )
  const countRow = db
    .query<{ links: number }, [string]>('SELECT count(*) AS links FROM share_link WHERE org_id = ?')
    .get(link.orgId)
  if ((countRow?.links ?? 0) >= linksMax)
    throw new StoreError('conflict', `${link.orgId} has ${linksMax} share links, the maximum`)
  db.query(
    `INSERT INTO share_link (id, org_id, token_hash, name, content, created_by, created_at_ms, expires_at_ms)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  ).run(
    link.id,
    link.orgId,
    link.tokenHash,
    link.name,
    link.content,
    link.createdBy,
    link.createdAtMs,
    link.expiresAtMs,
  )
  appendAudit(db, audit)
}

function list({ db }: ReadContext, orgId: string): ShareLink[] {
  return db
    .query<ShareLink, [string]>(
      `SELECT ${columns} FROM share_link WHERE org_id = ? ORDER BY created_at_ms DESC, id`,
    )
    .all(orgId)
}

function find({ db }: ReadContext, tokenHash: string): ShareLink | null {
  return db
    .query<ShareLink, [string]>(`SELECT ${columns} FROM share_link WHERE token_hash = ?`)
    .get(tokenHash)
}

function revoke({ db }: WriteContext, { orgId, id, now, audit }: Command<'revoke'>): { opened: number } {
  const link = db
    .query<{ opened: number; revokedAtMs: number | null }, [string, string]>(
      'SELECT opened, revoked_at_ms AS revokedAtMs FROM share_link WHERE org_id = ? AND id = ?',
    )
    .get(orgId, id)
  if (link === null) throw new StoreError('not_found', `${id} is not a share link of ${orgId}`)
  if (link.revokedAtMs !== null) throw new StoreError('conflict', `${id} is revoked already`)
  db.query('UPDATE share_link SET revoked_at_ms = ? WHERE id = ?').run(now, id)
  const { metadata } = audit
  appendAudit(db, { ...audit, metadata: { ...(metadata as object), opened: link.opened } })
  return { opened: link.opened }
}

/** Ends the open links of a member who may not share any more. Returns how many. */
export function endLinksOf(db: Database, orgId: string, accountId: string, now: number): number {
  return db
    .query(
      `UPDATE share_link SET revoked_at_ms = ?1
       WHERE org_id = ?2 AND created_by = ?3 AND revoked_at_ms IS NULL AND expires_at_ms > ?1`,
    )
    .run(now, orgId, accountId).changes
}

const auditEveryMs = 3_600_000

function noteOpened(
  { db }: WriteContext,
  { orgId, id, count, now, audit }: Command<'opened'>,
): { isAudited: boolean } {
  const link = db
    .query<{ opened: number; auditedOpened: number; auditedAtMs: number | null }, [string, string]>(
      `SELECT opened, audited_opened AS auditedOpened, audited_at_ms AS auditedAtMs
       FROM share_link WHERE org_id = ? AND id = ?`,
    )
    .get(orgId, id)
  if (link === null) return { isAudited: false }
  const opened = link.opened + count
  const isAudited = link.auditedAtMs === null || now - link.auditedAtMs >= auditEveryMs
  db.query(
    `UPDATE share_link SET opened = ?, last_opened_at_ms = ?, audited_opened = ?, audited_at_ms = ?
     WHERE id = ?`,
  ).run(opened, now, isAudited ? opened : link.auditedOpened, isAudited ? now : link.auditedAtMs, id)
  if (isAudited)
    appendAudit(db, { ...audit, metadata: { opened: opened - link.auditedOpened, inAll: opened } })
  return { isAudited }
}
