/**
 * Creates a backup: a consistent copy beside the running writer, verified, with its manifest, durable. Also before an
 * upgrade.
 */
import { open, rename, rm, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { databaseFiles, openDatabaseAdmin } from '../../../db/open.ts'
import { syncFolder } from '../../../db/rules/durable-files.ts'
import { isoTime, type Clock } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import { version } from '../../system/version.ts'
import type { KeyRing } from '../../system/key-ring.ts'
import {
  makeBackupFolder,
  newestSequence,
  removeLeftovers,
  reserveName,
  writeProof,
} from './backup-folder.ts'
import {
  digestFile,
  digestOf,
  encrypted,
  keyOf,
  newEncryption,
  piecesOf,
  writePieces,
  type Digest,
} from './body.ts'
import {
  keyIdsOf,
  manifestBytes,
  readKeyFiles,
  readManifest,
  type BackupReason,
  type Manifest,
} from './manifest.ts'
import { requireOwner } from './owner.ts'
import { anchorsOf, copiesOf, differences, faultsOf } from './check.ts'
import type { DatabaseCopies } from '../../../db/contract/admin.ts'
import type { CopyReport, DatabaseFacts } from '../../../db/contract/operations.ts'

interface BackupOptions {
  dataDir: string
  /** Of the database; by default the data folder. */
  location?: string
  dir: string // the folder of backups
  reason: BackupReason
  passphrase: string | null
  /** Holds the key that the backup needs; by default that is a file of the data folder. */
  keyRing?: KeyRing | null
  clock: Clock
}

export interface MadeBackup extends Digest {
  name: string
  path: string
  events: number
  manifest: Manifest
}

const spareBytes = 32 * 1024 * 1024
const attemptsMax = 2 // deletions during a copy can make one verification fail

/** One at a time: concurrent copies would only compete for the disk. */
let last: Promise<unknown> = Promise.resolve()

export function createBackup(options: BackupOptions): Promise<MadeBackup> {
  const pendingBackup = last.then(
    () => make(options),
    () => make(options),
  )
  last = pendingBackup
  return pendingBackup
}

async function make(options: BackupOptions): Promise<MadeBackup> {
  const { dataDir, dir, reason, clock } = options
  const copies = copiesOf(openDatabaseAdmin(options.location ?? dataDir))
  makeBackupFolder(dir)
  const owner = requireOwner(options)
  removeLeftovers(dir, owner) // first, to free their space
  await requireAdmission(options, copies.bytes())
  const { name, partial } = reserveName(dir, { reason, now: clock.now(), owner })
  try {
    const copy = databaseFiles.pathIn(partial.path)
    const facts = await provenCopy(copies, copy)
    const { applianceId } = owner
    const draft = { name, path: join(dir, name), copy, partial: partial.path, facts, applianceId }
    const sequence = 1 + (await newestSequence(dir, owner))
    const backup =
      options.passphrase === null ? await sealPlain(options, draft) : await sealEncrypted(options, draft)
    const provenAt = isoTime(clock.now())
    writeProof(backup.path, { sha256: backup.sha256, provenAt, sequence, applianceId })
    return backup
  } finally {
    await partial.remove()
  }
}

async function requireAdmission({ dir, passphrase }: BackupOptions, bytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(dir)
  const neededBytes = bytes * (passphrase === null ? 1 : 2) + spareBytes
  if (bavail * bsize < neededBytes) {
    throw new AppError(
      'storage_full',
      `A backup needs about ${neededBytes} bytes; ${bavail * bsize} are free in ${dir}.`,
      {
        hint: 'free disk space, keep fewer backups, or set another folder with --backup-dir',
      },
    )
  }
}

async function provenCopy(copies: DatabaseCopies, copy: string): Promise<DatabaseFacts> {
  for (let attempt = 1; ; attempt++) {
    const report = await whileSyncing(copy, () => copies.copyTo(copy))
    const inspection = await databaseFiles.inspect({
      path: copy,
      anchors: anchorsOf(report.before.auditHeads, 'the database it was copied from'),
    })
    const problems = [...faultsOf(inspection), ...differences(inspection.facts, report)]
    if (problems.length === 0) return inspection.facts
    await rm(copy)
    if (attempt === attemptsMax) {
      throw new AppError(
        'conflict',
        `The copy failed verification, so no backup was created: ${problems.join('; ')}`,
        {
          hint: 'sightglass doctor',
        },
      )
    }
  }
}

const syncEveryMs = 50

/** Syncs the growing file as it grows: flushing it at once at the end would delay commits. */
async function whileSyncing(path: string, copying: () => Promise<CopyReport>): Promise<CopyReport> {
  let isDone = false
  const syncing = (async () => {
    while (!isDone) {
      await Bun.sleep(syncEveryMs)
      const file = await open(path, 'r+').catch(() => null)
      await file?.datasync().catch(() => {})
      await file?.close()
    }
  })()
  try {
    return await copying()
  } finally {
    isDone = true
    await syncing
  }
}

interface Draft {
  name: string
  path: string
  copy: string
  partial: string
  facts: DatabaseFacts
  applianceId: string
}

/** Turns the copy into the backup: appends the manifest after its last page. */
async function sealPlain(options: BackupOptions, draft: Draft): Promise<MadeBackup> {
  const { size } = await stat(draft.copy)
  const database = await digestOf(piecesOf(draft.copy, size))
  const manifest = manifestOf(options, draft, { database, body: database, encryption: null })
  const file = await open(draft.copy, 'a')
  try {
    await file.write(manifestBytes(manifest))
    await file.sync()
  } finally {
    await file.close()
  }
  return finish(options, draft, draft.copy, manifest)
}

async function sealEncrypted(options: BackupOptions, draft: Draft): Promise<MadeBackup> {
  const { size } = await stat(draft.copy)
  const database = await digestOf(piecesOf(draft.copy, size))
  const encryption = newEncryption()
  const key = await keyOf(options.passphrase ?? '', encryption)
  const files = Buffer.from(`${JSON.stringify(readKeyFiles(options.dataDir))}\n`)
  const clear = async function* () {
    yield files
    yield* piecesOf(draft.copy, size)
  }
  const encryptedPath = join(draft.partial, 'sealed')
  const file = await open(encryptedPath, 'wx', 0o600)
  try {
    const body = await writePieces(file, encrypted(clear(), key, encryption))
    const manifest = manifestOf(options, draft, { database, body, encryption })
    await file.write(manifestBytes(manifest))
    await file.sync()
    return await finish(options, draft, encryptedPath, manifest)
  } finally {
    await file.close()
  }
}

function manifestOf(
  { reason, clock, dataDir, keyRing }: BackupOptions,
  { facts, applianceId }: Draft,
  { database, body, encryption }: { database: Digest; body: Digest; encryption: Manifest['encryption'] },
): Manifest {
  return {
    format: 'sightglass-backup-1',
    version,
    applianceId,
    createdAt: isoTime(clock.now()),
    reason,
    ...facts,
    databaseBytes: database.bytes,
    databaseSha256: database.sha256,
    bodyBytes: body.bytes,
    bodySha256: body.sha256,
    keyId: keyIdsOf(dataDir, keyRing ?? null)[0] ?? null,
    encryption,
  }
}

/** Reads the finished file back and renames it only when it is intact. */
async function finish(
  { dir }: BackupOptions,
  draft: Draft,
  file: string,
  manifest: Manifest,
): Promise<MadeBackup> {
  const writtenManifest = await readManifest(file)
  const { bodySha256, ...whole } = await digestFile(file, manifest.bodyBytes)
  if (writtenManifest.bodySha256 !== bodySha256) {
    throw new AppError('conflict', 'The backup does not read back as it was written. Check the disk.')
  }
  await rename(file, draft.path)
  syncFolder(dir)
  return { name: draft.name, path: draft.path, events: manifest.events, manifest, ...whole }
}

export interface UpgradeBackup {
  dir: string
  passphrase: string | null
}

/**
 * Null when there is nothing to migrate. Throws when the backup cannot be created, or when `target` is null and the
 * data is older than this release, because only a server start or `migrate up` upgrades. Nothing is changed then.
 */
export async function backUpBeforeUpgrade(
  dataDir: string,
  clock: Clock,
  target: UpgradeBackup | null,
  keyRing: KeyRing | null = null,
): Promise<MadeBackup | null> {
  const admin = openDatabaseAdmin(dataDir)
  if (!(await admin.hasData())) return null
  // Opening the database reports an unreadable file with a better message.
  const schema = await admin.schema().catch(() => null)
  if (schema === null || schema.version === 0 || schema.pending.length === 0) return null
  const { version, newest } = schema
  if (target === null) {
    throw new AppError('conflict', `The data has schema ${version}; this release requires ${newest}.`, {
      hint: 'run sightglass migrate up, or start the server: both create a backup and migrate the data',
    })
  }
  await admin.requireUnused()
  const { dir, passphrase } = target
  try {
    return await createBackup({ dataDir, dir, passphrase, keyRing, clock, reason: 'upgrade' })
  } catch (error) {
    const cause = error instanceof Error ? error.message : String(error)
    throw new AppError(
      'conflict',
      `Schema ${version} was not migrated to ${newest} because no backup could be created: ${cause}`,
      {
        hint: 'nothing was changed; the previous release still works with this data',
      },
    )
  }
}
