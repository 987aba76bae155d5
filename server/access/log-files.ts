/** The files of a log that is followed: the log itself, what rotation made of it, and reading one from an offset. */
import { readdir, stat, type FileHandle } from 'node:fs/promises'
import { basename, dirname, extname, join } from 'node:path'
import { byteOrderMark } from './formats.ts'
import { withinTime } from '../system/slow-files.ts'
import { watchedPath, type WatchedPath } from '../system/watched-path.ts'
import { sourceId } from './agent-events.ts'
import { compressionOf, decompressed, lineBytesMax, reasonOf } from './input.ts'
import { lineBefore, tailHash } from './line-batch.ts'

/** One file of the set. */
export interface LogMember {
  path: string
  id: string // device and inode
  bytes: number
  mtimeMs: number
  isCurrent: boolean // what the server writes to; the others are older
}

const compressions = String.raw`(?:\.(?:gz|zst|bz2))?`

/** Whether rotation may have given a file this name: `log.1`, `log.2.gz`, `log-20261122.gz`, `access-20261122.log`. */
export function isRotationOf(log: string): (name: string) => boolean {
  const extension = extname(log)
  const stem = log.slice(0, log.length - extension.length)
  const numbered = String.raw`[.-]\d[\dT:._-]*|\.old`
  const dated = String.raw`[.-]\d{4}[.-]?\d\d[.-]?\d\d[\dT:._-]*`
  const names = [`${RegExp.escape(log)}(?:${numbered})`]
  // Only with a date: access-2.log may be the log of another server.
  if (extension !== '' && stem !== '') names.push(`${RegExp.escape(stem)}${dated}${RegExp.escape(extension)}`)
  const pattern = new RegExp(`^(?:${names.join('|')})${compressions}$`)
  return (name) => pattern.test(name)
}

/** A folder that changed less than this ago may change again without another time. */
const folderSettlesMs = 2_000
const rotatedMax = 1_000

/**
 * Lists the set, oldest file first. The folder is read only when its time changed, so an idle log costs two `stat`.
 * `problem` says why the log itself cannot be read.
 */
export function memberLister(path: string, now: () => number) {
  const folder = dirname(path)
  const isRotation = isRotationOf(basename(path))
  let listedMs = Number.NaN
  let names = [] as string[]
  const memberOf = async (name: string): Promise<LogMember | null> => {
    const path = join(folder, name)
    const stats = await withinTime({ path }, () => stat(path))
    if (!stats.isFile()) throw Object.assign(new Error('is not a file'), { code: 'not_a_file' })
    const id = `${stats.dev}:${stats.ino}`
    return { path, id, bytes: stats.size, mtimeMs: stats.mtimeMs, isCurrent: false }
  }
  return async (): Promise<{ members: LogMember[]; problem: unknown }> => {
    const { mtimeMs } = await withinTime({ path }, () => stat(folder))
    if (mtimeMs !== listedMs) {
      const fileNames = await withinTime({ path }, () => readdir(folder))
      names = fileNames.filter(isRotation).sort().slice(0, rotatedMax)
      listedMs = now() - mtimeMs < folderSettlesMs ? Number.NaN : mtimeMs
    }
    let problem: unknown = null
    const current = await memberOf(basename(path)).catch((error: unknown) => {
      problem = error
      return null
    })
    // A rotated file that vanishes or cannot be read is no problem of the log.
    const rotated = (await Promise.all(names.map((name) => memberOf(name).catch(() => null)))).filter(
      (member) => member !== null,
    )
    const memberIds = new Set(current === null ? [] : [current.id])
    const members = rotated.sort(oldestFirst).filter(({ id }) => !memberIds.has(id) && memberIds.add(id))
    if (current !== null) members.push({ ...current, isCurrent: true })
    return { members, problem }
  }
}

/**
 * By time, and of files of one second by number: `log.2` is older than `log.1.gz`, although a program that compresses
 * may cut what is below a millisecond off the time.
 */
