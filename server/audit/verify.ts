/** Checks an audit trail against itself, its heads, its signed checkpoints and trims; changes nothing. */
import { readFacts, verifyAudit } from '../../db/open.ts'
import { readCheckpoints } from './checkpoints.ts'
import { checkpointsFileName, isSoundTrim, readSigningKey } from './signing.ts'
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
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

/**
 * The files beside the database that know the audit chains: without them a cut tail goes unnoticed, so a missing one is
 * a finding of `verify`, and whoever opens the folder records it before making it anew.
 */
const headsFileName = 'audit-heads'

/** Names of the files that must be there beside audit entries and are not. */
export function missingFiles(dataDir: string): string[] {
  const missing = (name: string) => !existsSync(join(dataDir, name))
  return [
    ...(missing(headsFileName) ? [headsFileName] : []),
    // The file is made before the key, so a key without it means that somebody removed it.
    ...(missing(checkpointsFileName) && readSigningKey(dataDir) !== null ? [checkpointsFileName] : []),
  ]
}

/** The same before a store is opened, which makes them anew; empty for a folder without audit entries. */
export async function missingEvidence(dataDir: string): Promise<string[]> {
  const path = join(dataDir, 'sightglass.db')
  const missing = existsSync(path) && statSync(path).size > 0 ? missingFiles(dataDir) : []
  if (missing.length === 0) return []
  // A database that cannot be read is refused by the opening itself.
  const facts = await readFacts(dataDir).catch(() => null)
  return Object.keys(facts?.auditHeads ?? {}).length === 0 ? [] : missing
}

/** The chains as they are now become the evidence; the entry says from when on. */
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
    await store.audit.append(auditEntry({ orgId: 'org_system', actor: 'system' }, act, now))
  }
}
