/**
 * Replaces the database of a data folder with a backup. Everything is prepared and verified in a staging folder first;
 * the previous data is moved aside as a whole, and `--undo` brings it back.
 */
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { databaseFiles, openDatabaseAdmin, openStore } from '../../../db/open.ts'
import { writeWhole } from '../../../db/rules/durable-files.ts'
import { readTextFile, unreadableReason } from '../../../db/rules/regular-files.ts'
import { AppError } from '../../errors.ts'
import { openFolder, removeOpenFiles } from '../../parquet/open-files.ts'
import { readApplianceId } from '../../system/appliance-id.ts'
import { keyFileName, openSecretBox } from '../../system/encryption.ts'
import type { KeyRing } from '../../system/key-ring.ts'
import { checkBackup, contentProblems, copiesOf, unpackBackup } from './check.ts'
import { keyFileNames, keyIdsIn, keyIdsOf, readManifest, type KeyFiles, type Manifest } from './manifest.ts'
import { applianceOrgId } from '../../../db/contract/audit.ts'
import { auditEntry } from '../../audit/entry.ts'
import { isoTime, type Clock } from '../../clock.ts'
import type { DatabaseAdmin } from '../../../db/contract/admin.ts'
import type { DatabaseFacts, Placement } from '../../../db/contract/operations.ts'
import type { AuditEntry, Store } from '../../../db/contract/store.ts'

const spareBytes = 32 * 1024 * 1024

interface RestoreOptions {
  dataDir: string
  path: string
  passphrase: string | null
  keyFile: string | null // a copy of the secret.key that encrypts the secrets in the backup
  /** Holds the keys of the restored data outside of its folder. */
  keyRing?: KeyRing | null
  overwrite: boolean
  /** Allows an unencrypted backup although a passphrase is configured; anyone could have created it. */
  allowPlain: boolean
  clock: Clock
}

export interface Restored {
  createdAt: string
  schema: number // of the backup, before migration
  events: number
  /** The previous data: its new folder, and its contents if they could be read. */
  replaced: { path: string; events: number | null } | null
  warnings: string[]
}

/** The plan of a restore, verified like a restore; changes nothing. */
export async function planRestore(options: Omit<RestoreOptions, 'overwrite'>): Promise<Restored> {
  const manifest = await requireRestorable(options, openDatabaseAdmin(options.dataDir))
  const { ok, opened, problems } = await checkBackup(options.path, options.passphrase)
  if (!ok) throw unsound(problems)
  if (!opened)
    throw new AppError('conflict', 'This backup is encrypted. Provide its passphrase.', passphraseHint)
  const keys = keysToInstall(options, manifest, manifest.encryption === null ? {} : null)
  const present = await factsOf(options.dataDir)
  const replaced = (await openDatabaseAdmin(options.dataDir).hasData())
    ? { path: join(options.dataDir, asideName(options.clock)), events: present?.events ?? null }
    : null
  return answer(manifest, replaced, keys.missing)
}

export async function restoreBackup(options: RestoreOptions): Promise<Restored> {
  const { dataDir, path, clock } = options
  const admin = openDatabaseAdmin(dataDir)
  const manifest = await requireRestorable(options, admin)
  await copiesOf(admin).settle() // rolls back a restore that was interrupted
  if ((await admin.hasData()) && !options.overwrite) {
    throw new AppError('conflict', `${dataDir} already contains data.`, {
      hint: 'add --yes to replace it (it is moved aside; "sightglass restore --undo" brings it back), or set another --data-dir',
    })
  }
  await admin.requireUnused()
  const staged = join(dataDir, '.restoring')
  rmSync(staged, { recursive: true, force: true }) // first, to free the space of a killed restore
  await requireAdmission(dataDir, manifest)
  mkdirSync(staged, { mode: 0o700 })
  try {
    const { database, keyFiles } = await unpackBackup(path, manifest, staged, options.passphrase)
    const problems = await contentProblems(database, manifest)
    if (problems.length > 0) throw unsound(problems)
    const keys = keysToInstall(options, manifest, keyFiles)
    const factsBefore = await factsOf(dataDir)
    await recordIn(staged, clock, async (store) => {
      const paused = keys.missing ? await pauseEndpoints(store, clock) : 0
      await store.keyCheck.replace(null) // the backup may be older than the key ring
      return {
        target: basename(path),
        metadata: {
          createdAt: manifest.createdAt,
          schema: manifest.schema,
          events: manifest.events,
          databaseSha256: manifest.databaseSha256,
          encrypted: manifest.encryption !== null,
          replacedHeads: headsJson(factsBefore),
          endpointsPaused: paused,
        },
      }
    })
    for (const [name, text] of Object.entries(keys.files)) writeWhole(join(staged, name), text)
    // The old checkpoints belong to other chains; the file must exist, or it looks deleted.
    writeWhole(join(staged, 'audit-checkpoints'), '')
    const replaced = await place('restore', options, staged, Object.keys(keys.files))
    const moved = replaced === null ? null : { path: replaced, events: factsBefore?.events ?? null }
    // Paused endpoints report it; the next start must not refuse the folder again for the same missing key.
    if (keys.missing) openSecretBox(dataDir, options.keyRing)
    return answer(manifest, moved, keys.missing)
  } finally {
    removeStaged(staged)
  }
}

