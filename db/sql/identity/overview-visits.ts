/** When each member last opened Overview, and what it reported: one small row, in which all their devices meet. */
import type { AccountStore, OverviewLook, OverviewVisit } from '../../contract/identity.ts'
import type { Database } from '../database.ts'
import type { ReadContext, WriteContext } from '../contexts.ts'

interface Who {
  orgId: string
  accountId: string
}

export function overviewVisit({ db }: ReadContext, membershipKey: Who): OverviewVisit | null {
  return readVisit(db, membershipKey)
}

function readVisit(db: Database, { orgId, accountId }: Who): OverviewVisit | null {
  const row = db
    .query<{ sinceMs: number; atMs: number; hidden: string; shown: string }, [string, string]>(
      `SELECT since_ms AS sinceMs, at_ms AS atMs, hidden, shown FROM overview_visit
       WHERE org_id = ? AND account_id = ?`,
    )
    .get(orgId, accountId)
  if (row === null) return null
  const names = (text: string) => JSON.parse(text) as string[]
  return { ...row, hidden: names(row.hidden), shown: names(row.shown) }
}

/** When members last opened Overview, the newest of each organization since `afterMs`, newest first. */
export function recentVisits(
  { db }: ReadContext,
  { afterMs, limit }: Parameters<AccountStore['recentVisits']>[0],
): OverviewLook[] {
  return db
    .query<OverviewLook, [number, number]>(
      `SELECT org_id AS orgId, MAX(since_ms) AS sinceMs, MAX(at_ms) AS atMs FROM overview_visit
       WHERE at_ms > ? GROUP BY org_id ORDER BY MAX(at_ms) DESC, org_id LIMIT ?`,
    )
    .all(afterMs, limit)
}

/** Not a change that the audit log records: like the last use of a sign-in, it only says that somebody read. */
export function noteOverviewVisit(
  { db }: WriteContext,
  { visit, ...membershipKey }: Parameters<AccountStore['noteOverviewVisit']>[0],
): OverviewVisit {
  const storedVisit = readVisit(db, membershipKey)
  const merged = storedVisit === null ? visit : mergedVisit(storedVisit, visit)
  const { sinceMs, atMs, hidden, shown } = merged
  db.query(
    `INSERT INTO overview_visit (org_id, account_id, since_ms, at_ms, hidden, shown)
     SELECT org_id, account_id, ?3, ?4, ?5, ?6 FROM membership WHERE org_id = ?1 AND account_id = ?2
     ON CONFLICT (org_id, account_id) DO UPDATE SET since_ms = excluded.since_ms, at_ms = excluded.at_ms,
       hidden = excluded.hidden, shown = excluded.shown`,
  ).run(
    membershipKey.orgId,
    membershipKey.accountId,
    sinceMs,
    atMs,
    JSON.stringify(hidden),
    JSON.stringify(shown),
  )
  return merged
}

/** Those that were reported first are forgotten first. */
const namesMax = 100

/**
 * The newer report counts. A page that is still open on another device must not bring back what was marked as seen.
 */
function mergedVisit(storedVisit: OverviewVisit, newVisit: OverviewVisit): OverviewVisit {
  const atMs = Math.max(storedVisit.atMs, newVisit.atMs)
  if (newVisit.sinceMs < storedVisit.sinceMs) return { ...storedVisit, atMs }
  if (newVisit.sinceMs > storedVisit.sinceMs) return { ...newVisit, atMs }
  const union = (a: string[], b: string[]) => [...new Set([...a, ...b])].slice(-namesMax)
  return {
    sinceMs: storedVisit.sinceMs,
    atMs,
    hidden: union(storedVisit.hidden, newVisit.hidden),
    shown: union(storedVisit.shown, newVisit.shown),
  }
}

export function forgetVisit(db: Database, { orgId, accountId }: Who): void {
  db.query('DELETE FROM overview_visit WHERE org_id = ? AND account_id = ?').run(orgId, accountId)
}
