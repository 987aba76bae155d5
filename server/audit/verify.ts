/** Checks the audit trail of a data folder against itself, its heads and its signed checkpoints; changes nothing. */
import { verifyAudit } from '../../db/open.ts'
import type { AuditFault, AuditVerdict } from '../../db/store.ts'
import { readCheckpoints } from './checkpoints.ts'

export interface TrailVerdict {
  ok: boolean
  chains: AuditVerdict['chains']
  faults: AuditFault[]
  checkpoints: { sound: number; newest: string | null; unsound: { line: number; message: string }[] }
}

/** The checkpoints are read first: a server at work may add to chains and file meanwhile, never to the file alone. */
export async function verifyTrail(dataDir: string): Promise<TrailVerdict> {
  const { anchors, newest, unsound } = readCheckpoints(dataDir)
  const { chains, faults } = await verifyAudit(dataDir, anchors)
  const ok = faults.length === 0 && unsound.length === 0
  return { ok, chains, faults, checkpoints: { sound: anchors.length, newest, unsound } }
}
