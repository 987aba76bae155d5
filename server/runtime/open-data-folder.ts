/** Opens the data folder for the server or a command; an empty folder gets the organization `default`. */
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { StoreError } from '../../db/contract/errors.ts'
import { databaseFiles, openDatabaseAdmin, openReadStore, openStore } from '../../db/open.ts'
import type { Org, SharedDatabase, Store } from '../../db/contract/store.ts'
import { missingBeforeOpening, renewEvidence, renewSharedEvidence } from '../audit/evidence.ts'
import { backUpBeforeUpgrade, type UpgradeBackup } from '../operations/backup/create.ts'
import type { Clock } from '../clock.ts'
import { newId } from '../ids.ts'
import { AppError } from '../errors.ts'
import { isOpenedBy, keyFileName, openSecretBox, readKeyFile, secretBox } from '../system/encryption.ts'
import { keyIdOf, type KeyRing } from '../system/key-ring.ts'
import type { UpgradeWait } from './upgrade-wait.ts'
import { applianceOrgId } from '../../db/contract/audit.ts'

interface ServerFolder extends Required<Pick<FolderOptions, 'backup' | 'keyRing' | 'shared'>> {
  dataDir: string
}

/**
 * The folder belongs to this process alone, also when the database is elsewhere. `close` unlocks it. A shared database
 * is migrated, and until that succeeds `wait` decides after each failure whether to try again.
 */
export async function openServerStore(
  { dataDir, backup, keyRing, shared }: ServerFolder,
  clock: Clock,
  wait: Pick<UpgradeWait, 'afterFailure' | 'end'>,
): Promise<Store> {
  if (shared === null) return openDataFolder(dataDir, clock, { backup, keyRing })
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  const release = databaseFiles.hold(dataDir)
  try {
    for (;;) {
      try {
        const store = await openDataFolder(dataDir, clock, { keyRing, shared, upgrades: true })
        return { ...store, close: () => store.close().finally(release) }
      } catch (error) {
        await wait.afterFailure(error)
      }
    }
  } catch (error) {
    release()
    throw error
  } finally {
    await wait.end()
  }
}

interface FolderOptions {
  /** Null: data of an older schema is refused. Otherwise it is migrated after a backup. */
  backup?: UpgradeBackup | null
  acceptLoss?: boolean
  /** Null: the keys are files of the data folder. */
  keyRing?: KeyRing | null
  /** Null: the database is in the data folder. */
  shared?: SharedDatabase | null
  /** Whether to migrate a shared database. */
  upgrades?: boolean
  /** False: a folder or a database without data is refused. */
  mayCreate?: boolean
}

export async function openDataFolder(
  dataDir: string,
  clock: Clock,
  options: FolderOptions = {},
): Promise<Store> {
  const { backup = null, acceptLoss = false, keyRing = null, shared = null } = options
  const { upgrades = false, mayCreate = true } = options
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
  const opening = { folder: dataDir, now, bootstrap: { org, audit }, acceptLoss, shared }
  if (shared !== null) {
    await requireNoData(dataDir)
    if (keyRing !== null) requireWholeRing(dataDir, keyRing)
    if (!upgrades) await requireCurrent(shared, mayCreate)
    const store = await openStore(opening)
    if (keyRing !== null) await requireSameRing(store, keyRing, acceptLoss).catch(closing(store))
    if (upgrades || acceptLoss) await renewSharedEvidence(store, now).catch(closing(store))
    return store
  }
  if (!mayCreate) await requireData(dataDir)
  const missing = await missingBeforeOpening(dataDir)
  const store = await openStore({ ...opening, mayMigrate: false }).catch(async (error: unknown) => {
    if (!(error instanceof StoreError) || error.kind !== 'older_schema') throw error
    await backUpBeforeUpgrade(dataDir, clock, backup, keyRing)
    return openStore(opening)
  })
  try {
    if (keyRing !== null) {
      requireWholeRing(dataDir, keyRing)
      await requireSameRing(store, keyRing, acceptLoss)
    } else if (!acceptLoss) await requireKeyFile(dataDir, store)
    else openSecretBox(dataDir)
    await renewEvidence(store, dataDir, missing, now)
    return store
  } catch (error) {
    await store.close()
    throw error
  }
}

