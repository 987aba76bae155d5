/** Opens the data folder for the server or a command; an empty folder gets the organization `default`. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { StoreError } from '../../db/contract/errors.ts'
import { openReadStore, openStore } from '../../db/open.ts'
import type { Org, Store } from '../../db/contract/store.ts'
import { missingEvidence, recordMissing } from '../audit/verify.ts'
import { backUpBeforeUpgrade, type UpgradeBackup } from '../operations/backup/create.ts'
import type { Clock } from '../clock.ts'
import { newId } from '../ids.ts'
import { AppError } from '../errors.ts'
import { keyFileName, openSecretBox, readKeyFile } from '../system/encryption.ts'
import type { KeyRing } from '../system/key-ring.ts'
import { applianceOrgId } from '../../db/contract/audit.ts'

interface FolderOptions {
  /** Null: data of an older schema is refused. Otherwise it is migrated after a backup. */
  backup?: UpgradeBackup | null
  acceptLoss?: boolean
  /** Null: the keys are files of the data folder. */
  keyRing?: KeyRing | null
}

export async function openDataFolder(
  dataDir: string,
  clock: Clock,
  { backup = null, acceptLoss = false, keyRing = null }: FolderOptions = {},
): Promise<Store> {
  const now = clock.now()
  const org: Org = { id: newId('org'), slug: 'default', name: 'Default', createdAtMs: now }
  const audit = {
    id: newId('aud'),
    orgId: applianceOrgId,
    actor: 'system',
    action: 'org.created',
    target: org.id,
    metadata: { name: org.name, slug: org.slug },
    occurredAtMs: now,
  }
  const opening = { folder: dataDir, now, bootstrap: { org, audit }, acceptLoss }
  const missing = await missingEvidence(dataDir)
  const store = await openStore({ ...opening, mayMigrate: false }).catch(async (error: unknown) => {
    if (!(error instanceof StoreError) || error.kind !== 'older_schema') throw error
    await backUpBeforeUpgrade(dataDir, clock, backup, keyRing)
    return openStore(opening)
  })
  try {
    if (keyRing !== null) requireWholeRing(dataDir, keyRing)
    else if (!acceptLoss) await requireKeyFile(dataDir, store)
    else openSecretBox(dataDir)
    await recordMissing(store, missing, now)
    return store
  } catch (error) {
    await store.close()
    throw error
  }
}

/** Throws when a lost key would be replaced, because a new one silently makes every encrypted secret useless. */
async function requireKeyFile(dataDir: string, store: Store): Promise<void> {
  if (existsSync(join(dataDir, keyFileName))) return
  const count = await store.encryptedSecrets()
  if (count === 0) return
  const message = `the key file ${keyFileName} is missing, and the database holds secrets encrypted under it (${count})`
  throw new StoreError('incomplete', message)
}

/** Throws when the folder has a key that the ring lacks: secrets encrypted with it would be useless. */
function requireWholeRing(dataDir: string, { encryption }: KeyRing): void {
  const own = readKeyFile(join(dataDir, keyFileName)) ?? []
  if (own.every((key) => encryption.some((each) => each.equals(key)))) return
  throw new AppError('conflict', `The key ring lacks a key of ${keyFileName} in ${dataDir}.`, {
    hint: `append the lines of ${keyFileName} to the key ring`,
  })
}

/** For commands that only read: changes nothing and takes no lock. Data of an older schema is an error with a hint. */
export async function openToRead(dataDir: string, clock: Clock): Promise<Store> {
  try {
    return await openReadStore(dataDir)
  } catch (error) {
    if (error instanceof StoreError && error.kind === 'older_schema')
      await backUpBeforeUpgrade(dataDir, clock, null)
    throw error
  }
}
