/**
 * The file `audit-heads` beside the database: the head of every audit chain, outside the tables it guards.
 * Whoever cuts the newest entries off the database leaves a file that knows better.
 */
import { existsSync, readFileSync } from 'node:fs'
import { writeWhole } from '../../rules/durable-files.ts'
import { StoreError } from '../../contract/errors.ts'
import type { AuditHead } from '../../contract/store.ts'

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
