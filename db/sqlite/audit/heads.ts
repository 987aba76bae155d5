/**
 * The file `audit-heads` beside the database: the head of every audit chain, outside the tables it guards.
 * Whoever cuts the newest entries off the database leaves a file that knows better.
 */
import { existsSync, readFileSync } from 'node:fs'
import { writeWhole } from '../../rules/durable-files.ts'
import { StoreError } from '../../contract/errors.ts'
import { auditTrim } from './trim.ts'
import { positionText } from '../../rules/audit-hash.ts'
import { auditHeads, newestAuditRow } from './append.ts'
import type { AuditHead } from '../../contract/store.ts'
import type { Database } from 'bun:sqlite'

const fileName = 'audit-heads'
const format = 'sightglass-audit-heads-1'

export function auditHeadsPath(folder: string): string {
  return `${folder}/${fileName}`
}

/** Replaces the file whole: after a power cut either the old heads or the new ones are there. */
export function writeAuditHeads(folder: string, heads: { [orgId: string]: AuditHead }): void {
  writeWhole(auditHeadsPath(folder), `${JSON.stringify({ format, heads }, null, 1)}\n`)
}

/** The heads last written, or null when no entry was ever committed in this folder. */
export function readAuditHeads(folder: string): { [orgId: string]: AuditHead } | null {
  const path = auditHeadsPath(folder)
  if (!existsSync(path)) return null
  try {
    const parsed = JSON.parse(readFileSync(path, 'utf8')) as { format?: unknown; heads?: unknown }
    if (parsed.format === format && typeof parsed.heads === 'object' && parsed.heads !== null) {
      return parsed.heads as { [orgId: string]: AuditHead }
    }
  } catch {
    // Falls through: unreadable in any way is the same finding.
  }
  throw new StoreError('corrupt', 'the file audit-heads is damaged')
}

/**
 * Carries the heads of the audit chains from the tables into the file `audit-heads` after each commit.
 * A head is only replaced by one that grew from it: after tampering the file goes on knowing what was there.
 */
type Heads = { [orgId: string]: AuditHead }

interface HeadsKeeper {
  /** Call after every commit that may have appended an entry. Never throws: the entry itself is committed already. */
  follow(): void
}

export function headsKeeper(db: Database, folder: string): HeadsKeeper {
  let kept: Heads = readAuditHeads(folder) ?? makeEmpty(db, folder)
  let followedRow = -1

  return {
    follow() {
      try {
        const newestRow = newestAuditRow(db)
        if (newestRow === followedRow) return
        const heads = grown(db, kept)
        if (heads !== kept) writeAuditHeads(folder, heads)
        kept = heads
        followedRow = newestRow
      } catch {
        // No room, say. The next call tries again, and `verify` accepts a file that lags behind.
      }
    },
  }
}

/** The file comes before the first entry, so that entries without it mean that somebody removed it. */
function makeEmpty(db: Database, folder: string): Heads {
  try {
    if (newestAuditRow(db) === 0) writeAuditHeads(folder, {})
  } catch {
    // No room: the first entry will need some too.
  }
  return {}
}

/** The heads with every one replaced that grew since; the same object when none did. */
function grown(db: Database, kept: Heads): Heads {
  let heads = kept
  for (const [orgId, head] of Object.entries(auditHeads(db))) {
    const before = kept[orgId] ?? null
    if (before?.hash === head.hash || !growsFrom(db, orgId, head, before)) continue
    heads = { ...heads, [orgId]: head }
  }
  return heads
}

/** Whether the head known before is still an entry of the chain. */
function growsFrom(db: Database, orgId: string, head: AuditHead, before: AuditHead | null): boolean {
  if (before === null) return true
  if (head.count < before.count) return false
  // A file that lagged behind a trim: rows to compare are gone, and `verify` asks who signed the trim.
  const trim = auditTrim(db, orgId)
  if (trim !== null && before.count <= trim.count)
    return before.count < trim.count || before.hash === trim.hash
  const row = db
    .query<{ hash: string }, [string, string]>(
      'SELECT hash FROM audit_entry WHERE orgId = ? AND position = ?',
    )
    .get(orgId, positionText(before.count))
  return row?.hash === before.hash
}
