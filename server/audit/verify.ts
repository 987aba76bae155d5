/** Verifies an audit trail against its hashes, heads, signed checkpoints and trims, without changing it. */
import { readFacts, verifyAudit } from '../../db/open.ts'
import { readCheckpoints } from './checkpoints.ts'
import { checkpointsFileName, isSoundTrim, readSigningKey } from './signing.ts'
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { applianceOrgId } from '../../db/contract/audit.ts'
import { auditEntry } from './entry.ts'
import type { AuditFault, AuditTrim, AuditVerdict, Store } from '../../db/contract/store.ts'

export interface TrailVerdict {
  ok: boolean
  chains: AuditVerdict['chains']
  faults: AuditFault[]
  checkpoints: {
    sound: number
    newest: string | null
    unsound: { line: number; message: string }[]
    torn: { line: number; bytes: number } | null // an incomplete last line after a crash; not a fault
  }
  missing: string[] // required files
  renewed: AuditVerdict['renewed']
}

/** Reads the checkpoints first: a running server may append to the chains and the file, but never to the file alone. */
export async function verifyTrail(dataDir: string): Promise<TrailVerdict> {
  const { anchors, newest, unsound, torn } = readCheckpoints(dataDir)
  const { chains, faults: found, renewed } = await verifyAudit(dataDir, anchors)
  const ours = readSigningKey(dataDir)?.publicKey ?? null
  const forged = chains.flatMap(({ trim }) => (trim === null ? [] : trimFault(trim, ours)))
  // Reports the first fault of each chain; a trim comes before all entries.
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
  const message = `the entries up to here were trimmed, but this appliance's key did not sign the trim`
  return [{ orgId, position, entryId: null, kind: 'forged', message }]
}

/**
 * The files beside the database that record the audit chains. Without them a truncated chain would not be noticed, so a
 * missing file is a fault, and the next start records it in the audit trail before it creates the file again.
 */
const headsFileName = 'audit-heads'

/** The names of required files that are missing. */
export function missingFiles(dataDir: string): string[] {
  const missing = (name: string) => !existsSync(join(dataDir, name))
  return [
    ...(missing(headsFileName) ? [headsFileName] : []),
    // The file is created before the key, so a key without the file means that somebody deleted it.
    ...(missing(checkpointsFileName) && readSigningKey(dataDir) !== null ? [checkpointsFileName] : []),
  ]
}

/** The same before the store is opened, which creates them again; empty for a folder without audit entries. */
export async function missingEvidence(dataDir: string): Promise<string[]> {
  const path = join(dataDir, 'sightglass.db')
  const missing = existsSync(path) && statSync(path).size > 0 ? missingFiles(dataDir) : []
  if (missing.length === 0) return []
  // Opening the store reports a database that cannot be read.
  const facts = await readFacts(dataDir).catch(() => null)
  return Object.keys(facts?.auditHeads ?? {}).length === 0 ? [] : missing
}

/** Records that the files were missing, with the current heads as the new evidence. */
export async function recordMissing(store: Store, files: string[], now: number): Promise<void> {
  for (const file of files) {
    const heads = Object.entries(await store.audit.heads()).map(([orgId, { count, hash }]) => [
      orgId,
      { count, hash },
    ])
    const act = {
      action: 'audit.evidence_missing',
      target: file,
      metadata: { heads: Object.fromEntries(heads) },
    }
    await store.audit.append(auditEntry({ orgId: applianceOrgId, actor: 'system' }, act, now))
  }
}
