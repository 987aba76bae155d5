/**
 * Finds and reads the files of an import: names, folders, globs and standard input, compressed or not, in bounded
 * memory.
 */
import { createReadStream, fstatSync } from 'node:fs'
import { readdir, realpath, stat, open, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { openRegularFile } from '../../db/rules/regular-files.ts'

export interface LogFile {
  path: string
  bytes: number | null // as stored, compressed or not; null for a pipe
  /** Found in a folder or by a glob, where files that are not access logs are skipped. */
  isFound: boolean
}

/** A file that cannot be read, or only in part. */
export interface FileProblem {
  path: string
  message: string
}

const foldersDeepMax = 8
const filesMax = 100_000

/** The files that the arguments name, each once. */
export async function findLogs(paths: string[]): Promise<{ files: LogFile[]; problems: FileProblem[] }> {
  const files: LogFile[] = []
  const problems: FileProblem[] = []
  const realPaths = new Set<string>()
  const add = async (path: string, isFound: boolean, depth: number): Promise<void> => {
    if (files.length >= filesMax) return
    try {
      const real = await realpath(path)
      if (realPaths.has(real)) return // a link to a file or a folder that was read
      realPaths.add(real)
      const stats = await stat(real)
      if (stats.isDirectory()) {
        if (depth >= foldersDeepMax) return
        for (const name of (await readdir(path)).sort()) await add(join(path, name), true, depth + 1)
      } else if (stats.isFile()) files.push({ path, bytes: stats.size, isFound })
      else if (stats.isFIFO() && !isFound) files.push({ path, bytes: null, isFound })
      else if (!isFound) problems.push({ path, message: 'is not a file, a folder or a pipe' })
    } catch (error) {
      problems.push({ path, message: reasonOf(error) })
    }
  }
  for (const path of paths) {
    if (path === '-' || /^\/(?:dev|proc\/self)\/fd\/\d+$/.test(path))
      files.push({ path, bytes: null, isFound: false })
    else if (
      /[*?[{]/.test(path) &&
      !(await stat(path).then(
        () => true,
        () => false,
      ))
    ) {
      const names = await Array.fromAsync(new Bun.Glob(path).scan({ dot: true, onlyFiles: false }))
      if (names.length === 0) problems.push({ path, message: 'matches no file' })
      for (const name of names.sort()) await add(name, true, 0)
    } else await add(path, false, 0)
  }
  return { files, problems }
}

/** Why a file cannot be read, for people. */
export function reasonOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  const message = error instanceof Error ? error.message : String(error)
  return reasons[code] ?? (/unexpected end/i.test(message) ? reasons['Z_BUF_ERROR']! : message)
}

const reasons: { readonly [code: string]: string } = {
  ENOENT: 'does not exist (any more)',
  EACCES: 'cannot be read: permission denied',
  ELOOP: 'is a loop of symbolic links',
  ENOTDIR: 'does not exist',
  Z_BUF_ERROR: 'ends in the middle of its compressed data',
  Z_DATA_ERROR: 'has damaged compressed data',
}

const readBytes = 256 * 1024

/** A file whose first lines were read. `chunks` starts at its first byte again. */
export interface OpenLog {
  chunks(): AsyncGenerator<Uint8Array>
  /** Bytes read from the file, compressed or not. */
  readBytes(): number
}

const headBytesMax = 1024 * 1024
const headLines = 128

/**
 * Reads the head of a file: its first bytes, each a character, to the end of a line if there is one. A regular file is
 * opened again for its chunks, a pipe continues.
 */
export async function openLog(file: LogFile): Promise<{ head: string; log: OpenLog }> {
  const counter = { bytes: 0 }
  const chunks = decompressed(rawChunks(file, counter))
  const first: Uint8Array[] = []
  let bytes = 0
  let lines = 0
  let ended = false
  while (bytes < headBytesMax && lines < headLines && !ended) {
    const { value, done } = await chunks.next().catch((error: unknown) => {
      if (first.length > 0) return { value: undefined, done: true } // it is reported when it is read as a whole
      throw error
    })
    if (value !== undefined) {
      first.push(value.slice())
      bytes += value.length
      for (let index = value.indexOf(lineFeed); index >= 0; index = value.indexOf(lineFeed, index + 1))
        lines++
    }
    ended = done === true
  }
  const head = Buffer.concat(first).toString('latin1')
  const wholeLines = ended ? head.length : head.lastIndexOf('\n') + 1 || head.length
  const isPipe = file.bytes === null
  if (!isPipe) {
    first.length = 0
    await chunks.return(undefined)
  }
  counter.bytes = 0
  const log: OpenLog = {
    readBytes: () => counter.bytes,
    async *chunks() {
      if (!isPipe) yield* decompressed(rawChunks(file, counter))
      else {
        yield* first
        yield* chunks
      }
    },
  }
  return { head: head.slice(0, wholeLines), log }
}

/** The end of the part of a file before `end`, each byte a character; null for a compressed file, '' beyond its end. */
export async function textBefore(path: string, end: number, bytesMax: number): Promise<string | null> {
  const file = Bun.file(path)
  if (compressionOf(await file.slice(0, 4).bytes()) !== null) return null
  if (file.size < end) return ''
  return Buffer.from(await file.slice(Math.max(0, end - bytesMax), end).bytes()).toString('latin1')
}

const lineFeed = 10

/** Each chunk is valid until the next one is read: gigabytes pass through one buffer instead of becoming garbage. */
async function* rawChunks({ path, bytes }: LogFile, counter: { bytes: number }): AsyncGenerator<Uint8Array> {
  const handle = await (path === '-' ? openPipe() : openInput(path, bytes === null))
  if (handle === null) {
    // Bun's stream of a file starts at its beginning, not where the reader before stopped.
    yield* fstatSync(0).isFile() ? createReadStream('', { fd: 0, autoClose: false }) : Bun.stdin.stream()
    return
  }
  const buffer = new Uint8Array(readBytes) // slices of a Buffer would be no copies
  try {
    for (;;) {
      const { bytesRead } = await handle.read(buffer, 0, readBytes, null)
      if (bytesRead === 0) return
      if (bytes !== null) counter.bytes += bytesRead
      yield buffer.subarray(0, bytesRead)
    }
  } finally {
    await handle.close()
  }
}

/** A pipe that is named as input is waited for. What was a file may be one by now. */
function openInput(path: string, isPipe: boolean): Promise<FileHandle> {
  return isPipe ? open(path, 'r') : openRegularFile(path, { follows: true })
}

/** Standard input where it is a pipe that this user may open. */
async function openPipe(): Promise<FileHandle | null> {
  if (!fstatSync(0).isFIFO()) return null
  return open('/dev/stdin', 'r').catch(() => null)
}

/**
 * By the first bytes, not by the name. Several compressed streams in a row are one file. Chunks may be valid only until
 * the next one is read.
 */
export async function* decompressed(chunks: AsyncGenerator<Uint8Array>): AsyncGenerator<Uint8Array> {
  const { value: first } = await chunks.next()
  if (first === undefined) return
  const allChunks = (async function* () {
    try {
      yield first
      yield* chunks
    } finally {
      await chunks.return(undefined)
    }
  })()
  const kind = compressionOf(first)
  if (kind === null) yield* allChunks
  else if (kind === 'bzip2') yield* unpackedByProgram(streamOf(copied(allChunks)))
  // node:zlib reports no error for zstd that ends early.
  else yield* streamOf(copied(allChunks)).pipeThrough(new DecompressionStream(kind as CompressionFormat))
}

async function* copied(chunks: AsyncGenerator<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) yield chunk.slice()
}

/** By the first four bytes. Null also for bzip2 where its program is missing. */
export function compressionOf(first: Uint8Array): 'gzip' | 'zstd' | 'bzip2' | null {
  const start = Buffer.from(first.subarray(0, 4)).toString('hex')
  if (start.startsWith('1f8b')) return 'gzip'
  if (start.startsWith('425a68')) return Bun.which('bzip2') === null ? null : 'bzip2'
  return start === '28b52ffd' ? 'zstd' : null
}

/** Bun has no bzip2, and rotation with it is rare: the program that packed the log unpacks it. */
async function* unpackedByProgram(packed: ReadableStream): AsyncGenerator<Uint8Array> {
  const child = Bun.spawn(['bzip2', '-dc'], { stdin: packed, stdout: 'pipe', stderr: 'ignore' })
  try {
    yield* child.stdout
    if ((await child.exited) !== 0) throw Object.assign(new Error('bzip2 failed'), { code: 'Z_DATA_ERROR' })
  } finally {
    child.kill()
  }
}

function streamOf(chunks: AsyncGenerator<Uint8Array>): ReadableStream<Uint8Array<ArrayBuffer>> {
  return new ReadableStream({
    async pull(controller) {
      const { value } = await chunks.next()
      if (value === undefined) controller.close()
      else controller.enqueue(value as Uint8Array<ArrayBuffer>)
    },
    cancel: async () => void (await chunks.return(undefined)),
  })
}

/** Complete lines: their text, a character per byte, and the offset of its first one. */
export interface Block {
  text: string // ends with a line feed, but for the end of the file
  offset: number
  /** A line beyond the limit, of which only the beginning is in `text`. */
  isCut: boolean
}

/** Servers accept at most a few KiB for each field of a request. */
export const lineBytesMax = 64 * 1024

function latin1({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer as ArrayBuffer, byteOffset, byteLength).toString('latin1')
}

/** Splits a file into blocks of whole lines. Of a line above the limit only the first KiB is returned. */
export async function* blocksOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Block> {
  let remainder: Uint8Array = new Uint8Array()
  let offset = 0 // of `remainder`
  let isSkipping = false
  for await (let chunk of chunks) {
    if (isSkipping) {
      const end = chunk.indexOf(lineFeed)
      offset += end < 0 ? chunk.length : end + 1
      if (end < 0) continue
      chunk = chunk.subarray(end + 1)
      isSkipping = false
    }
    const end = chunk.lastIndexOf(lineFeed) + 1
    if (end > 0) {
      // The line across two chunks is a block of its own: joining it is quicker than joining the chunks.
      const joined = remainder.length === 0 ? 0 : chunk.indexOf(lineFeed) + 1
      for (const part of [
        Buffer.concat([remainder, chunk.subarray(0, joined)]),
        chunk.subarray(joined, end),
      ]) {
        if (part.length > 0) yield { text: latin1(part), offset, isCut: false }
        offset += part.length
      }
      remainder = chunk.slice(end)
    } else remainder = Buffer.concat([remainder, chunk])
    if (remainder.length > lineBytesMax) {
      yield { text: Buffer.from(remainder.subarray(0, 1024)).toString('latin1'), offset, isCut: true }
      offset += remainder.length
      remainder = new Uint8Array()
      isSkipping = true
    }
  }
  if (remainder.length > 0) yield { text: Buffer.from(remainder).toString('latin1'), offset, isCut: false }
}
