/**
 * Opens a file that an operator named once and that is read again and again, such as a log or a robots.txt.
 *
 * Whoever may write to its folder can put a link in its place. Links of the path that are there at the start are the
 * operator's choice. Later a link may lead only to where it is, or led at the start, and never to the data folder.
 */
import { lstat, readdir, readlink, realpath, stat, type FileHandle } from 'node:fs/promises'
import { dirname, join, parse, resolve, sep } from 'node:path'
import { openRegularFile } from '../../db/rules/regular-files.ts'
import { withinTime } from './slow-files.ts'

/** What is never read under another name. */
export interface ProtectedFiles {
  dataDir: string | null
  keyFiles: readonly string[] // outside of the data folder
}

/** Of a server: its data folder, and the keys that it reads elsewhere. */
export function protectedFiles(config: {
  dataDir: string
  keyFile: string | null
  tls: { keyFile: string } | null
}): ProtectedFiles {
  const { dataDir, keyFile, tls } = config
  return { dataDir, keyFiles: [keyFile, tls?.keyFile ?? null].filter((path) => path !== null) }
}

/** A file that may not be read. The message continues its name. */
class RefusedFile extends Error {
  readonly code = 'refused'
}

export interface WatchedPath {
  /** Opens the named file, or one beside it that rotation made. */
  open(path: string): Promise<FileHandle>
}

export function watchedPath(namedPath: string, protectedFiles: ProtectedFiles): WatchedPath {
  let folders: readonly string[] | null = null
  return {
    open: (path) =>
      withinTime({ path, discard: (late) => void late.close() }, async () => {
        folders ??= await allowedFolders(namedPath)
        return openAllowed(path, folders, protectedFiles)
      }),
  }
}

const linksMax = 40

/**
 * The real folder of the named file, and for each link in the path the folders that hold it and its target: a release
 * folder behind `current`, or a pod's folder behind /var/log/containers.
 */
async function allowedFolders(namedPath: string): Promise<string[]> {
  const folders = new Set([await realpath(dirname(namedPath))])
  const target = await realpath(namedPath).catch(() => null)
  if (target !== null) folders.add(dirname(target))
  const { root } = parse(resolve(namedPath))
  let path = resolve(namedPath)
  for (let links = 0; links < linksMax; links++) {
    const link = await firstLink(path)
    if (link === null) break
    folders.add(await realpath(dirname(link.path)))
    path = resolve(dirname(link.path), link.target, link.rest)
  }
  // A link in the root folder, such as /data, would allow everything.
  return [...folders].filter((folder) => folder !== root)
}

interface Link {
  path: string
  target: string
  rest: string // of the path, below the link
}

async function firstLink(path: string): Promise<Link | null> {
  const { root } = parse(path)
  const names = path.slice(root.length).split(sep)
  let currentPath = root
  for (const [index, name] of names.entries()) {
    currentPath = join(currentPath, name)
    const stats = await lstat(currentPath).catch(() => null)
    if (stats?.isSymbolicLink() === true)
      return {
        path: currentPath,
        target: await readlink(currentPath),
        rest: names.slice(index + 1).join(sep),
      }
  }
  return null
}

async function openAllowed(
  path: string,
  folders: readonly string[],
  { dataDir, keyFiles }: ProtectedFiles,
): Promise<FileHandle> {
  const real = await realpath(path)
  if (dataDir !== null && isBelow(real, await realpath(dataDir).catch(() => resolve(dataDir))))
    throw new RefusedFile('leads into the data folder of Sightglass, so it is not read')
  if (!folders.some((folder) => isBelow(real, folder)))
    throw new RefusedFile(
      `is a link that leads out of ${folders[0]}, which it did not at the start, so it is not read`,
    )
  const handle = await openRegularFile(real, { follows: false })
  try {
    await requireSamePath(handle, real)
    await requireNoSecret(handle, dataDir, keyFiles)
    return handle
  } catch (error) {
    await handle.close()
    throw error
  }
}

function isBelow(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : `${folder}${sep}`)
}

/** A folder of the path may have become a link between looking and opening. */
async function requireSamePath(handle: FileHandle, real: string): Promise<void> {
  const opened = await readlink(`/proc/self/fd/${handle.fd}`).catch(() => realpath(real))
  if (opened === real) return
  throw Object.assign(new Error('was replaced while it was opened'), { code: 'ENOENT' })
}

/** By device and inode, because a hard link has no other path. */
async function requireNoSecret(
  handle: FileHandle,
  dataDir: string | null,
  keyFiles: readonly string[],
): Promise<void> {
  const { dev, ino } = await handle.stat()
  const names = dataDir === null ? [] : await readdir(dataDir).catch(() => [])
  const secrets = [...keyFiles, ...names.map((name) => join(dataDir ?? '', name))]
  for (const secret of secrets) {
    const stats = await stat(secret).catch(() => null)
    if (stats?.isFile() === true && stats.dev === dev && stats.ino === ino)
      throw new RefusedFile('is a file of Sightglass under another name, so it is not read')
  }
}
