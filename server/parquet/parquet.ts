/** Writes events as Parquet on a thread of their own: as a stream of bytes, as one file, or as a folder of days. */
import { join } from 'node:path'
import { isoTime } from '../clock.ts'
import { version } from '../system/version.ts'
import { parquetSchema, type EventRow } from './events.ts'
import type { ParquetAnswer, ParquetRequest, ParquetResult } from './thread.ts'
import { dayMs } from '../../db/contract/units.ts'

export type { EventRow }

const createdBy = `sightglass ${version}`

interface ParquetThread {
  ask(request: ParquetRequest): Promise<ParquetResult>
  close(): Promise<void>
}

function openParquetThread(): ParquetThread {
  // In the executable every module claims to be at the root, and workers keep their path below it.
  const path = Bun.isStandaloneExecutable ? './server/parquet/thread.js' : './thread.ts'
  const worker = new Worker(new URL(path, import.meta.url).href, { name: 'parquet' })
  const waiting: PromiseWithResolvers<ParquetResult>[] = []
  let death: Error | null = null
  const ended = Promise.withResolvers<void>()
  const die = (error: Error) => {
    death ??= error
    for (const { reject } of waiting.splice(0)) reject(death)
  }
  worker.onmessage = ({ data }: MessageEvent<ParquetAnswer>) => {
    const pendingRequest = waiting.shift()
    if ('error' in data)
      pendingRequest?.reject(new Error(`the Parquet file could not be written: ${data.error}`))
    else pendingRequest?.resolve(data.result)
  }
  worker.onerror = (event) => die(new Error(`the Parquet thread failed: ${event.message}`))
  worker.addEventListener('close', () => {
    die(new Error('the Parquet thread ended'))
    ended.resolve()
  })
  const ask = (request: ParquetRequest) => {
    if (death !== null) return Promise.reject(death)
    const pendingRequest = Promise.withResolvers<ParquetResult>()
    waiting.push(pendingRequest)
    worker.postMessage(request)
    return pendingRequest.promise
  }
  return {
    ask,
    async close() {
      await ask({ verb: 'close' }).catch(() => undefined)
      await ended.promise
    },
  }
}

/** Reads the next page while one is encoded, and has at most two on the way to the thread. */
async function* encoding(
  thread: ParquetThread,
  pages: AsyncIterable<EventRow[]>,
): AsyncGenerator<ParquetResult> {
  let pendingResult: Promise<ParquetResult> | null = null
  for await (const rows of pages) {
    const next = thread.ask(packed(rows))
    next.catch(() => undefined) // thrown when it is awaited
    if (pendingResult !== null) yield await pendingResult
    pendingResult = next
  }
  if (pendingResult !== null) yield await pendingResult
}

function packed(rows: EventRow[]): ParquetRequest {
  const lengths = Uint32Array.from(rows, ({ json }) => json.length)
  const times = Float64Array.from(
    rows.flatMap(({ occurredAtMs, receivedAtMs }) => [occurredAtMs, receivedAtMs]),
  )
  const provenance = JSON.stringify(rows.map((row) => row.provenance ?? null))
  return { verb: 'rows', text: rows.map(({ json }) => json).join(''), lengths, times, provenance }
}

/** The bytes of a file with all rows. */
export async function* parquetParts(
  orgId: string,
  pages: AsyncIterable<EventRow[]>,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const thread = openParquetThread()
  try {
    await thread.ask({ verb: 'begin', orgId, createdBy, path: null })
    for await (const { parts } of encoding(thread, pages)) yield* parts
    yield* (await thread.ask({ verb: 'end' })).parts
  } finally {
    void thread.close()
  }
}

export const dayOf = (timeMs: number): number => Math.floor(timeMs / dayMs) * dayMs

/** As Hive names partitions, which every reader of Parquet understands. */
export const dayPath = (dayStartMs: number): string => `dt=${isoTime(dayStartMs).slice(0, 10)}/part-0.parquet`

export interface ParquetWriter {
  /** One file of all rows. It appears when it is complete. */
  file(folder: string, path: string, orgId: string, pages: AsyncIterable<EventRow[]>): Promise<ManifestFile>
  /** A file per day. Rows must come in order of time, in either direction. */
  days(folder: string, orgId: string, pages: AsyncIterable<EventRow[]>): Promise<ManifestFile[]>
  /** Replaces the manifest of a folder. It is written after its files. */
  manifest(folder: string, manifest: Manifest): Promise<void>
  close(): Promise<void>
}

export function openParquetWriter(): ParquetWriter {
  const thread = openParquetThread()
  const begin = (folder: string, path: string, orgId: string) =>
    thread.ask({ verb: 'begin', orgId, createdBy, path: join(folder, path) })
  const end = async (path: string): Promise<ManifestFile> => {
    const { facts } = await thread.ask({ verb: 'end' })
    const { rows, minTimeMs, maxTimeMs, bytes, sha256 } = facts!
    return { path, rows, minTime: timeOf(minTimeMs), maxTime: timeOf(maxTimeMs), bytes, sha256 }
  }
  return {
    async file(folder, path, orgId, pages) {
      await begin(folder, path, orgId)
      for await (const _ of encoding(thread, pages)) continue
      return end(path)
    },
    async days(folder, orgId, pages) {
      const files: ManifestFile[] = []
      let open: number | null = null
      for await (const page of pages) {
        for (const [day, rows] of byDay(page)) {
          if (day !== open) {
            if (open !== null) files.push(await end(dayPath(open)))
            open = day
            await begin(folder, dayPath(day), orgId)
          }
          await thread.ask(packed(rows))
        }
      }
      if (open !== null) files.push(await end(dayPath(open)))
      return files
    },
    async manifest(folder, manifest) {
      const text = `${JSON.stringify(manifest, null, 2)}\n`
      await thread.ask({ verb: 'replace', path: join(folder, manifestName), text })
    },
    close: () => thread.close(),
  }
}

function byDay(page: EventRow[]): Map<number, EventRow[]> {
  return Map.groupBy(page, ({ occurredAtMs }) => dayOf(occurredAtMs))
}

export const manifestName = 'manifest.json'

export interface ManifestFile {
  path: string // below the folder
  rows: number
  minTime: string | null
  maxTime: string | null
  bytes: number
  sha256: string
}

export interface Manifest {
  format: 'sightglass.events'
  schemaVersion: number
  createdBy: string
  org: string
  rows: number
  minTime: string | null
  maxTime: string | null
  /** The last arrival that the files may hold: what arrived later is not in them. */
  lastArrival: number
  files: ManifestFile[]
  /** Of the folder `open/`: the id of the data folder that writes it. */
  appliance?: string
}

export function manifestOf(org: string, lastArrival: number, files: ManifestFile[]): Manifest {
  const times = files
    .flatMap(({ minTime, maxTime }) => (minTime === null ? [] : [minTime, maxTime!]))
    .toSorted()
  return {
    format: 'sightglass.events',
    schemaVersion: parquetSchema,
    createdBy,
    org,
    rows: files.reduce((sum, { rows }) => sum + rows, 0),
    minTime: times[0] ?? null,
    maxTime: times.at(-1) ?? null,
    lastArrival,
    files: files.toSorted((a, b) => (a.path < b.path ? -1 : 1)),
  }
}

function timeOf(timeMs: number | null): string | null {
  return timeMs === null ? null : isoTime(timeMs)
}
