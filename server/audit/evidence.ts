/**
 * The files beside the database that record the audit chains: `audit-heads`, `audit-checkpoints` and
 * `audit-signing.key`. A start creates missing ones anew, but first records the loss in the audit trail. `verify` and
 * `doctor` then report it until an operator accepts it with `sightglass accept-loss`.
 */
import { existsSync, mkdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { applianceOrgId, evidenceAccepted, evidenceMissing } from '../../db/contract/audit.ts'
import type { AuditEvidence, EvidenceState } from '../../db/contract/audit.ts'
import type { AuditHead, AuditTrim, Store } from '../../db/contract/store.ts'
import { openDatabaseAdmin } from '../../db/open.ts'
import { makeOnce, syncFolder } from '../../db/rules/durable-files.ts'
import { isoTime } from '../clock.ts'
import { countCheckpoints } from './checkpoints.ts'
import { auditEntry } from './entry.ts'
import {
  checkpointsFileName,
  isSoundTrim,
  openSigningKey,
  readSigningKey,
  signTrim,
  signingKeyFileName,
} from './signing.ts'

type Trail = Pick<Store, 'audit'>

/** The table that nodes have in place of the file. */
const checkpointsTable = 'audit_checkpoint'

/** Of the store's own evidence, before the store is opened, which would create it. */
export async function missingBeforeOpening(dataDir: string): Promise<string[]> {
  const admin = openDatabaseAdmin(dataDir)
  if (!(await admin.hasData())) return []
  if ((await admin.missingEvidence()).length === 0 && (await admin.missingEvidence(2)).length === 0) return []
  // Opening the store reports a database that cannot be read.
  const facts = await admin.facts().catch(() => null)
  if (facts === null) return []
  const entries = entriesOf(facts.auditHeads)
  return entries === 0 && facts.orgs === 0 ? [] : await admin.missingEvidence(entries)
}

function entriesOf(heads: { [orgId: string]: AuditHead }): number {
  return Object.values(heads).reduce((sum, { count }) => sum + count, 0)
}

/** The names of required files that are missing, for a database with audit entries or organizations. */
export async function missingFiles(
  dataDir: string,
  location: string,
  { recorded }: EvidenceState,
  heads: { [orgId: string]: AuditHead },
): Promise<string[]> {
  const ofEngine = await openDatabaseAdmin(location).missingEvidence(entriesOf(heads))
  return location === dataDir ? [...ofEngine, ...missingKeyFiles(dataDir, recorded)] : ofEngine
}

/** The file of checkpoints is created before the key, so a key without the file means that somebody deleted it. */
function missingKeyFiles(dataDir: string, recorded: AuditEvidence | null): string[] {
  const hasKey = existsSync(join(dataDir, signingKeyFileName))
  const hadKey = recorded !== null && recorded.signingKey !== null
  const missing: string[] = []
  if (!existsSync(join(dataDir, checkpointsFileName)) && (hasKey || hadKey)) missing.push(checkpointsFileName)
  if (!hasKey && hadKey) missing.push(signingKeyFileName)
  return missing
}

/** Fewer checkpoints than were written: somebody emptied or shortened the file or the table. Null: all are there. */
export function lostCheckpoints(
  dataDir: string,
  { recorded, stored }: EvidenceState,
): { written: number; present: number } | null {
  const present = countCheckpoints(dataDir) + stored
  const written = recorded?.checkpoints ?? 0
  return present < written ? { written, present } : null
}

/**
 * Records lost evidence of a folder in the audit trail, creates it anew and notes what there is now. `missing`: of the
 * store's own evidence, as it was before the store was opened.
 */
export async function renewEvidence(
  { audit }: Trail,
  dataDir: string,
  missing: string[],
  now: number,
): Promise<void> {
  const state = await audit.evidence()
  const lost = new Set([...missing, ...missingKeyFiles(dataDir, state.recorded)])
  if (lostCheckpoints(dataDir, state) !== null) lost.add(checkpointsFileName)
  await recordLosses({ audit }, [...lost], state.recorded, now)

  const { publicKey } = openSigningKey(dataDir)
  if (!existsSync(join(dataDir, checkpointsFileName))) makeOnce(join(dataDir, checkpointsFileName), '')
  const checkpoints = countCheckpoints(dataDir) + state.stored
  const isNoted = state.recorded?.signingKey === publicKey && state.recorded.checkpoints === checkpoints
  if (!isNoted) await audit.recordEvidence({ signingKey: publicKey, checkpoints })
}

/** The same for the table of a database that nodes share. */
export async function renewSharedEvidence({ audit }: Trail, now: number): Promise<void> {
  const { recorded, stored } = await audit.evidence()
  if (recorded === null || stored >= recorded.checkpoints) return
  await recordLosses({ audit }, [checkpointsTable], recorded, now)
  await audit.recordEvidence({ ...recorded, checkpoints: stored })
}

/** With the current heads as the new evidence, and the key whose signatures can no longer be made. */
async function recordLosses(
  { audit }: Trail,
  files: string[],
  recorded: AuditEvidence | null,
  now: number,
): Promise<void> {
  for (const file of files) {
    const heads = Object.entries(await audit.heads()).map(([orgId, { count, hash }]) => [
      orgId,
      { count, hash },
    ])
    const lostKey = file === signingKeyFileName ? { signingKey: recorded?.signingKey ?? null } : {}
    const metadata = { heads: Object.fromEntries(heads), ...lostKey }
    const act = { action: evidenceMissing, target: file, metadata }
    await audit.append(auditEntry({ orgId: applianceOrgId, actor: 'system' }, act, now))
  }
}

/** Names of lost evidence that nobody has accepted, each once. */
export function openLosses({ losses }: Pick<EvidenceState, 'losses'>): string[] {
  return [...new Set(losses.filter(({ acceptedAt }) => acceptedAt === null).map(({ file }) => file))]
}

export async function hasOpenLosses({ audit }: Trail): Promise<boolean> {
  return openLosses(await audit.evidence()).length > 0
}

/** Records that an operator knows of the losses. Afterwards `verify` names them, and counts them as no fault. */
export async function acceptLosses(
  store: Trail,
  { dataDir, files, actor }: { dataDir: string; files: string[]; actor: string },
  now: number,
): Promise<void> {
  if (files.includes(signingKeyFileName)) await replaceSignatures(store, dataDir, now)
  for (const file of files) {
    const act = { action: evidenceAccepted, target: file }
    await store.audit.append(auditEntry({ orgId: applianceOrgId, actor }, act, now))
  }
}

/**
 * Nobody can sign with a lost key again. The new one signs the trims that the lost one had signed, and its checkpoints
 * are set aside, because `verify` could not tell them from those of a stranger.
 */
async function replaceSignatures({ audit }: Trail, dataDir: string, now: number): Promise<void> {
  const lostKeys = await lostKeysIn({ audit })
  const key = openSigningKey(dataDir)
  const isReplaced = (trim: AuditTrim): boolean => lostKeys.includes(trim.key) && isSoundTrim(trim)
  for (const { orgId, count, hash, key: lostKey } of Object.values(await audit.trims()).filter(isReplaced)) {
    const metadata = { through: count, hash, lostKey }
    const act = { action: 'audit.trim_resigned', target: orgId, metadata }
    const trim = signTrim(key, orgId, { count, hash }, now)
    await audit.trim({ trim, audit: auditEntry({ orgId, actor: 'system' }, act, now) })
  }
  setCheckpointsAside(dataDir, now)
  await audit.recordEvidence({ signingKey: key.publicKey, checkpoints: (await audit.evidence()).stored })
}

async function lostKeysIn({ audit }: Trail): Promise<string[]> {
  const filter = { actions: [evidenceMissing], targets: [signingKeyFileName] }
  const keys: string[] = []
  let beforeSeq: number | null = null
  do {
    const page = await audit.list({ orgId: applianceOrgId, filter, limit: 100, beforeSeq })
    for (const { metadata } of page.entries)
      if (typeof metadata['signingKey'] === 'string') keys.push(metadata['signingKey'])
    beforeSeq = page.next
  } while (beforeSeq !== null)
  return keys
}

function setCheckpointsAside(dataDir: string, now: number): void {
  const aside = join(dataDir, `set-aside-${isoTime(now).replaceAll(':', '')}`)
  mkdirSync(aside, { mode: 0o700, recursive: true })
  renameSync(join(dataDir, checkpointsFileName), join(aside, checkpointsFileName))
  syncFolder(aside)
  makeOnce(join(dataDir, checkpointsFileName), '')
}