/** Removes what a restore prepared. What cannot be removed now the next restore removes; it changes no outcome. */
function removeStaged(staged: string): void {
  try {
    rmSync(staged, { recursive: true, force: true })
  } catch {
    return
  }
}

/**
 * Brings back the data that the newest restore moved aside, and moves the restored data aside. Rolls back an
 * interrupted restore; repeats an interrupted undo.
 */
export async function undoRestore(
  dataDir: string,
  clock: Clock,
): Promise<{ broughtBack: string; replaced: string | null }> {
  const admin = openDatabaseAdmin(dataDir)
  const settled = await copiesOf(admin).settle()
  if (settled?.kind === 'restore' || settled?.outcome === 'finished') {
    rmSync(join(dataDir, '.restoring'), { recursive: true, force: true })
    return { broughtBack: settled.aside, replaced: null }
  }
  const aside = newestAside(dataDir)
  if (aside === null) {
    throw new AppError(
      'not_found',
      `There is nothing to undo: no restore has moved data aside in ${dataDir}.`,
    )
  }
  await admin.requireUnused()
  const staged = join(dataDir, aside)
  const factsBefore = await factsOf(dataDir)
  await recordIn(staged, clock, async () => ({
    target: aside,
    metadata: { undone: true, replacedHeads: headsJson(factsBefore) },
  }))
  const keys = keyFileNames.filter((name) => existsSync(join(staged, name)))
  const replaced = await place('undo', { dataDir, clock }, staged, keys)
  return { broughtBack: aside, replaced }
}

async function requireRestorable(
  { path, passphrase, allowPlain }: Omit<RestoreOptions, 'overwrite'>,
  { newestSchema }: DatabaseAdmin,
): Promise<Manifest> {
  const manifest = await readManifest(path)
  if (manifest.encryption === null && passphrase !== null && !allowPlain) {
    throw new AppError(
      'conflict',
      `${basename(path)} is not encrypted, but a backup passphrase is configured: ` +
        'anyone could have created this file. Nothing was changed.',
      { hint: 'choose an encrypted backup, or add --allow-plain if you trust its origin' },
    )
  }
  if (manifest.schema > newestSchema) {
    throw new AppError(
      'conflict',
      `The backup has schema ${manifest.schema}, but this release supports at most ${newestSchema}. ` +
        'Nothing was changed.',
      { hint: `use release ${manifest.version} or a newer one` },
    )
  }
  return manifest
}

async function requireAdmission(dataDir: string, { databaseBytes }: Manifest): Promise<void> {
  const { bavail, bsize } = await statfs(dataDir)
  if (bavail * bsize < databaseBytes + spareBytes) {
    const spaceText = `${databaseBytes + spareBytes} bytes; ${bavail * bsize} are free in ${dataDir}`
    throw new AppError('storage_full', `The restore needs ${spaceText}. Nothing was changed.`)
  }
}

const passphraseHint = { hint: 'set SIGHTGLASS_BACKUP_PASSPHRASE or SIGHTGLASS_BACKUP_PASSPHRASE_FILE' }

function unsound(problems: string[]): AppError {
  return new AppError(
    'conflict',
    `The backup failed verification. Nothing was changed: ${problems.join('; ')}`,
  )
}

