/** The folder of backups: its settings, the names and facts of each backup, and the rotation of scheduled ones. */
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { databaseFiles } from '../../../db/open.ts'
import { syncFolder, writeWhole } from '../../../db/rules/durable-files.ts'
import { StoreError } from '../../../db/contract/errors.ts'
import { isoTime } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import { readManifest, type BackupReason, type Manifest } from './manifest.ts'

const extension = '.backup'
const proofExtension = '.proof.json'
const lastRunFile = 'last-run.json'
const partialPrefix = '.partial-'

/** The result of verifying a backup, stored beside it. */
export interface Proof {
  sha256: string // of the whole file
  provenAt: string
  /** Increases with every backup of the folder, independent of the clock; absent in backups of earlier releases. */
  sequence?: number
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
  const made = mkdirSync(dir, { recursive: true, mode: 0o700 })
  if (made !== undefined) syncFolder(dirname(made))
}

/** An unused name: the time to the second, the reason, and a number if needed. */
export function freeName(dir: string, reason: BackupReason, now: number): string {
  const stem = `sightglass-${isoTime(now).slice(0, 19).replaceAll(':', '')}Z-${reason}`
  for (let number = 1; ; number++) {
    const name = `${stem}${number === 1 ? '' : `-${number}`}${extension}`
    if (!existsSync(join(dir, name))) return name
  }
}

/** Deletes the leftovers of killed backups. A folder in use by another process is locked and stays. */
export function removeLeftovers(dir: string): void {
  for (const entry of readdirSync(dir)) {
    if (!entry.startsWith(partialPrefix)) continue
    const path = join(dir, entry)
    if (!isLocked(path)) rmSync(path, { recursive: true, force: true })
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

/** A folder for work in progress, locked while the work runs. */
export function makePartial(dir: string, name: string): { path: string; remove: () => Promise<void> } {
  const path = join(dir, `${partialPrefix}${name}`)
  mkdirSync(path, { mode: 0o700 })
  const release = databaseFiles.hold(path)
  return {
    path,
    async remove() {
      release()
      await rm(path, { recursive: true, force: true })
    },
  }
}

/** The path of a backup by its file name; any other name is rejected, so that no other file can be reached. */
export function backupPath(dir: string, name: string): string {
  const fits = /^[a-zA-Z0-9][a-zA-Z0-9._-]{0,120}\.backup$/.test(name)
  if (!fits || !existsSync(join(dir, name))) throw new AppError('not_found', 'No backup has this name.')
  return join(dir, name)
}

/** Newest first: by sequence, which is independent of clocks, then by time and name. */
export async function listBackups(dir: string): Promise<BackupView[]> {
  if (statSync(dir, { throwIfNoEntry: false })?.isDirectory() !== true) return []
  const names = readdirSync(dir).filter(isBackupName)
  const views = await Promise.all(names.map((name) => viewOf(dir, name)))
  const key = ({ manifest, name }: BackupView) => `${manifest?.createdAt ?? ''} ${name}`
  return views.sort((a, b) => sequenceOf(b) - sequenceOf(a) || (key(a) < key(b) ? 1 : -1))
}

function sequenceOf({ proof }: BackupView): number {
  return proof?.sequence ?? 0
}

/** Of the newest backup; 0 in a folder without one. */
export async function newestSequence(dir: string): Promise<number> {
  return Math.max(0, ...(await listBackups(dir)).map(sequenceOf))
}

/** Excludes backups in progress and leftovers of a crash. */
function isBackupName(name: string): boolean {
  return name.endsWith(extension) && !name.startsWith(partialPrefix)
}

async function viewOf(dir: string, name: string): Promise<BackupView> {
  const path = join(dir, name)
  const bytes = statSync(path, { throwIfNoEntry: false })?.size ?? 0
  const about = { name, path, bytes, proof: readJson<Proof>(`${path}${proofExtension}`) }
  try {
    return { ...about, manifest: await readManifest(path), problem: null }
  } catch (error) {
    return { ...about, manifest: null, problem: error instanceof Error ? error.message : String(error) }
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
export async function pruneBackups(dir: string, keep: number, justMade: string): Promise<string[]> {
  const scheduled = (await listBackups(dir)).filter(({ manifest }) => manifest?.reason === 'scheduled')
  const surplus = scheduled.slice(keep).filter(({ name }) => name !== justMade)
  for (const { path } of surplus) await removeBackup(path)
  return surplus.map(({ name }) => name)
}

export function readLastRun(dir: string): LastRun | null {
  return readJson<LastRun>(join(dir, lastRunFile))
}

export function writeLastRun(dir: string, run: LastRun): void {
  writeJson(join(dir, lastRunFile), run)
}

function readJson<T>(path: string): T | null {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as T
  } catch {
    return null
  }
}

function writeJson(path: string, value: unknown): void {
  writeWhole(path, `${JSON.stringify(value)}\n`)
}

export function backupDirOf(dataDir: string, given: string | null): string {
  return given ?? join(dataDir, 'backups')
}

export interface BackupConfig {
  dir: string // absolute
  cron: string | null // null: only on request
  keep: number // scheduled backups
  passphrase: string | null // encrypts when set
}
