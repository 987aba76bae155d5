/**
 * Opens and reads files that an operator names. A named pipe, a device, a socket or a folder under such a name is
 * refused at once: opening a pipe waits for its other end, and a device may never end.
 */
import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from 'node:fs'
import { open, type FileHandle } from 'node:fs/promises'
import { decodeText } from './decode-text.ts'

/** `code` like the errors of the file system, so that callers treat them alike. */
class FileRefused extends Error {
  readonly code: 'ENOTFILE' | 'EFBIG'
  constructor(code: FileRefused['code'], message: string) {
    super(message)
    this.code = code
  }
}

const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants

/** A pipe that the shell opened for this process, as for `<(…)`. Its other end exists, so opening it does not wait. */
const inheritedDescriptor = /^\/(?:dev|proc\/self)\/(?:fd\/\d+|stdin)$/

/** More than any certificate, key or secret has. */
const bytesMaxDefault = 2 * 1024 * 1024

/**
 * The text of a small file, without a byte order mark. Throws the error of the file system, or `FileRefused`. Links
 * are followed.
 */
export function readTextFile(path: string, bytesMax = bytesMaxDefault): string {
  return decodeText(readSmallFile(path, bytesMax))
}

export function readSmallFile(path: string, bytesMax = bytesMaxDefault): Buffer<ArrayBuffer> {
  const isInherited = inheritedDescriptor.test(path)
  const file = openSync(path, isInherited ? O_RDONLY : O_RDONLY | O_NONBLOCK)
  try {
    if (!isInherited) requireRegular(fstatSync(file))
    return readAll(file, bytesMax)
  } finally {
    closeSync(file)
  }
}

/** The first `bytesMax` bytes of an open file, or all of a shorter one. */
export async function firstBytes(file: FileHandle, bytesMax: number): Promise<Uint8Array> {
  const buffer = Buffer.alloc(bytesMax)
  let length = 0
  for (let read = 1; read > 0 && length < buffer.length; length += read)
    read = (await file.read(buffer, length, buffer.length - length, length)).bytesRead
  return buffer.subarray(0, length)
}

/** `follows`: whether the last part of the path may be a symbolic link. */
export async function openRegularFile(path: string, { follows }: { follows: boolean }): Promise<FileHandle> {
  const handle = await open(path, O_RDONLY | O_NONBLOCK | (follows ? 0 : O_NOFOLLOW))
  try {
    requireRegular(await handle.stat())
    return handle
  } catch (error) {
    await handle.close()
    throw error
  }
}

/** Why a file cannot be read, for the end of a sentence: a code of the file system, or what it is. */
export function unreadableReason(error: unknown): string {
  if (error instanceof FileRefused) return `it ${error.message}`
  return error instanceof Error && 'code' in error ? String(error.code) : 'unreadable'
}

function requireRegular(stats: Stats): void {
  if (stats.isFile()) return
  throw new FileRefused('ENOTFILE', `is ${kindOf(stats)}, not a file`)
}

function kindOf(stats: Stats): string {
  if (stats.isDirectory()) return 'a folder'
  if (stats.isFIFO()) return 'a named pipe'
  if (stats.isSocket()) return 'a socket'
  if (stats.isSymbolicLink()) return 'a symbolic link'
  return 'a device'
}

/** Reads to the end, because files below /proc have no size. */
function readAll(file: number, bytesMax: number): Buffer<ArrayBuffer> {
  const parts: Buffer[] = []
  for (let bytes = 0; ;) {
    const buffer = Buffer.allocUnsafe(64 * 1024)
    const length = readSync(file, buffer, 0, buffer.length, null)
    if (length === 0) return Buffer.concat(parts)
    bytes += length
    if (bytes > bytesMax) throw new FileRefused('EFBIG', `is larger than ${Math.floor(bytesMax / 1024)} KiB`)
    parts.push(buffer.subarray(0, length))
  }
}
