/** Reads the events of Parquet files for `import`: of one file, or of a folder whose manifest is checked first. */
import { asyncBufferFromFile, parquetMetadataAsync } from 'hyparquet'
import { createReadStream, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { AppError } from '../errors.ts'
import { columnTexts } from './pages.ts'
import { manifestName, type Manifest, type ManifestFile } from './parquet.ts'

interface ParquetEvents {
  /** Events that the manifest or the footers promise. */
  rows: number
  /** Whether a manifest says that these are all files. */
  isWhole: boolean
  /** The JSON of each event, as it was sent. */
  events(): AsyncGenerator<string>
}

/** Null when the path is neither a folder nor a Parquet file. */
export async function openParquetEvents(path: string): Promise<ParquetEvents | null> {
  const stats = statSync(path, { throwIfNoEntry: false })
  if (stats === undefined || (!stats.isDirectory() && !(await startsAsParquet(path)))) return null
  const files = stats.isDirectory() ? await filesOf(path) : { paths: [path], isWhole: true }
  let rows = 0
  for (const file of files.paths) rows += await rowsIn(file)
  return {
    rows,
    isWhole: files.isWhole,
    async *events() {
      for (const file of files.paths) yield* eventsIn(file)
    },
  }
}

async function startsAsParquet(path: string): Promise<boolean> {
  return (
    statSync(path).isFile() &&
    (await Bun.file(path)
      .slice(0, 4)
      .text()
      .catch(() => '')) === 'PAR1'
  )
}

const dayName = /^dt=\d{4}-\d\d-\d\d$/
const partName = /^part-\d{1,6}\.parquet$/
const manifestPath = /^(?:dt=\d{4}-\d\d-\d\d\/)?part-\d{1,6}\.parquet$/

async function filesOf(folder: string): Promise<{ paths: string[]; isWhole: boolean }> {
  const manifest = readManifest(folder)
  if (manifest === null) {
    const parts = (name: string) => readdirSync(join(folder, name)).filter((part) => partName.test(part))
    const days = readdirSync(folder).filter((name) => dayName.test(name))
    const paths = [...parts('.'), ...days.flatMap((day) => parts(day).map((part) => `${day}/${part}`))]
    if (paths.length > 0) return { paths: paths.toSorted().map((path) => join(folder, path)), isWhole: false }
    throw unreadable(folder, 'it has neither a manifest.json nor Parquet files')
  }
  for (const file of manifest.files) await requireEqual(folder, file)
  return { paths: manifest.files.map(({ path }) => join(folder, path)), isWhole: true }
}

const manifestBytesMax = 16 * 1024 * 1024

function readManifest(folder: string): Manifest | null {
  const path = join(folder, manifestName)
  const stats = statSync(path, { throwIfNoEntry: false })
  if (stats === undefined) return null
  if (stats.size > manifestBytesMax) throw unreadable(path, 'it is larger than 16 MiB')
  const manifest = parsed(path)
  if (
    manifest?.format === 'sightglass.events' &&
    Array.isArray(manifest.files) &&
    manifest.files.every(isListed)
  )
    return manifest as Manifest
  throw unreadable(path, 'it is not the manifest of an export')
}

function parsed(path: string): Partial<Manifest> | null {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Partial<Manifest> | null
  } catch {
    throw unreadable(path, 'it is not JSON')
  }
}

/** The path must not lead out of the folder. */
function isListed(file: Partial<ManifestFile> | null): boolean {
  return typeof file?.path === 'string' && manifestPath.test(file.path)
}

/** Before anything is stored. */
async function requireEqual(folder: string, { path, sha256 }: ManifestFile): Promise<void> {
  const hash = new Bun.CryptoHasher('sha256')
  try {
    for await (const bytes of createReadStream(join(folder, path))) hash.update(bytes as Uint8Array)
  } catch (error) {
    throw unreadable(join(folder, path), messageOf(error))
  }
  if (hash.digest('hex') !== sha256)
    throw unreadable(join(folder, path), 'it differs from what manifest.json says')
}

/** The footer takes up to sixty times as much memory. Ours have 15 KiB per 100,000 events. */
const footerBytesMax = 16 * 1024 * 1024

type Source = Awaited<ReturnType<typeof asyncBufferFromFile>>
type Metadata = Awaited<ReturnType<typeof parquetMetadataAsync>>

async function openFile(path: string): Promise<{ file: Source; metadata: Metadata }> {
  return reading(path, async () => {
    const file = await asyncBufferFromFile(path)
    const end = new DataView(await file.slice(Math.max(0, file.byteLength - 8), file.byteLength))
    if (end.byteLength < 8 || end.getUint32(0, true) > footerBytesMax)
      throw new Error(`its footer is larger than ${footerBytesMax / 1024 / 1024} MiB`)
    return { file, metadata: await parquetMetadataAsync(file, { geoparquet: false }) }
  })
}

async function rowsIn(path: string): Promise<number> {
  return Number((await openFile(path)).metadata.num_rows)
}

/** A page in memory at a time. */
async function* eventsIn(path: string): AsyncGenerator<string> {
  const { file, metadata } = await openFile(path)
  const column = metadata.schema.find(({ name, type }) => name === eventColumn && type !== undefined)
  if (column === undefined)
    throw unreadable(path, `it has no column "${eventColumn}" with the JSON of each event`)
  for (const { columns } of metadata.row_groups) {
    const chunk = columns.find(
      ({ meta_data: columnMetadata }) => columnMetadata?.path_in_schema.join('\0') === eventColumn,
    )
    if (chunk?.meta_data === undefined || column.repetition_type === 'REPEATED')
      throw unreadable(path, `its column "${eventColumn}" has values that are not strings`)
    const texts = columnTexts(file, chunk.meta_data, column.repetition_type === 'OPTIONAL')
    try {
      yield* texts
    } catch (error) {
      throw unreadable(path, `its column "${eventColumn}": ${messageOf(error)}`)
    }
  }
}

const eventColumn = 'event'

/** Whatever the reader throws for a damaged file is said about that file. */
async function reading<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw unreadable(path, messageOf(error))
  }
}

function unreadable(path: string, reason: string): AppError {
  return new AppError('not_found', `${path} cannot be read: ${reason}`)
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
