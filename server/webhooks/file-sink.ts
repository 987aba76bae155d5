/** Appends messages to an NDJSON file below the sink folder: whole lines, on disk before they count as delivered. */
import { constants } from 'node:fs'
import { lstat, mkdir, open, realpath } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/** Rejects with a file system `code`. A line that a crash left half is closed first, so that it spoils no other. */
export async function appendLines(sinkDir: string, path: string, lines: string[]): Promise<void> {
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
  } finally {
    await file.close()
  }
}

/** Makes the folders on the way and refuses any that is a link: it could lead out of the sink folder. */
async function safeFolder(sinkDir: string, below: string): Promise<string> {
  let folder = await realpath(sinkDir)
  for (const name of below === '.' ? [] : below.split('/')) {
    folder = join(folder, name)
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const stat = await lstat(folder)
    if (stat.isSymbolicLink()) throw Object.assign(new Error('a link in the sink path'), { code: 'ELOOP' })
  }
  return folder
}
