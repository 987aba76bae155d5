/** The folder of backups: its settings, the names and facts of each backup, and the rotation of scheduled ones. */
import { lstatSync, mkdirSync, readdirSync, rmdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { readdir, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { databaseFiles } from '../../../db/open.ts'
import { syncFolder, writeWhole } from '../../../db/rules/durable-files.ts'
import { readTextFile } from '../../../db/rules/regular-files.ts'
import { StoreError } from '../../../db/contract/errors.ts'
import { isoTime } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import { readManifest, type BackupReason, type Manifest } from './manifest.ts'
import { anyOwner, type BackupOwner } from './owner.ts'

const extension = '.backup'
const proofExtension = '.proof.json'
const partialPrefix = '.partial-'

/** Inside of a folder for work in progress: the id of the appliance that works there. */
const workerFile = 'made-by'

/** The result of verifying a backup, stored beside it. */
export interface Proof {
  sha256: string // of the whole file
  provenAt: string
  /** Increases with every backup of the folder, independent of the clock; absent in backups of earlier releases. */
  sequence?: number
  /** As in the manifest, which may be damaged. */
  applianceId?: string
}

export interface BackupView {
  name: string
  path: string
  bytes: number
  manifest: Manifest | null // null when the file is corrupt
  problem: string | null
  proof: Proof | null
}

/** The result of the newest attempt. */
export interface LastRun {
  at: string
  ok: boolean
  name: string | null
  message: string
  sequence?: number // of the newest backup at that time
}

export function makeBackupFolder(dir: string): void {
  const createdFolder = mkdirSync(dir, { recursive: true, mode: 0o700 })
  if (createdFolder !== undefined) syncFolder(dirname(createdFolder))
}

/**
 * An unused name, the time to the second, the reason, and a number if needed, with its folder for work in progress. The
 * folder reserves the name, because other appliances may use the same folder at the same second.
 */
export function reserveName(
  dir: string,
  { reason, now, owner }: { reason: BackupReason; now: number; owner: BackupOwner },
): { name: string; partial: Partial } {
  const stem = `sightglass-${isoTime(now).slice(0, 19).replaceAll(':', '')}Z-${reason}`
  for (let number = 1; ; number++) {
    const name = `${stem}${number === 1 ? '' : `-${number}`}${extension}`
    if (isTaken(join(dir, name))) continue
    const partial = tryPartial(dir, name, owner)
    if (partial === null) continue
    // Another appliance may have completed a backup of this name meanwhile.
    if (!isTaken(join(dir, name))) return { name, partial }
    partial.release()
  }
}

/** Also by a link whose target is missing, which a rename would replace. */
function isTaken(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined
}

/**
 * Deletes the leftovers of this appliance's killed backups. A folder in use by another process is locked and stays.
 */
export function removeLeftovers(dir: string, owner: BackupOwner = anyOwner): void {
  for (const entry of readdirSync(dir, { withFileTypes: true })) {
    if (!entry.name.startsWith(partialPrefix) || !entry.isDirectory()) continue
    const path = join(dir, entry.name)
    const worker = readWorker(path)
    if (worker === null && removeEmpty(path)) continue
    const isOwn = worker === null ? owner.isPrivate : worker === owner.applianceId
    if (isOwn && !isLocked(path)) removePartial(path)
  }
}

/** An empty folder is what a removal left whose last step failed. It belongs to nobody any more. */
function removeEmpty(path: string): boolean {
  try {
    rmdirSync(path)
    return true
  } catch {
    return false
  }
}

/** The name of the appliance goes last, so that a removal that is cut short can be completed by its owner. */
function removePartial(path: string): void {
  for (const name of readdirSync(path))
    if (name !== workerFile) rmSync(join(path, name), { recursive: true, force: true })
  rmSync(path, { recursive: true, force: true })
}

/** Null for a folder of an earlier release, or when `made-by` is not a regular file. */
function readWorker(path: string): string | null {
  try {
    return readTextFile(join(path, workerFile)).trim()
  } catch {
    return null
  }
}

function isLocked(path: string): boolean {
  try {
    databaseFiles.hold(path)()
    return false
  } catch (error) {
    return error instanceof StoreError && error.kind === 'locked'
  }
}

interface Partial {
  path: string
  remove(): Promise<void>
  /** Removes the folder at once. */
  release(): void
}

/** A folder for work in progress, locked while the work runs. */
export function makePartial(dir: string, name: string, owner: BackupOwner = anyOwner): Partial {
  const path = join(dir, `${partialPrefix}${name}`)
  mkdirSync(path, { mode: 0o700 })
  const unlock = databaseFiles.hold(path)
  if (owner.applianceId !== null) writeFileSync(join(path, workerFile), `${owner.applianceId}\n`)
  return {
    path,
    async remove() {
      unlock()
      for (const file of await readdir(path))
        if (file !== workerFile) await rm(join(path, file), { recursive: true, force: true })
      await rm(path, { recursive: true, force: true })
    },
    release() {
      unlock()
      removePartial(path)
    },
  }
}

/** Null when another process works under this name, or removed the folder before it was locked. */
function tryPartial(dir: string, name: string, owner: BackupOwner): Partial | null {
  try {
    return makePartial(dir, name, owner)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : null
    if (code === 'EEXIST' || (code === 'ENOENT' && isTaken(dir))) return null
    throw error
  }
}

/** The path of a backup by its file name; any other name is rejected, so that no other file can be reached. */
export function backupPath(dir: string, name: string): string {
  const fits = /^[a-zA-Z0-9][a-zA-Z0-9._-]{0,120}\.backup$/.test(name)
  if (!fits || !isFile(join(dir, name))) throw noBackup()
  return join(dir, name)
}

/** The same for a backup of this appliance only: others may use the folder too. */
export async function ownBackupPath(dir: string, name: string, owner: BackupOwner): Promise<string> {
  const path = backupPath(dir, name)
  if (!(await isOwnBackup(await viewOf(dir, name), owner))) throw noBackup()
  return path
}

const noBackup = (): AppError => new AppError('not_found', 'No backup has this name.')

/** A link could lead to any file. */
function isFile(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isFile() === true
}

/** Newest first: by sequence, which is independent of clocks, then by time and name. */
export async function listBackups(dir: string, owner: BackupOwner = anyOwner): Promise<BackupView[]> {
  return (await sortBackups(dir, owner)).own
}

interface SortedBackups {
  own: BackupView[]
  /** How many are of other appliances, or cannot be proven to be of this one. */
  others: number
}

export async function sortBackups(dir: string, owner: BackupOwner): Promise<SortedBackups> {
  if (statSync(dir, { throwIfNoEntry: false })?.isDirectory() !== true) return { own: [], others: 0 }
  const names = readdirSync(dir).filter(isBackupName)
  const views = await Promise.all(names.map((name) => viewOf(dir, name)))
  const areOwn = await Promise.all(views.map((view) => isOwnBackup(view, owner)))
  const ownViews = views.filter((_, index) => areOwn[index])
  const key = ({ manifest, name }: BackupView) => `${manifest?.createdAt ?? ''} ${name}`
  ownViews.sort((a, b) => sequenceOf(b) - sequenceOf(a) || (key(a) < key(b) ? 1 : -1))
  return { own: ownViews, others: views.length - ownViews.length }
}

/** For people, after what is said about this appliance's backups. */
export function othersText(otherCount: number): string {
  return otherCount === 1
    ? 'Another backup in the folder is not provably of this appliance. It is never counted or deleted.'
    : `${otherCount} other backups in the folder are not provably of this appliance. They are never counted or deleted.`
}

async function isOwnBackup({ manifest, proof }: BackupView, owner: BackupOwner): Promise<boolean> {
  if (owner === anyOwner) return true
  const applianceId = manifest === null ? proof?.applianceId : manifest.applianceId
  if (applianceId !== undefined) return applianceId === owner.applianceId
  // Of an earlier release, damaged, or no backup at all.
  if (owner.isPrivate) return true
  return manifest !== null && (await owner.isEarlierState(manifest.auditHeads))
}

function sequenceOf({ proof }: BackupView): number {
  return proof?.sequence ?? 0
}

/** Of the newest backup; 0 in a folder without one. */
export async function newestSequence(dir: string, owner: BackupOwner = anyOwner): Promise<number> {
  return Math.max(0, ...(await listBackups(dir, owner)).map(sequenceOf))
}

/** Excludes backups in progress and leftovers of a crash. */
function isBackupName(name: string): boolean {
  return name.endsWith(extension) && !name.startsWith(partialPrefix)
}

async function viewOf(dir: string, name: string): Promise<BackupView> {
  const path = join(dir, name)
  const bytes = lstatSync(path, { throwIfNoEntry: false })?.size ?? 0
  const viewFields = { name, path, bytes, proof: readJson<Proof>(`${path}${proofExtension}`) }
  try {
    return { ...viewFields, manifest: await readManifest(path), problem: null }
  } catch (error) {
    return { ...viewFields, manifest: null, problem: error instanceof Error ? error.message : String(error) }
  }
}

export function writeProof(path: string, proof: Proof): void {
  writeJson(`${path}${proofExtension}`, proof)
}

export async function removeBackup(path: string): Promise<void> {
  await rm(path)
  await rm(`${path}${proofExtension}`, { force: true })
}

/**
 * Deletes scheduled backups beyond the newest `keep`; keeps manual and upgrade backups, and the one just created.
 * Returns the names.
 */
export async function pruneBackups(
  dir: string,
  keep: number,
  justMade: string,
  owner: BackupOwner = anyOwner,
): Promise<string[]> {
  const backups = await listBackups(dir, owner)
  const scheduled = backups.filter(({ manifest }) => manifest?.reason === 'scheduled')
  const surplus = scheduled.slice(keep).filter(({ name }) => name !== justMade)
  for (const { path } of surplus) await removeBackup(path)
  return surplus.map(({ name }) => name)
}

export function readLastRun(dir: string, owner: BackupOwner = anyOwner): LastRun | null {
  return readJson<LastRun>(join(dir, lastRunName(owner)))
}

export function writeLastRun(dir: string, run: LastRun, owner: BackupOwner = anyOwner): void {
  writeJson(join(dir, lastRunName(owner)), run)
}

/** In a shared folder each appliance has its own. */
function lastRunName({ isPrivate, applianceId }: BackupOwner): string {
  return isPrivate ? 'last-run.json' : `last-run-${applianceId ?? 'none'}.json`
}

/** Null also for a named pipe: others write to a shared folder, and opening a pipe would stop the whole server. */
function readJson<T>(path: string): T | null {
  try {
    return JSON.parse(readTextFile(path)) as T
  } catch {
    return null
  }
}

function writeJson(path: string, value: unknown): void {
  writeWhole(path, `${JSON.stringify(value)}\n`)
}

export function backupDirOf(dataDir: string, configuredDir: string | null): string {
  return configuredDir ?? join(dataDir, 'backups')
}

export interface BackupConfig {
  dir: string // absolute
  cron: string | null // null: only on request
  keep: number // scheduled backups
  passphrase: string | null // encrypts when set
}
