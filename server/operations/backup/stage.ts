/** The steps of a restore: staging, audit entries, the swap, and finding the data moved aside. */
import { applianceOrgId } from '../../../db/contract/audit.ts'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { DatabaseFacts, Placement } from '../../../db/contract/backup.ts'
import { placeDatabase, readFacts } from '../../../db/open.ts'
import { openStore } from '../../../db/open.ts'
import type { AuditEntry, Store } from '../../../db/contract/store.ts'
import { auditEntry } from '../../audit/entry.ts'
import { isoTime, type Clock } from '../../clock.ts'

const asidePrefix = 'replaced-'

/** Opens the staged database once: migrates it and appends the restore to its audit log. */
export async function recordIn(
  staged: string,
  clock: Clock,
  tell: (store: Store) => Promise<{ target: string; metadata: AuditEntry['metadata'] }>,
): Promise<void> {
  const now = clock.now()
  const store = await openStore({ folder: staged, now })
  try {
    const { target, metadata } = await tell(store)
    const who = { orgId: applianceOrgId, actor: 'cli' }
    await store.audit.append(auditEntry(who, { action: 'appliance.restored', target, metadata }, now))
  } finally {
    await store.close()
  }
}

export async function pauseEndpoints(store: Store, clock: Clock): Promise<number> {
  const endpoints = await store.webhooks.activeEndpoints()
  for (const { id, orgId, url } of endpoints) {
    const now = clock.now()
    const metadata = { url, reason: 'the key file of its secret was not restored' }
    const act = { action: 'webhook_endpoint.paused', target: id, metadata }
    const audit = auditEntry({ orgId, actor: 'cli' }, act, now)
    await store.webhooks.pauseEndpoint({ orgId, endpointId: id, now, audit })
  }
  return endpoints.length
}

export async function place(
  kind: Placement['kind'],
  { dataDir, clock }: { dataDir: string; clock: Clock },
  staged: string,
  keys: readonly string[],
): Promise<string | null> {
  const aside = freeAside(dataDir, clock)
  const { movedAside } = await placeDatabase({
    folder: dataDir,
    staged,
    aside,
    // Checkpoints describe the replaced chains; beside the restored chains they would look like tampering.
    files: ['audit-checkpoints', ...keys],
    holder: process.pid,
    kind,
  })
  return movedAside.length === 0 ? null : join(dataDir, aside)
}

export function asideName(clock: Clock): string {
  return `${asidePrefix}${isoTime(clock.now()).replaceAll(':', '')}`
}

/** A name that sorts after all earlier ones, independent of the clock. */
function freeAside(dataDir: string, clock: Clock): string {
  const name = asideName(clock)
  const [newest] = asideFolders(dataDir)
  return newest === undefined || newest < name ? name : `${newest}+`
}

/** The folders that restores moved aside, newest first. */
export function asideFolders(dataDir: string): string[] {
  if (!existsSync(dataDir)) return []
  return readdirSync(dataDir)
    .filter((name) => name.startsWith(asidePrefix) && existsSync(join(dataDir, name, 'sightglass.db')))
    .sort()
    .reverse()
}

export function newestAside(dataDir: string): string | null {
  return asideFolders(dataDir)[0] ?? null
}

/** The contents of the folder, as far as they can be read: corruption may be the reason for the restore. */
export async function factsOf(dataDir: string): Promise<DatabaseFacts | null> {
  return readFacts(dataDir).catch(() => null)
}

export function headsJson(facts: DatabaseFacts | null): AuditEntry['metadata'][string] {
  if (facts === null) return null
  return Object.fromEntries(
    Object.entries(facts.auditHeads).map(([orgId, { count, hash }]) => [orgId, { count, hash }]),
  )
}
