/** Appends events to an NDJSON file in the sink folder: whole lines, fsynced before they count as delivered. */
import { constants } from 'node:fs'
import { lstat, mkdir, open, realpath } from 'node:fs/promises'
import { dirname, isAbsolute, join, normalize, relative } from 'node:path'
import { messageLines } from '../../../db/rules/batch-body.ts'
import { syncFolderLater } from '../../../db/rules/durable-files.ts'
import { withinTime } from '../../system/slow-files.ts'
import { RefusedUrl, type Sink } from './sink.ts'

interface FileTarget {
  sinkDir: string
  path: string // relative to the sink folder
}

export const file: Sink<FileTarget> = {
  schemes: ['file:'],
  parse(url, text, { sinkDir }) {
    if (sinkDir === null)
      throw new RefusedUrl('file sinks are disabled; the operator enables them with --sink-dir')
    return { sinkDir, path: filePath(text, url, sinkDir) }
  },
  check: ({ path }) => `file:${path}`,
  async send({ sinkDir, path }, { delivery }) {
    await appendLines(sinkDir, path, messageLines(delivery.body))
    return null
  },
}

const segmentForm = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}$/

/** `file:name.ndjson` is in the sink folder; an absolute path must be below it. */
function filePath(text: string, url: URL, sinkDir: string): string {
  if (url.hostname !== '' || url.search !== '') throw new RefusedUrl('a file URL has no host and no query')
  const isFullPath = /^file:[\\/]/i.test(text)
  const path = isFullPath ? relative(normalize(sinkDir), normalize(url.pathname)) : url.pathname.slice(1)
  const segments = path.split('/')
  if (isAbsolute(path) || segments.some((segment) => !segmentForm.test(segment))) {
    throw new RefusedUrl('its path must be plain names below the sink folder')
  }
  if (!path.endsWith('.ndjson') || segments.length > 4) {
    throw new RefusedUrl('its path must end in .ndjson and have at most 4 parts')
  }
  return join(...segments)
}

/** The last append of each file. A large write is several system calls, and those of two appends must not mix. */
const lastAppends = new Map<string, Promise<void>>()

/** Rejects with a file system `code`. Appends to one file run in the order of the calls. */
export function appendLines(sinkDir: string, path: string, lines: string[]): Promise<void> {
  const key = join(sinkDir, path)
  const previous = lastAppends.get(key) ?? Promise.resolve()
  // The folder may be a share that does not answer.
  const pendingAppend = previous
    .then(() => withinTime({ path: key }, () => append(sinkDir, path, lines)))
    .catch(localError)
  const settled = pendingAppend
    .catch(() => undefined)
    .then(() => {
      if (lastAppends.get(key) === settled) lastAppends.delete(key)
    })
  lastAppends.set(key, settled)
  return pendingAppend
}

/** A receiver's time-out has the same code as a share that hangs. */
function localError(error: unknown): never {
  if (error instanceof Error && 'code' in error && error.code === 'ETIMEDOUT')
    throw Object.assign(new Error('the sink folder does not answer', { cause: error }), { code: 'EHANG' })
  throw error
}

/** Ends an incomplete line that a crash left behind, so that it does not corrupt the next one. */
async function append(sinkDir: string, path: string, lines: string[]): Promise<void> {
  const folder = await safeFolder(sinkDir, dirname(path))
  const { O_APPEND, O_CREAT, O_NOFOLLOW, O_NONBLOCK, O_RDWR } = constants
  const handle = await open(
    join(folder, path.split('/').at(-1)!),
    O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK,
    0o600,
  )
  try {
    const stats = await handle.stat()
    if (!stats.isFile()) throw Object.assign(new Error('the sink is no file'), { code: 'ENOTFILE' })
    const { size } = stats
    const last = Buffer.alloc(1, '\n')
    if (size > 0) await handle.read(last, 0, 1, size - 1)
    const text = `${lines.join('\n')}\n`
    await handle.writeFile(last[0] === 10 ? text : `\n${text}`)
    await handle.sync()
    if (size === 0) await syncFolderLater(folder) // makes the name of a new file durable
  } finally {
    await handle.close()
  }
}

/** Creates the folders of the path and refuses symbolic links, which could lead out of the sink folder. */
async function safeFolder(sinkDir: string, subfolder: string): Promise<string> {
  let folder = await realpath(sinkDir)
  for (const name of subfolder === '.' ? [] : subfolder.split('/')) {
    folder = join(folder, name)
    if ((await mkdir(folder, { recursive: true, mode: 0o700 })) !== undefined)
      await syncFolderLater(dirname(folder))
    const stat = await lstat(folder)
    if (stat.isSymbolicLink())
      throw Object.assign(new Error('a symbolic link in the sink path'), { code: 'ELOOP' })
  }
  return folder
}
