/**
 * The folder `open/`: a Parquet file per organization and day, for DuckDB, Polars and other readers on the machine. A
 * run makes the files equal to the store: events that expired or were erased leave them, late ones are added. It
 * touches only what the appliance wrote: the folder may be a link to a share, and people put files beside ours.
 */
import { readdir, realpath, rm, rmdir, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { firstBytes, openRegularFile } from '../../db/rules/regular-files.ts'
import { dayOf, dayPath, manifestName, manifestOf, openParquetWriter } from './parquet.ts'
import { countEvents, walkEvents } from '../api/traces/export.ts'
import type { Manifest, ManifestFile, ParquetWriter } from './parquet.ts'
import type { EventStore, Store } from '../../db/contract/store.ts'
import type { Log } from '../log.ts'
import { dayMs } from '../../db/contract/units.ts'

export const openFolder = 'open'

/** A day is written this long after its end, because events arrive late. */
const closedAfterMs = 30 * 60_000

interface OpenFilesServices {
  store: { orgs: Pick<Store['orgs'], 'list'>; events: Pick<EventStore, 'page' | 'count' | 'lastSeq'> }
  folder: string
  /** Null: the folder has no other users. */
  applianceId?: string | null
  log: Log
}

export interface OpenFiles {
  /** Ends between two days when `ending` is aborted; the next run continues. */
  run(now: number, ending: AbortSignal): Promise<void>
}

export function makeOpenFiles({ store, folder, log, applianceId = null }: OpenFilesServices): OpenFiles {
  const owner = { folder, applianceId }
  return {
    async run(now, ending) {
      const orgs = await store.orgs.list()
      await removeOpenFiles(owner, new Set(orgs.map(({ id }) => id)))
      for (const { id } of orgs) {
        ending.throwIfAborted()
        if (!(await mayWrite(owner, id))) {
          log.warn('open_files_of_another', { orgId: id, folder })
          continue
        }
        const services = { events: store.events, folder: join(folder, id), applianceId }
        const changed = await updateOrg(services, id, now, ending)
        if (changed !== null) log.info('open_files_written', { orgId: id, ...changed })
      }
    },
  }
}

interface OpenFilesOwner {
  folder: string
  applianceId: string | null
}

/**
 * Removes the appliance's files of organizations that are not among `keptOrgIds`. Folders that are empty then go too.
 */
export async function removeOpenFiles(owner: OpenFilesOwner, keptOrgIds: ReadonlySet<string>): Promise<void> {
  const entries = await readdir(owner.folder, { withFileTypes: true }).catch(() => [])
  for (const { name } of entries.filter((entry) => entry.isDirectory())) {
    if (keptOrgIds.has(name) || !(await isOwnFolder(owner, name))) continue
    const folder = join(owner.folder, name)
    await removeOthers(folder, [])
    await rm(join(folder, manifestName), { force: true })
    await removeEmpty(folder)
  }
}

const orgIdForm = /^org_[A-Za-z0-9_-]{1,64}$/

/** Without a manifest the last run was killed; such a folder is own when it is below the data folder. */
async function isOwnFolder(owner: OpenFilesOwner, name: string): Promise<boolean> {
  const manifest = await parseManifest(join(owner.folder, name))
  if (manifest?.appliance !== undefined) return manifest.appliance === owner.applianceId
  const isOfOrg = manifest === null ? orgIdForm.test(name) : manifest.org === name
  return isOfOrg && (await isPrivate(owner.folder))
}

/** Whether no other appliance wrote the files of an organization: a copy of the data has the same organizations. */
async function mayWrite({ folder, applianceId }: OpenFilesOwner, orgId: string): Promise<boolean> {
  const manifest = await parseManifest(join(folder, orgId))
  return manifest?.appliance === undefined || applianceId === null || manifest.appliance === applianceId
}

/** By real paths: `open` may be a link to a share. */
async function isPrivate(folder: string): Promise<boolean> {
  const parent = await realpath(dirname(folder)).catch(() => null)
  return parent !== null && (await realpath(folder).catch(() => null)) === join(parent, basename(folder))
}

interface OrgServices {
  events: OpenFilesServices['store']['events']
  folder: string
  applianceId: string | null
}

interface Changed {
  written: number
  removed: number
}

async function updateOrg(
  { events, folder, applianceId }: OrgServices,
  orgId: string,
  now: number,
  ending: AbortSignal,
): Promise<Changed | null> {
  const ceilingSeq = await events.lastSeq(orgId)
  const old = await readManifest(folder, ceilingSeq)
  const end = dayOf(now - closedAfterMs)
  const files: ManifestFile[] = []
  let writer: ParquetWriter | null = null
  let written = 0
  try {
    for (
      let day = await dayBefore(events, orgId, end);
      day !== null;
      day = await dayBefore(events, orgId, day)
    ) {
      ending.throwIfAborted()
      const filter = { sinceMs: day, untilMs: day + dayMs }
      const oldFile = old?.files.find(({ path }) => path === dayPath(day!))
      const isSame =
        oldFile !== undefined &&
        (await isWhole(folder, oldFile)) &&
        // Up to the last arrival of the files events can only have gone, after it only have come.
        (await countEvents(events, orgId, filter, { ceilingSeq: old!.lastArrival })) === oldFile.rows &&
        (await countEvents(events, orgId, filter, { afterSeq: old!.lastArrival, ceilingSeq })) === 0
      if (isSame) {
        files.push(oldFile)
        continue
      }
      writer ??= openParquetWriter()
      const rows = walkEvents(events, orgId, filter, ceilingSeq, true)
      files.push(await writer.file(folder, dayPath(day), orgId, rows))
      written++
    }
    const removed = await removeOthers(folder, files)
    if (written === 0 && removed === 0 && old !== null) return null
    if (files.length === 0 && old === null) return null
    writer ??= openParquetWriter()
    const manifest = manifestOf(orgId, ceilingSeq, files)
    await writer.manifest(folder, applianceId === null ? manifest : { ...manifest, appliance: applianceId })
    return { written, removed }
  } finally {
    await writer?.close()
  }
}

/** The newest day before `endMs` that has an event. */
async function dayBefore(
  events: Pick<EventStore, 'page'>,
  orgId: string,
  endMs: number,
): Promise<number | null> {
  const query = { orgId, filter: { untilMs: endMs }, limit: 1, before: null, ceilingSeq: null }
  const newest = (await events.page(query)).events[0]
  return newest === undefined ? null : dayOf(newest.occurredAtMs)
}

/** Null without a manifest, or with one of another database: the store has fewer arrivals after a restore. */
async function readManifest(folder: string, lastSeq: number): Promise<Manifest | null> {
  const manifest = await parseManifest(folder)
  return manifest !== null && manifest.lastArrival <= lastSeq && Array.isArray(manifest.files)
    ? manifest
    : null
}

const manifestBytesMax = 16 * 1024 * 1024

/** Null when the file is none of ours. */
async function parseManifest(folder: string): Promise<Manifest | null> {
  const file = await openRegularFile(join(folder, manifestName), { follows: false }).catch(() => null)
  if (file === null) return null
  try {
    const { size } = await file.stat()
    const bytes = await firstBytes(file, Math.min(size, manifestBytesMax))
    const manifest = JSON.parse(Buffer.from(bytes).toString()) as Partial<Manifest> | null
    return manifest?.format === 'sightglass.events' ? (manifest as Manifest) : null
  } catch {
    return null
  } finally {
    await file.close()
  }
}

/** After a crash the folder may have a newer file than its manifest describes. */
async function isWhole(folder: string, { path, bytes }: ManifestFile): Promise<boolean> {
  const stats = await stat(join(folder, path)).catch(() => null)
  return stats?.size === bytes
}

const partForm = /^part-\d{1,6}\.parquet(?:\.tmp)?$/

/** Removes the days without events, and what an interrupted run left. Returns of how many days it removed files. */
async function removeOthers(folder: string, files: ManifestFile[]): Promise<number> {
  const days = new Set(files.map(({ path }) => dirname(path)))
  let removed = 0
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
  for (const { name } of entries.filter((entry) => entry.isDirectory() && entry.name.startsWith('dt='))) {
    const day = join(folder, name)
    if (days.has(name)) {
      await rm(join(day, 'part-0.parquet.tmp'), { force: true })
      continue
    }
    const parts = (await readdir(day, { withFileTypes: true })).filter(
      (entry) => entry.isFile() && partForm.test(entry.name),
    )
    for (const part of parts) await rm(join(day, part.name), { force: true })
    await removeEmpty(day)
    if (parts.length > 0) removed++
  }
  return removed
}

/** Files of other people stay, and the folder with them. */
async function removeEmpty(folder: string): Promise<void> {
  await rmdir(folder).catch(() => undefined)
}
