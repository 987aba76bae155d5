/**
 * The folder `open/`: a Parquet file per organization and day, for DuckDB, Polars and other readers on the machine. A
 * run makes the files equal to the store: events that expired or were erased leave them, late ones are added.
 */
import { readFile, readdir, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { dayOf, dayPath, manifestName, manifestOf, openParquetWriter } from './parquet.ts'
import { countEvents, walkEvents } from '../api/traces/export.ts'
import type { Manifest, ManifestFile, ParquetWriter } from './parquet.ts'
import type { EventStore, Store } from '../../db/contract/store.ts'
import type { Log } from '../log.ts'

export const openFolder = 'open'

const dayMs = 24 * 3_600_000

/** A day is written this long after its end, because events arrive late. */
const closedAfterMs = 30 * 60_000

interface OpenFilesServices {
  store: { orgs: Pick<Store['orgs'], 'list'>; events: Pick<EventStore, 'page' | 'count' | 'lastSeq'> }
  folder: string
  log: Log
}

export interface OpenFiles {
  /** Ends between two days when `ending` is aborted; the next run continues. */
  run(now: number, ending: AbortSignal): Promise<void>
}

export function makeOpenFiles({ store, folder, log }: OpenFilesServices): OpenFiles {
  return {
    async run(now, ending) {
      const orgs = await store.orgs.list()
      await removeUnknown(folder, new Set(orgs.map(({ id }) => id)))
      for (const { id } of orgs) {
        ending.throwIfAborted()
        const changed = await updateOrg({ events: store.events, folder: join(folder, id) }, id, now, ending)
        if (changed !== null) log.info('open_files_written', { orgId: id, ...changed })
      }
    },
  }
}

/** Files of organizations that were deleted. */
async function removeUnknown(folder: string, known: Set<string>): Promise<void> {
  const names = await readdir(folder).catch(() => [])
  for (const name of names)
    if (!known.has(name)) await rm(join(folder, name), { recursive: true, force: true })
}

interface OrgServices {
  events: OpenFilesServices['store']['events']
  folder: string
}

interface Changed {
  written: number
  removed: number
}

async function updateOrg(
  { events, folder }: OrgServices,
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
      const before = old?.files.find(({ path }) => path === dayPath(day!))
      const isSame =
        before !== undefined &&
        (await isWhole(folder, before)) &&
        // Up to the last arrival of the files events can only have gone, after it only have come.
        (await countEvents(events, orgId, filter, { ceilingSeq: old!.lastArrival })) === before.rows &&
        (await countEvents(events, orgId, filter, { afterSeq: old!.lastArrival, ceilingSeq })) === 0
      if (isSame) {
        files.push(before)
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
    await writer.manifest(folder, manifestOf(orgId, ceilingSeq, files))
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
  try {
    const manifest = JSON.parse(await readFile(join(folder, manifestName), 'utf8')) as Manifest
    return manifest.lastArrival <= lastSeq && Array.isArray(manifest.files) ? manifest : null
  } catch {
    return null
  }
}

/** After a crash the folder may have a newer file than its manifest describes. */
async function isWhole(folder: string, { path, bytes }: ManifestFile): Promise<boolean> {
  const found = await stat(join(folder, path)).catch(() => null)
  return found?.size === bytes
}

/** Removes the days without events, and what an interrupted run left. Returns how many days it removed. */
async function removeOthers(folder: string, files: ManifestFile[]): Promise<number> {
  const days = new Set(files.map(({ path }) => dirname(path)))
  let removed = 0
  for (const name of await readdir(folder).catch(() => [])) {
    if (!name.startsWith('dt=')) continue
    if (days.has(name)) {
      await rm(join(folder, `${name}/part-0.parquet.tmp`), { force: true })
      continue
    }
    await rm(join(folder, name), { recursive: true, force: true })
    removed++
  }
  return removed
}
