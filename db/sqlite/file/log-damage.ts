/**
 * Finds damage in the write-ahead log that SQLite would treat as its end. SQLite stops at the first frame with a wrong
 * checksum and drops every later transaction without an error, also those that were acknowledged.
 *
 * A wrong checksum alone is no damage. kill -9 and power cuts leave half of the last transaction, and a log that was
 * begun anew has frames of the log before it behind its end. Two facts prove that the log went on (layout: "The WAL
 * File Format" of SQLite):
 *
 * - The shared memory names the last frame that was synced, for a log with the same salts.
 * - A frame continues the checksum of a commit frame. With `synchronous=FULL` each commit is synced before the next
 *   frame is written, so every frame up to that commit was on disk.
 *
 * Damage in the last transaction alone, without shared memory, looks like a power cut while it was written.
 */
import { closeSync, fstatSync, openSync, readFileSync, readSync, statSync } from 'node:fs'
import { StoreError } from '../../contract/errors.ts'

interface LogDamage {
  /** Where the damage is: a byte of the log. */
  offset: number
  /** Transactions after the damage whose end can still be seen, at least one. */
  transactions: number
  /** Bytes of the log that are sound, up to the end of a transaction. */
  soundBytes: number
}

const headerBytes = 32
const frameHeaderBytes = 24
const version = 3_007_000
const magicLittle = 0x377f0682
const magicBig = 0x377f0683
const pageBytesMin = 512
const pageBytesMax = 65_536

interface Checksum {
  first: number
  second: number
}

interface Header {
  isSound: boolean
  isLittle: boolean // order of the words that checksums add
  salts: Buffer
  stored: Checksum
  computed: Checksum
  pageBytes: number
}

interface Frame {
  index: number
  isPage: boolean // a frame has a page number; zeros have none
  isCommit: boolean
  salts: Buffer
  stored: Checksum
  bytes: Buffer // the parts that the checksum covers
}

/** For readers, which would not see what comes after the damage. */
export function requireSoundLog(path: string): void {
  const damage = findLogDamage(path)
  if (damage !== null) throw new StoreError('incomplete', logDamageText(damage))
}

export function logDamageText({ offset, transactions }: LogDamage): string {
  const count = transactions === 1 ? '1 committed transaction' : `${transactions} committed transactions`
  return (
    `the log sightglass.db-wal is damaged at byte ${offset}, and at least ${count} from there on cannot be read: ` +
    'acknowledged events may be lost. Restore the newest backup, or continue with what comes before the damage'
  )
}

/** Null for a sound log, and while another process changes the log. `path`: of the database. */
export function findLogDamage(path: string): LogDamage | null {
  const logPath = `${path}-wal`
  if ((statSync(logPath, { throwIfNoEntry: false })?.size ?? 0) <= headerBytes) return null
  const indexBefore = readLogIndex(`${path}-shm`)
  const log = openSync(logPath, 'r')
  try {
    const damage = scanLog(log, pageBytesOf(path), indexBefore)
    const indexAfter = readLogIndex(`${path}-shm`)
    return isSameIndex(indexBefore, indexAfter) ? damage : null
  } finally {
    closeSync(log)
  }
}

function scanLog(log: number, databasePageBytes: number, index: LogIndex | null): LogDamage | null {
  const header = readHeader(log, databasePageBytes)
  const scan: Scan = {
    header,
    sound: 0,
    committed: 0,
    firstBad: null,
    proofs: 0,
    commitsAfter: 0,
    previous: null,
  }
  for (const frame of framesOf(log, header.pageBytes)) scanFrame(scan, frame)

  const matchingIndex = index !== null && isOfLog(index, header, scan.firstBad?.frame ?? null) ? index : null
  if (scan.proofs === 0 && (matchingIndex === null || !lacksFrames(scan, matchingIndex))) return null
  const frameBytes = frameHeaderBytes + header.pageBytes
  const badFrame = scan.firstBad?.frame.index ?? scan.sound
  return {
    offset: header.isSound ? headerBytes + badFrame * frameBytes : 0,
    transactions: Math.max(1, scan.commitsAfter),
    // Before pages that the database has newer already, the log is of no use.
    soundBytes:
      !header.isSound || scan.committed < (matchingIndex?.copiedFrames ?? 0)
        ? 0
        : headerBytes + scan.committed * frameBytes,
  }
}

