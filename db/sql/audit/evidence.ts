/**
 * What the database knows of the evidence beside it: that there was a signing key, how many checkpoints were written,
 * and which evidence was missing. A file that is created anew after a loss cannot say so itself.
 *
 * A loss is an audit entry. It stays open until an operator's entry accepts it, and retention trims nothing behind it.
 */
import { columnsOf, type Database } from '../database.ts'
import { applianceOrgId, evidenceAccepted, evidenceMissing } from '../../contract/audit.ts'
import type { AuditEvidence, EvidenceLoss, EvidenceState } from '../../contract/audit.ts'
import type { ReadContext, WriteContext } from '../contexts.ts'

/** A row beside the one of the key ring. */
const rowName = 'audit evidence'

/** One statement, so that both numbers are of one moment. Data of an earlier schema has no such row. */
export function evidenceState({ db }: Pick<ReadContext, 'db'>): EvidenceState {
  const tables = new Set(columnsOf(db).map(({ table }) => table))
  if (!tables.has('audit_entry')) return { recorded: null, stored: 0, losses: [] }
  const losses = positionedLosses(db).map(({ loss }) => loss)
  if (!tables.has('key_check')) return { recorded: null, stored: 0, losses }
  const row = db
    .query<{ value: string | null; stored: number }, [string]>(
      `SELECT (SELECT value FROM key_check WHERE name = ?) AS value,
              (SELECT count(*) FROM audit_checkpoint) AS stored`,
    )
    .get(rowName)
  return { recorded: parseEvidence(row?.value ?? null), stored: Number(row?.stored ?? 0), losses }
}

function parseEvidence(value: string | null): AuditEvidence | null {
  return value === null ? null : (JSON.parse(value) as AuditEvidence)
}

/** Null: the next start records what it has, as after a restore. */
export function recordEvidence({ db }: Pick<WriteContext, 'db'>, evidence: AuditEvidence | null): void {
  db.query('DELETE FROM key_check WHERE name = ?').run(rowName)
  if (evidence === null) return
  db.query('INSERT INTO key_check (name, value) VALUES (?, ?)').run(rowName, JSON.stringify(evidence))
}

/** Adds to the number of checkpoints. Without a record there is nothing to add to. */
export function noteCheckpoints({ db }: Pick<WriteContext, 'db'>, count: number): void {
  const { recorded } = evidenceState({ db })
  if (recorded === null) return
  recordEvidence({ db }, { ...recorded, checkpoints: recorded.checkpoints + count })
}

/** The entry of the oldest loss that nobody has accepted, as it is stored. */
export function oldestOpenLoss(db: Database): string | null {
  return positionedLosses(db).find(({ loss }) => loss.acceptedAt === null)?.position ?? null
}

/** In the order in which they were recorded. */
function positionedLosses(db: Database): { position: string; loss: EvidenceLoss }[] {
  const entries = db
    .query<{ action: string; file: string; time: string; position: string }, [string, string, string]>(
      `SELECT action, target AS file, occurredAt AS time, position FROM audit_entry
        WHERE orgId = ? AND action IN (?, ?) ORDER BY position`,
    )
    .all(applianceOrgId, evidenceMissing, evidenceAccepted)
  const losses: { position: string; loss: EvidenceLoss }[] = []
  for (const { action, file, time, position } of entries) {
    if (action === evidenceMissing) {
      losses.push({ position, loss: { file, at: time, acceptedAt: null } })
      continue
    }
    for (const { loss } of losses) if (loss.file === file) loss.acceptedAt ??= time
  }
  return losses
}