async function requireNoData(dataDir: string): Promise<void> {
  if (!(await openDatabaseAdmin(dataDir).hasData())) return
  throw new AppError('conflict', `${dataDir} has a database of its own, which --database would ignore.`, {
    hint: 'set another --data-dir, or unset --database, SIGHTGLASS_DATABASE and DATABASE_URL',
  })
}

/** Accepts a folder that lost its database: opening it for writing says what is lost and how to continue. */
export async function requireData(dataDir: string): Promise<void> {
  const admin = openDatabaseAdmin(dataDir)
  if ((await admin.hasData()) || (await admin.missingEvidence()).length === 0) return
  throw new AppError('not_found', `There is no data in ${dataDir}.`, {
    hint: 'set the folder with --data-dir',
  })
}

/** Commands do not upgrade a database that nodes use and of which this appliance makes no backup. */
async function requireCurrent({ url }: SharedDatabase, mayCreate: boolean): Promise<void> {
  const admin = openDatabaseAdmin(url)
  const { version, newest, pending } = await admin.schema()
  if (version === 0 && !mayCreate)
    throw new AppError('not_found', 'There is no data in the database.', {
      hint: 'check --database, or start the server, which creates it',
    })
  if (version === 0 || pending.length === 0) return
  const hint = admin.backups.by === 'tools' ? `${admin.backups.backUp}; ` : ''
  throw new AppError('conflict', `The data has schema ${version}; this release requires ${newest}.`, {
    hint: `${hint}start a node of this release, or run sightglass migrate up`,
  })
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
  const folderKeys = readKeyFile(join(dataDir, keyFileName)) ?? []
  if (folderKeys.every((key) => encryption.some((ringKey) => ringKey.equals(key)))) return
  throw new AppError('conflict', `The key ring lacks a key of ${keyFileName} in ${dataDir}.`, {
    hint: `append the lines of ${keyFileName} to the key ring`,
  })
}

const checkPurpose = 'key check'
const checkText = 'sightglass'

/**
 * Throws when the database was last opened with a key that the ring lacks, before anything is encrypted with another
 * one. The newest key of the ring becomes the one to have.
 */
async function requireSameRing(store: Store, { encryption }: KeyRing, acceptLoss: boolean): Promise<void> {
  const box = secretBox(encryption)
  const ciphertext = box.encrypt(checkPurpose, checkText)
  const stored = await store.keyCheck.agree(ciphertext)
  const [, usedKeyId = ''] = stored.split('.')
  const isNewest = encryption[0] !== undefined && keyIdOf(encryption[0]) === usedKeyId
  if (!isOpenedBy(box, checkPurpose, stored) && !acceptLoss) {
    const message =
      `the key ring (--key-file or SIGHTGLASS_KEY_RING) lacks the key ${usedKeyId}, with which this database was ` +
      'last opened: use the key ring of the other nodes, or append the old key to this one'
    throw new StoreError('incomplete', message)
  }
  if (!isNewest) await store.keyCheck.replace(ciphertext)
}

function closing(store: Store): (error: unknown) => Promise<never> {
  return async (error) => {
    await store.close()
    throw error
  }
}

/** For commands that only read: changes nothing and takes no lock. Data of an older schema is an error with a hint. */
export async function openToRead(
  dataDir: string,
  clock: Clock,
  shared: SharedDatabase | null = null,
): Promise<Store> {
  if (shared === null) await requireData(dataDir)
  try {
    return await openReadStore(dataDir, shared)
  } catch (error) {
    if (error instanceof StoreError && error.kind === 'older_schema')
      await requireUpgraded(dataDir, clock, shared)
    throw error
  }
}

/** Throws, with a hint, for data of an older schema. */
export async function requireUpgraded(
  dataDir: string,
  clock: Clock,
  shared: SharedDatabase | null,
): Promise<void> {
  await (shared === null ? backUpBeforeUpgrade(dataDir, clock, null) : requireCurrent(shared, false))
}