/** The shared memory belongs to this log, and not to one before it. */
function isOfLog(index: LogIndex, header: Header, firstBad: Frame | null): boolean {
  if (index.pageBytes !== header.pageBytes) return false
  const salts = header.isSound ? header.salts : firstBad?.salts // below a damaged header the first frame is bad
  return salts !== undefined && index.salts.equals(salts)
}

/**
 * A log that was copied into the database is needed too: its frames come before the pages of the database, so without
 * the last ones older pages would. Only a log without any frame leaves the database as it is.
 */
function lacksFrames({ sound, committed }: Scan, { frames, copiedFrames }: LogIndex): boolean {
  return sound < frames && !(committed === 0 && copiedFrames >= frames)
}

interface Scan {
  header: Header
  sound: number // frames up to the first bad one
  committed: number // of them, up to the last commit
  /** `computed`: its checksum as it should be; null below a damaged header. */
  firstBad: { frame: Frame; computed: Checksum | null } | null
  proofs: number
  commitsAfter: number
  previous: Frame | null
}

function scanFrame(scan: Scan, frame: Frame): void {
  const { header, previous } = scan
  if (scan.firstBad === null) {
    const seed = previous?.stored ?? header.stored
    const computed = continueChecksum(seed, frame.bytes, header.isLittle)
    const isInLog = frame.isPage && frame.salts.equals(header.salts)
    if (header.isSound && isInLog && isSame(computed, frame.stored)) {
      scan.sound = frame.index + 1
      if (frame.isCommit) scan.committed = scan.sound
    } else {
      scan.firstBad = { frame, computed: header.isSound ? computed : null }
      if (!header.isSound && followsHeader(header, frame)) countProof(scan, frame.isCommit)
    }
  } else if (followsFrame(scan, frame)) {
    // Below a damaged header nothing is sound, so a commit is proof enough: the header was synced before any frame.
    countProof(scan, previous?.isCommit === true || (!header.isSound && frame.isCommit))
  }
  const isCurrent = header.isSound ? frame.salts.equals(header.salts) : true
  if (scan.firstBad !== null && frame.isPage && frame.isCommit && isCurrent) scan.commitsAfter++
  scan.previous = frame
}

function countProof(scan: Scan, isProof: boolean): void {
  if (isProof) scan.proofs++
}

/** The first frame below a damaged header: either the header's checksum or what it covers is intact. */
function followsHeader({ stored, computed, isLittle }: Header, frame: Frame): boolean {
  if (!frame.isPage) return false
  return [stored, computed].some((seed) =>
    isSame(continueChecksum(seed, frame.bytes, isLittle), frame.stored),
  )
}

/** Behind the first bad frame: whether the frame was written after the one before it, into the same log. */
function followsFrame({ header, previous, firstBad }: Scan, frame: Frame): boolean {
  if (previous === null || firstBad === null || !frame.isPage) return false
  if (!frame.salts.equals(header.isSound ? header.salts : previous.salts)) return false
  const seeds = [previous.stored]
  // Only the stored checksum of the bad frame may be damaged.
  if (previous === firstBad.frame && firstBad.computed !== null) seeds.push(firstBad.computed)
  return seeds.some((seed) => isSame(continueChecksum(seed, frame.bytes, header.isLittle), frame.stored))
}

function readHeader(log: number, databasePageBytes: number): Header {
  const bytes = readAt(log, 0, headerBytes)
  const magic = bytes.readUInt32BE(0)
  const pageBytes = bytes.readUInt32BE(8)
  const stored = checksumIn(bytes, 24)
  const checksumOf = (isLittle: boolean) =>
    continueChecksum({ first: 0, second: 0 }, bytes.subarray(0, 24), isLittle)
  const salts = bytes.subarray(16, 24)
  const isBig = magic === magicBig && isSame(stored, checksumOf(false))
  const computed = checksumOf(!isBig)
  const isSound =
    (isBig || magic === magicLittle) &&
    bytes.readUInt32BE(4) === version &&
    isPageSize(pageBytes) &&
    isSame(stored, computed)
  return {
    isSound,
    isLittle: !isBig,
    salts,
    stored,
    computed,
    pageBytes: isSound ? pageBytes : databasePageBytes,
  }
}