function answer(manifest: Manifest, replaced: Restored['replaced'], keyMissing: boolean): Restored {
  const { createdAt, schema, events, keyId, encryption } = manifest
  const warnings = [
    `Keys, passwords and roles are those of ${createdAt}; later revocations and changes are lost.`,
  ]
  if (encryption === null) {
    warnings.push(
      'The backup is not encrypted: its checksums detect corruption but do not prove who created it.',
    )
  }
  if (keyMissing) {
    warnings.push(
      `The key file ${keyFileName} (${keyId}) that encrypts the secrets is missing: webhook endpoints are paused ` +
        'until their secrets are rotated, and second factors need a recovery code. Add --key-file to keep them.',
    )
  }
  return { createdAt, schema, events, replaced, warnings }
}

/** The key files of the backup, and whether the one its secrets need is missing. */
function keysToInstall(
  { dataDir, keyFile, keyRing = null }: Pick<RestoreOptions, 'dataDir' | 'keyFile' | 'keyRing'>,
  { keyId }: Manifest,
  carried: KeyFiles | null, // null: encrypted and not unpacked
): { files: KeyFiles; missing: boolean } {
  if (carried === null) return { files: {}, missing: false }
  const files = { ...carried }
  if (keyFile !== null) files[keyFileName] = readKeyFile(keyFile, keyId)
  const installed = files[keyFileName]
  // A key ring is used instead of the folder's key file, so an installed file does not count beside it.
  const inPlace =
    installed === undefined || keyRing !== null ? keyIdsOf(dataDir, keyRing) : keyIdsIn(installed)
  return { files, missing: keyId !== null && !inPlace.includes(keyId) }
}

function readKeyFile(path: string, keyId: string | null): string {
  let text: string
  try {
    text = readTextFile(path)
  } catch (error) {
    throw new AppError('not_found', `The key file ${path} cannot be read (${unreadableReason(error)}).`)
  }
  if (keyId !== null && !keyIdsIn(text).includes(keyId)) {
    throw new AppError('conflict', `${path} is not the key that encrypts the secrets in this backup.`)
  }
  return text
}

const asidePrefix = 'replaced-'

/** Opens the staged database once: migrates it and appends the restore to its audit log. */
async function recordIn(
  staged: string,
  clock: Clock,
  describe: (store: Store) => Promise<{ target: string; metadata: AuditEntry['metadata'] }>,
): Promise<void> {
  const now = clock.now()
  const store = await openStore({ folder: staged, now })
  try {
    const { target, metadata } = await describe(store)
    await store.audit.recordEvidence(null) // of other files beside the database
    const actor = { orgId: applianceOrgId, actor: 'cli' }
    await store.audit.append(auditEntry(actor, { action: 'appliance.restored', target, metadata }, now))
  } finally {
    await store.close()
  }
}

async function pauseEndpoints(store: Store, clock: Clock): Promise<number> {
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

async function place(
  kind: Placement['kind'],
  { dataDir, clock }: { dataDir: string; clock: Clock },
  staged: string,
  keys: readonly string[],
): Promise<string | null> {
  const aside = freeAside(dataDir, clock)
  // The next run writes the Parquet files of the restored events.
  const owner = { folder: join(dataDir, openFolder), applianceId: readApplianceId(dataDir) }
  await removeOpenFiles(owner, new Set())
  const { movedAside } = await copiesOf(openDatabaseAdmin(dataDir)).place({
    staged,
    aside,
    // Checkpoints describe the replaced chains; beside the restored chains they would look like tampering.
    files: ['audit-checkpoints', ...keys],
    kind,
  })
  return movedAside.length === 0 ? null : join(dataDir, aside)
}

function asideName(clock: Clock): string {
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
    .filter((name) => name.startsWith(asidePrefix) && existsSync(databaseFiles.pathIn(join(dataDir, name))))
    .sort()
    .reverse()
}

function newestAside(dataDir: string): string | null {
  return asideFolders(dataDir)[0] ?? null
}

/** The contents of the folder, as far as they can be read: corruption may be the reason for the restore. */
async function factsOf(dataDir: string): Promise<DatabaseFacts | null> {
  return openDatabaseAdmin(dataDir)
    .facts()
    .catch(() => null)
}

function headsJson(facts: DatabaseFacts | null): AuditEntry['metadata'][string] {
  if (facts === null) return null
  return Object.fromEntries(
    Object.entries(facts.auditHeads).map(([orgId, { count, hash }]) => [orgId, { count, hash }]),
  )
}