export function oldestFirst(left: Pick<LogMember, 'path' | 'mtimeMs'>, right: typeof left): number {
  const second = Math.floor(left.mtimeMs / 1_000)
  const otherSecond = Math.floor(right.mtimeMs / 1_000)
  return (
    second - otherSecond ||
    rotationOf(right.path) - rotationOf(left.path) ||
    left.mtimeMs - right.mtimeMs ||
    (left.path < right.path ? -1 : 1)
  )
}

/** The number of a rotated file; 0 for one that is named by its date. */
function rotationOf(path: string): number {
  return Number(/\.(\d{1,4})(?:\.(?:gz|zst))?$/.exec(path)?.[1] ?? 0)
}

const headBytes = 64 * 1024
const readBytes = 256 * 1024

/** An open file of the set. Offsets are those of its decompressed content. */
export interface OpenMember {
  id: string
  bytes: number // when it was opened
  mtimeMs: number
  isCompressed: boolean
  /** Its first bytes, each a character. */
  head(bytes?: number): Promise<string>
  /** The content from an offset to its present end. */
  chunks(from: number): AsyncGenerator<Uint8Array>
  /** Present size and links; a file without links was deleted. */
  facts(): Promise<{ bytes: number; isDeleted: boolean }>
  close(): Promise<void>
}

export async function openMember(
  path: string,
  watched: WatchedPath = watchedPath(path, { dataDir: null, keyFiles: [] }),
): Promise<OpenMember> {
  const handle = await watched.open(path)
  const readAt = (offset: number, bytes: number) => withinTime({ path }, () => bytesAt(handle, offset, bytes))
  const close = () => withinTime({ path }, () => handle.close())
  try {
    const { dev, ino, size, mtimeMs } = await withinTime({ path }, () => handle.stat())
    const isCompressed = compressionOf(await readAt(0, 4)) !== null
    const plain = (from: number) => plainChunks(readAt, from)
    const chunks = isCompressed ? (from: number) => skipped(undamaged(plain(0)), from) : plain
    return {
      id: `${dev}:${ino}`,
      bytes: size,
      mtimeMs,
      isCompressed,
      chunks,
      async head(bytes = headBytes) {
        if (!isCompressed) return (await readAt(0, bytes)).toString('latin1')
        const parts: Uint8Array[] = []
        let length = 0
        for await (const chunk of chunks(0)) {
          parts.push(chunk)
          length += chunk.length
          if (length >= bytes) break
        }
        return Buffer.concat(parts).subarray(0, bytes).toString('latin1')
      },
      async facts() {
        const { size: bytes, nlink } = await withinTime({ path }, () => handle.stat())
        return { bytes, isDeleted: nlink === 0 }
      },
      close,
    }
  } catch (error) {
    await close().catch(() => undefined)
    throw error
  }
}

type ReadAt = (offset: number, bytes: number) => Promise<Buffer>

async function bytesAt(handle: FileHandle, offset: number, bytes: number): Promise<Buffer> {
  const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(bytes), 0, bytes, offset)
  return buffer.subarray(0, bytesRead)
}

async function* plainChunks(readAt: ReadAt, from: number): AsyncGenerator<Uint8Array> {
  for (let offset = from; ;) {
    const chunk = await readAt(offset, readBytes)
    if (chunk.length === 0) return
    offset += chunk.length
    yield chunk
  }
}

/** The decompressed content. What cannot be decompressed is an error with a code, like other errors of files. */
async function* undamaged(chunks: AsyncGenerator<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* decompressed(chunks)
  } catch (error) {
    throw Object.assign(new Error(reasonOf(error)), { code: damagedCode })
  }
}

export const damagedCode = 'damaged'

async function* skipped(chunks: AsyncGenerator<Uint8Array>, bytes: number): AsyncGenerator<Uint8Array> {
  let remainingBytes = bytes
  for await (const chunk of chunks) {
    if (chunk.length > remainingBytes) yield remainingBytes === 0 ? chunk : chunk.subarray(remainingBytes)
    remainingBytes = Math.max(0, remainingBytes - chunk.length)
  }
}

