/**
 * Writes the archives that packages consist of: tar, cpio, ar and gzip. No time, owner or order of the build machine is
 * in them, so the same files give the same bytes.
 */
import { createHash } from 'node:crypto'

/** A large file whose compressed form every archive shares: a gzip stream may consist of several members. */
export interface Packed {
  bytes: Uint8Array
  gzip: Uint8Array
}

export type Part = Uint8Array | Packed

export interface Entry {
  path: string // relative; a folder ends with a slash
  content?: Part | string
  mode?: number // by default 0644, of a folder 0755
  link?: string // target of a symbolic link
  owner?: number // user and group, by default 0
}

/** Of every file, in seconds: 2000-01-01. Tools warn of files from 1970. */
export const modifiedAt = 946_684_800

export const bytesOf = (part: Part): Uint8Array => ('gzip' in part ? part.bytes : part)

export function contentOf({ content = '' }: Entry): Part {
  return typeof content === 'string' ? Buffer.from(content) : content
}

export const sizeOf = (entry: Entry): number => bytesOf(contentOf(entry)).length
export const isFolder = ({ path }: Entry): boolean => path.endsWith('/')

function modeOf(entry: Entry): number {
  if (entry.link !== undefined) return 0o777
  return entry.mode ?? (isFolder(entry) ? 0o755 : 0o644)
}

/** Sorted, each folder before what it contains; folders that are not listed are added. */
export function withFolders(entries: Entry[]): Entry[] {
  const entriesByPath = new Map<string, Entry>()
  for (const { path } of entries)
    for (let slash = path.indexOf('/'); slash >= 0; slash = path.indexOf('/', slash + 1))
      entriesByPath.set(path.slice(0, slash + 1), { path: path.slice(0, slash + 1) })
  for (const entry of entries) entriesByPath.set(entry.path, entry)
  return [...entriesByPath.values()].sort((a, b) => (a.path < b.path ? -1 : 1))
}

const zeros = (count: number): Uint8Array => Buffer.alloc(count)

/** The blocks of a ustar archive (POSIX.1-1988). */
export function tar(entries: Entry[]): Part[] {
  const parts = entries.flatMap((entry) => {
    const content = contentOf(entry)
    return [tarHeader(entry), content, zeros(-bytesOf(content).length & 511)]
  })
  return [...parts, zeros(1_024)]
}

function tarHeader(entry: Entry): Uint8Array {
  const { path: name, link = '', owner = 0 } = entry
  if (Buffer.byteLength(name) > 100) throw new Error(`the path ${name} is too long for tar`)
  const header = Buffer.alloc(512)
  const octal = (value: number, offset: number, width: number): void => {
    header.write(`${value.toString(8).padStart(width - 1, '0')}\0`, offset)
  }
  header.write(name, 0)
  octal(modeOf(entry), 100, 8)
  octal(owner, 108, 8)
  octal(owner, 116, 8)
  octal(sizeOf(entry), 124, 12)
  octal(modifiedAt, 136, 12)
  header.write('        ', 148) // the checksum counts itself as blanks
  header.write(link !== '' ? '2' : isFolder(entry) ? '5' : '0', 156)
  header.write(link, 157)
  header.write('ustar\x0000', 257)
  octal(
    header.reduce((sum, byte) => sum + byte, 0),
    148,
    7,
  )
  return header
}

const fileTypes = { folder: 0o040000, file: 0o100000, link: 0o120000 }

/** The mode with the type of the file, as cpio and RPM store it. */
export function typedMode(entry: Entry): number {
  const type = entry.link !== undefined ? 'link' : isFolder(entry) ? 'folder' : 'file'
  return fileTypes[type] | modeOf(entry)
}

/** The parts of a cpio archive in the format `newc`, with paths below `./` as in an RPM. */
export function cpio(entries: Entry[]): Part[] {
  const parts = entries.flatMap((entry, index) => {
    const content = entry.link === undefined ? contentOf(entry) : Buffer.from(entry.link)
    const size = bytesOf(content).length
    const name = `./${entry.path.replace(/\/$/, '')}`
    return [
      cpioHeader(name, index + 1, typedMode(entry), isFolder(entry) ? 2 : 1, size),
      content,
      zeros(-size & 3),
    ]
  })
  return [...parts, cpioHeader('TRAILER!!!', 0, 0, 1, 0)]
}

function cpioHeader(name: string, inode: number, mode: number, links: number, size: number): Uint8Array {
  const fields = [inode, mode, 0, 0, links, modifiedAt, size, 0, 0, 0, 0, Buffer.byteLength(name) + 1, 0]
  const text = `070701${fields.map((field) => field.toString(16).padStart(8, '0')).join('')}${name}\0`
  return Buffer.from(text.padEnd(text.length + (-Buffer.byteLength(text) & 3), '\0'))
}

/** One gzip stream: a member for each packed file, and one for all that is between two of them. */
export function gzip(parts: Part[]): Uint8Array {
  const members: Uint8Array[] = []
  let loose: Uint8Array[] = []
  const flush = (): void => {
    if (loose.length > 0) members.push(pack(Buffer.concat(loose)).gzip)
    loose = []
  }
  for (const part of parts) {
    if ('gzip' in part) {
      flush()
      members.push(part.gzip)
    } else loose.push(part)
  }
  flush()
  return Buffer.concat(members)
}

export function pack(bytes: Uint8Array<ArrayBuffer>): Packed {
  return { bytes, gzip: Bun.gzipSync(bytes, { library: 'libdeflate', level: 6 }) }
}

export function digest(algorithm: 'md5' | 'sha1' | 'sha256', ...parts: Part[]): string {
  const hash = createHash(algorithm)
  for (const part of parts) hash.update(bytesOf(part))
  return hash.digest('hex')
}

/** The archive of a Debian package: names of at most 16 characters, each file at an even offset. */
export function ar(files: { name: string; content: Uint8Array }[]): Uint8Array {
  const parts = files.flatMap(({ name, content }) => {
    const fields = [
      name.padEnd(16),
      String(modifiedAt).padEnd(12),
      '0'.padEnd(6),
      '0'.padEnd(6),
      '100644'.padEnd(8),
    ]
    const header = `${fields.join('')}${String(content.length).padEnd(10)}\`\n`
    return [Buffer.from(header), content, Buffer.from('\n'.repeat(content.length & 1))]
  })
  return Buffer.concat([Buffer.from('!<arch>\n'), ...parts])
}
