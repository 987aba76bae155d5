/** Appends messages to an NDJSON file below the sink folder: whole lines, on disk before they count as delivered. */
import { constants } from 'node:fs'
import { lstat, mkdir, open, realpath } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { syncFolder } from '../../../db/rules/durable-files.ts'

/** The last append of each file: a large write is several system calls, and those of two must not mix. */
const lastAppends = new Map<string, Promise<void>>()

/** Rejects with a file system `code`. Calls for one file are done in the order in which they came. */
export function appendLines(sinkDir: string, path: string, lines: string[]): Promise<void> {
  const key = join(sinkDir, path)
  const before = lastAppends.get(key) ?? Promise.resolve()
  const done = before.then(() => append(sinkDir, path, lines))
  const settled = done
    .catch(() => undefined)
    .then(() => {
      if (lastAppends.get(key) === settled) lastAppends.delete(key)
    })
  lastAppends.set(key, settled)
  return done
}

/** A line that a crash left half is closed first, so that it spoils no other. */
async function append(sinkDir: string, path: string, lines: string[]): Promise<void> {
  const folder = await safeFolder(sinkDir, dirname(path))
  const { O_APPEND, O_CREAT, O_NOFOLLOW, O_RDWR } = constants
  const file = await open(
    join(folder, path.split('/').at(-1)!),
    O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW,
    0o600,
  )
  try {
    const { size } = await file.stat()
    const last = Buffer.alloc(1, '\n')
    if (size > 0) await file.read(last, 0, 1, size - 1)
    const text = `${lines.join('\n')}\n`
    await file.writeFile(last[0] === 10 ? text : `\n${text}`)
    await file.sync()
    if (size === 0) syncFolder(folder) // a new file: its name must last too
  } finally {
    await file.close()
  }
}

/** Makes the folders on the way and refuses any that is a link: it could lead out of the sink folder. */
async function safeFolder(sinkDir: string, below: string): Promise<string> {
  let folder = await realpath(sinkDir)
  for (const name of below === '.' ? [] : below.split('/')) {
    folder = join(folder, name)
    if ((await mkdir(folder, { recursive: true, mode: 0o700 })) !== undefined) syncFolder(dirname(folder))
    const stat = await lstat(folder)
    if (stat.isSymbolicLink()) throw Object.assign(new Error('a link in the sink path'), { code: 'ELOOP' })
  }
  return folder
}
