/**
 * The file `audit-heads` beside the database: the head of every audit chain, outside the tables that it guards. Entries
 * cut off the end of a chain in the database are still in this file.
 */
import { existsSync, readFileSync } from 'node:fs'
import { writeWhole } from '../../rules/durable-files.ts'
import { StoreError } from '../../contract/errors.ts'
import { auditTrim } from './trim.ts'
import { positionText } from '../../contract/audit.ts'
import { auditHeads, newestAuditRow } from './append.ts'
import type { AuditHead } from '../../contract/store.ts'
import type { Database } from '../database.ts'

const fileName = 'audit-heads'
const format = 'sightglass-audit-heads-1'

function auditHeadsPath(folder: string): string {
  return `${folder}/${fileName}`
}

/** Replaces the file atomically: after a power cut it has either the old heads or the new ones. */
function writeAuditHeads(folder: string, heads: { [orgId: string]: AuditHead }): void {
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
    // Falls through: every unreadable file is the same fault.
  }
  throw new StoreError('corrupt', 'the file audit-heads is damaged')
}

/**
 * Copies the heads of the audit chains from the tables to the file `audit-heads` after each commit. A head is replaced
 * only by one that extends it, so after tampering the file still has the original.
 */
type Heads = { [orgId: string]: AuditHead }

interface HeadsKeeper {
  /** Call after every commit that may have appended an entry. Never throws, because the entry is already committed. */
  follow(): void
}

export function headsKeeper(db: Database, folder: string): HeadsKeeper {
  let currentHeads: Heads = readAuditHeads(folder) ?? makeEmpty(db, folder)
  let followedRow = -1

  return {
    follow() {
      try {
        const newestRow = newestAuditRow(db)
        if (newestRow === followedRow) return
        const heads = grown(db, currentHeads)
        if (heads !== currentHeads) writeAuditHeads(folder, heads)
        currentHeads = heads
        followedRow = newestRow
      } catch {
        // For example a full disk. The next call tries again, and `verify` accepts a file that is behind.
      }
    },
  }
}

/** The file is created before the first entry, so that entries without it prove that the file was deleted. */
function makeEmpty(db: Database, folder: string): Heads {
  try {
    if (newestAuditRow(db) === 0) writeAuditHeads(folder, {})
  } catch {
    // The disk is full, so the first entry will fail too.
  }
  return {}
}

/** The heads with every extended one replaced; the same object when none changed. */
function grown(db: Database, recordedHeads: Heads): Heads {
  let heads = recordedHeads
  for (const [orgId, head] of Object.entries(auditHeads(db))) {
    const previousHead = recordedHeads[orgId] ?? null
    if (previousHead?.hash === head.hash || !growsFrom(db, orgId, head, previousHead)) continue
    heads = { ...heads, [orgId]: head }
  }
  return heads
}

/** Whether the recorded head is still an entry of the chain. */
function growsFrom(db: Database, orgId: string, head: AuditHead, previousHead: AuditHead | null): boolean {
  if (previousHead === null) return true
  if (head.count < previousHead.count) return false
  // The file was behind a trim. The rows to compare are deleted, and `verify` checks who signed the trim.
  const trim = auditTrim(db, orgId)
  if (trim !== null && previousHead.count <= trim.count)
    return previousHead.count < trim.count || previousHead.hash === trim.hash
  const row = db
    .query<{ hash: string }, [string, string]>(
      'SELECT hash FROM audit_entry WHERE orgId = ? AND position = ?',
    )
    .get(orgId, positionText(previousHead.count))
  return row?.hash === previousHead.hash
}
