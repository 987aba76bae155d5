/** Checks an audit trail against itself, its heads, its signed checkpoints and trims; changes nothing. */
import { verifyAudit } from '../../db/open.ts'
import type { AuditFault, AuditTrim, AuditVerdict } from '../../db/contract/store.ts'
import { readCheckpoints } from './checkpoints.ts'
import { missingFiles } from './evidence.ts'
import { isSoundTrim } from './signed-head.ts'
import { readSigningKey } from './signing-key.ts'

export interface TrailVerdict {
  ok: boolean
  chains: AuditVerdict['chains']
  faults: AuditFault[]
  checkpoints: {
    sound: number
    newest: string | null
    unsound: { line: number; message: string }[]
    torn: { line: number; bytes: number } | null // no fault: a crash cut the last line off
  }
  missing: string[] // files that must be there beside audit entries
  renewed: AuditVerdict['renewed']
}

/** The checkpoints are read first: a server at work may add to chains and file meanwhile, never to the file alone. */
export async function verifyTrail(dataDir: string): Promise<TrailVerdict> {
  const { anchors, newest, unsound, torn } = readCheckpoints(dataDir)
  const { chains, faults: found, renewed } = await verifyAudit(dataDir, anchors)
  const ours = readSigningKey(dataDir)?.publicKey ?? null
  const forged = chains.flatMap(({ trim }) => (trim === null ? [] : trimFault(trim, ours)))
  // Of each chain the first fault in the order of its entries: nothing lies before a trim.
  const others = found.filter(({ orgId }) => !forged.some((fault) => fault.orgId === orgId))
  const faults = [...forged, ...others].sort((a, b) => (a.orgId < b.orgId ? -1 : 1))
  const missing = chains.length === 0 ? [] : missingFiles(dataDir)
  const ok = faults.length === 0 && unsound.length === 0 && missing.length === 0
  const checkpoints = { sound: anchors.length, newest, unsound, torn }
  return { ok, chains, faults, checkpoints, missing, renewed }
}

function trimFault(trim: AuditTrim, ours: string | null): AuditFault[] {
  if (trim.key === ours && isSoundTrim(trim)) return []
  const { orgId, count: position } = trim
  const message = `entries up to here were taken out by a trim that this appliance's key did not sign`
  return [{ orgId, position, entryId: null, kind: 'forged', message }]
}