function* framesOf(log: number, pageBytes: number): Generator<Frame> {
  const frameBytes = frameHeaderBytes + pageBytes
  const frames = Math.floor((fstatSync(log).size - headerBytes) / frameBytes)
  for (let index = 0; index < frames; index++) {
    const bytes = readAt(log, headerBytes + index * frameBytes, frameBytes)
    const salts = Buffer.from(bytes.subarray(8, 16))
    const stored = checksumIn(bytes, 16)
    const isPage = bytes.readUInt32BE(0) !== 0
    const isCommit = bytes.readUInt32BE(4) !== 0
    // The checksum covers the page number, the size of the database and the page.
    bytes.copyWithin(16, 0, 8)
    yield { index, isPage, isCommit, salts, stored, bytes: bytes.subarray(16) }
  }
}

function continueChecksum(seed: Checksum, bytes: Buffer, isLittle: boolean): Checksum {
  const words = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let first = seed.first
  let second = seed.second
  for (let offset = 0; offset < bytes.length; offset += 8) {
    first = (first + words.getUint32(offset, isLittle) + second) >>> 0
    second = (second + words.getUint32(offset + 4, isLittle) + first) >>> 0
  }
  return { first, second }
}

function checksumIn(bytes: Buffer, offset: number): Checksum {
  return { first: bytes.readUInt32BE(offset), second: bytes.readUInt32BE(offset + 4) }
}

function isSame(left: Checksum, right: Checksum): boolean {
  return left.first === right.first && left.second === right.second
}

function isPageSize(bytes: number): boolean {
  return bytes >= pageBytesMin && bytes <= pageBytesMax && (bytes & (bytes - 1)) === 0
}

/** Zeros beyond the end of the file. */
function readAt(file: number, offset: number, length: number): Buffer {
  const bytes = Buffer.alloc(length)
  let end = 0
  while (end < length) {
    const read = readSync(file, bytes, end, length - end, offset + end)
    if (read === 0) break
    end += read
  }
  return bytes
}

/** According to the database's own header, for a log whose header is damaged. */
function pageBytesOf(path: string): number {
  const database = openSync(path, 'r')
  try {
    const stored = readAt(database, 16, 2).readUInt16BE(0)
    const bytes = stored === 1 ? pageBytesMax : stored
    return isPageSize(bytes) ? bytes : pageBytesMin
  } finally {
    closeSync(database)
  }
}

/** The state of the log in the shared memory (layout: "WAL-Index File Format" of SQLite). */
interface LogIndex {
  frames: number // up to the last commit that was synced
  copiedFrames: number // of them, those that the database has too
  pageBytes: number
  salts: Buffer
  bytes: Buffer
}

const indexBytes = 48

/** Null without shared memory, and when a crash left it half written. */
export function readLogIndex(path: string): LogIndex | null {
  if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) < 100) return null
  const bytes = readFileSync(path).subarray(0, 100)
  const header = bytes.subarray(0, indexBytes)
  if (!header.equals(bytes.subarray(indexBytes, 2 * indexBytes)) || header[12] !== 1) return null
  const stored = { first: header.readUInt32LE(40), second: header.readUInt32LE(44) }
  if (!isSame(continueChecksum({ first: 0, second: 0 }, header.subarray(0, 40), true), stored)) return null
  const pageSize = header.readUInt16LE(14)
  return {
    frames: header.readUInt32LE(16),
    copiedFrames: bytes.readUInt32LE(96),
    pageBytes: pageSize === 1 ? pageBytesMax : pageSize,
    salts: header.subarray(32, 40),
    bytes: header,
  }
}

function isSameIndex(indexBefore: LogIndex | null, indexAfter: LogIndex | null): boolean {
  if (indexBefore === null || indexAfter === null) return indexBefore === indexAfter
  return indexBefore.bytes.equals(indexAfter.bytes)
}
