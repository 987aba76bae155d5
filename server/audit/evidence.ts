/**
 * The files beside the database that know the audit chains: without them a cut tail goes unnoticed, so a missing one is
 * a finding of `verify`, and whoever opens the folder records it before making it anew.
 */
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { readFacts } from '../../db/open.ts'
import type { Store } from '../../db/contract/store.ts'
import { auditEntry } from './entry.ts'
import { checkpointsFileName, readSigningKey } from './signing-key.ts'

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