const identityBytes = 1024

/** The identity of a file by its head; null while its first line is not whole. */
export function identityOf(head: string): string | null {
  let end = head.startsWith(byteOrderMark) ? byteOrderMark.length : 0
  for (;;) {
    if (end >= identityBytes) return sourceId(head)
    const isComment = head[end] === '#'
    const feed = head.indexOf('\n', end)
    if (feed < 0) return head.length >= identityBytes ? sourceId(head) : null
    if (!isComment) return sourceId(head)
    end = feed + 1
  }
}

/** A line with its end. Of a longer one this much is hashed. */
const tailBytes = lineBytesMax + 2

/** The last line before `end`, as much of it as is hashed. */
export function lastLine(text: string, end = text.length): string {
  const part = text.slice(Math.max(0, end - tailBytes), end)
  return lineBefore(part, part.length)
}

/** Whether the line with this hash ends at the position; `short` when the file ends before. */
export async function checkTail(
  file: OpenMember,
  position: number,
  tail: string,
): Promise<'same' | 'other' | 'short'> {
  const from = Math.max(0, position - tailBytes)
  const parts: Uint8Array[] = []
  let length = 0
  for await (const chunk of file.chunks(from)) {
    parts.push(chunk)
    length += chunk.length
    if (length >= position - from) break
  }
  if (length < position - from) return 'short'
  const text = Buffer.concat(parts)
    .subarray(0, position - from)
    .toString('latin1')
  return tailHash(lastLine(text)) === tail ? 'same' : 'other'
}

/** Whole lines, each character a byte. */
export interface LineBlock {
  text: string
  from: number
  to: number
  /** Set for a line above the limit, of which only the beginning is in `text`: the hash of its end. */
  cutTail: string | null
}

const cutBytes = 1024

/** Splits content into blocks of whole lines; returns what follows the last of them. */
export async function* lineBlocks(
  chunks: AsyncIterable<Uint8Array>,
  from: number,
): AsyncGenerator<LineBlock, LineBlock> {
  let remainder: Buffer = Buffer.alloc(0)
  let previousTail: Buffer = Buffer.alloc(0) // the end of what was read
  let start = from
  let length = 0 // of the remainder; of a long line only the beginning is in `remainder`
  const cut = (end: Uint8Array): LineBlock => {
    const text = Buffer.concat([previousTail, end]).toString('latin1')
    return {
      text: remainder.toString('latin1'),
      from: start,
      to: start + length,
      cutTail: tailHash(lastLine(text)),
    }
  }
  for await (const chunk of chunks) {
    let lines = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length)
    if (length > lineBytesMax) {
      const stop = lines.indexOf(lineFeed) + 1
      length += stop === 0 ? lines.length : stop
      if (stop > 0) {
        yield cut(lines.subarray(0, stop))
        start += length
        length = 0
        remainder = Buffer.alloc(0)
        lines = lines.subarray(stop)
      }
    }
    if (length <= lineBytesMax) {
      const end = lines.lastIndexOf(lineFeed) + 1
      if (end > 0) {
        const text = Buffer.concat([remainder, lines.subarray(0, end)]).toString('latin1')
        yield { text, from: start, to: start + text.length, cutTail: null }
        start += text.length
        remainder = Buffer.from(lines.subarray(end))
      } else remainder = Buffer.concat([remainder, lines])
      length = remainder.length
      if (length > lineBytesMax) remainder = Buffer.from(remainder.subarray(0, cutBytes))
    }
    previousTail = Buffer.from(Buffer.concat([previousTail, chunk.subarray(-tailBytes)]).subarray(-tailBytes))
  }
  if (length > lineBytesMax) return cut(Buffer.alloc(0))
  return { text: remainder.toString('latin1'), from: start, to: start + length, cutTail: null }
}

const lineFeed = 10
