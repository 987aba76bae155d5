/**
 * Follows a log across rotation and hands its lines to the appliance, each exactly once.
 *
 * The position of every file is stored in the transaction of its events, under the identity of the file, so nothing is
 * remembered here that a restart would lose. Each step looks at all files of the log, oldest first: a file that was
 * renamed, copied or compressed has the same identity, and its reading continues where it was.
 */
import { watch } from 'node:fs'
import { basename, dirname } from 'node:path'
import { AppError } from '../errors.ts'
import { watchedPath, type WatchedPath } from '../system/watched-path.ts'
import { FileError, positionOf, readFile, settledMs, statusOf, type Reader } from './follow-file.ts'
import { reasonOf } from './input.ts'
import {
  damagedCode,
  identityOf,
  memberLister,
  openMember,
  type LogMember,
  type OpenMember,
} from './log-files.ts'

export interface FollowOptions extends Pick<
  Reader,
  'format' | 'sink' | 'signal' | 'now' | 'understood' | 'stored'
> {
  path: string // absolute
  /** What may be read under the path. By default what is in its folder. */
  watched?: WatchedPath
  /** Called when the first problem of the log or of the appliance changes, with null when all are gone. */
  problem(message: string | null): void
  intervalMs?: number
}

interface Held {
  member: LogMember
  file: OpenMember
}

interface Following extends Reader {
  path: string
  watched: WatchedPath
  list: ReturnType<typeof memberLister>
  read: Map<string, string> // size and time at which each file was read to its end, by its id
  statusAtMs: number
  held: Held | null // the current file stays readable when it is deleted
}

const intervalMsDefault = 1_000
const statusMs = 5_000
const backOffMsMin = 250
const backOffMsMax = 30_000

/** Follows until the signal. Throws what the appliance refuses at the first contact, such as a wrong key. */
export async function followLog(options: FollowOptions): Promise<void> {
  const { signal, intervalMs = intervalMsDefault } = options
  const following = startFollowing(options)
  const waker = startWaker(options.path, signal)
  const showProblem = problemReporter(following, options)
  const startedMs = performance.now()
  let failures = 0
  let isContacted = false
  let isSelected = false
  while (!signal.aborted) {
    try {
      await following.keepAlive()
      isSelected ||= await selectOlder(following)
      const isMore = isSelected && (await readAll(following))
      isContacted = true
      following.problems.delete('appliance')
      failures = 0
      if (showProblem()) following.statusAtMs = Number.NEGATIVE_INFINITY
      if (!isMore) await waker.wait(intervalMs)
    } catch (error) {
      if (signal.aborted) break
      const isClaimed = error instanceof AppError && error.code === 'conflict'
      const mayEnd = isClaimed && performance.now() - startedMs < (options.sink.claimMs ?? 0)
      if (!isContacted && !mayEnd && !isTemporary(error)) throw error
      // What was in flight may be stored or not: the position of every file is asked for again.
      following.known.clear()
      following.read.clear()
      following.problems.set('appliance', messageOf(error))
      showProblem()
      following.statusAtMs = Number.NEGATIVE_INFINITY
      await waker.pause(Math.min(backOffMsMax, backOffMsMin * 2 ** failures++))
    }
  }
  waker.stop()
  await following.held?.file.close().catch(() => undefined)
}

function startFollowing({ path, format, sink, signal, now, understood, stored, watched }: FollowOptions) {
  const following: Following = {
    watched: watched ?? watchedPath(path, { dataDir: null, keyFiles: [] }),
    path,
    format,
    sink,
    signal,
    now,
    understood,
    stored,
    statusAtMs: Number.NEGATIVE_INFINITY,
    async keepAlive() {
      if (performance.now() - following.statusAtMs < statusMs) return
      await sendStatus(following)
      following.statusAtMs = performance.now()
    },
    list: memberLister(path, now),
    known: new Map(),
    older: new Set(),
    formats: new Map(),
    lastFormat: null,
    behindBytes: 0,
    read: new Map(),
    held: null,
    problems: new Map(),
  }
  return following
}

function isTemporary(error: unknown): boolean {
  return !(error instanceof AppError) || error.status >= 500 || error.code === 'rate_limited'
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Reports the first problem when it is another one than before, and returns whether it is. */
function problemReporter({ problems }: Following, { problem }: FollowOptions): () => boolean {
  let shown: string | null = null
  return () => {
    const [first = null] = problems.values()
    if (first === shown) return false
    problem((shown = first))
    return true
  }
}

/** Renews the claim on the log and says how far behind the reader is. */
async function sendStatus(following: Following): Promise<void> {
  const { sink, path, known: knownPositions } = following
  const source = [...knownPositions.keys()].at(-1) ?? null
  const { epoch } = await sink.position({ ...statusOf(following), path, source })
  // Another appliance, or the same one after a restart, has other sessions in memory.
  for (const [name, position] of knownPositions) if (position.epoch !== epoch) knownPositions.delete(name)
}

/** Changes of the folder wake the reader early. They are a hint: it looks after the interval anyway. */
function startWaker(path: string, signal: AbortSignal) {
  const wakesAgainMs = 100
  const stem = basename(path).slice(0, 4)
  let wake: () => void = () => undefined
  let wasChanged = false
  const changed = (): void => {
    wasChanged = true
    wake()
  }
  let watcher: { close(): void } | null = null
  try {
    const started = watch(dirname(path), (_, name) => {
      if (name === null || name.startsWith(stem)) changed()
    })
    started.on('error', () => undefined)
    watcher = started
  } catch {
    // The folder does not exist yet, or the system has no watches left.
  }
  const end = (): void => wake()
  signal.addEventListener('abort', end)
  const sleep = (ms: number): Promise<void> => {
    if (signal.aborted) return Promise.resolve()
    return new Promise((resolve) => {
      const timer = setTimeout(() => wake(), ms)
      wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
  const pause = async (ms: number): Promise<void> => {
    for (const untilMs = performance.now() + ms; !signal.aborted && performance.now() < untilMs;)
      await sleep(Math.max(1, untilMs - performance.now()))
  }
  return {
    /** Waits for a change, at most so long. */
    async wait(ms: number): Promise<void> {
      await pause(Math.min(ms, wakesAgainMs))
      if (!wasChanged && ms > wakesAgainMs) await sleep(ms - wakesAgainMs)
      wasChanged = false
    },
    pause,
    stop() {
      signal.removeEventListener('abort', end)
      watcher?.close()
    },
  }
}

/**
 * Decides at the start which rotated files belong to what is followed: those since the oldest one of which something
 * is stored. The others are history, for `import access`. False while there is no log, while a file cannot be read
 * because it is being compressed (it may be the oldest one, and newer ones may have been read before it), and when the
 * log is rotated meanwhile: the oldest one may be missing, and newer ones would pass for history.
 */
async function selectOlder(following: Following): Promise<boolean> {
  const members = await membersOf(following)
  if (members.length === 0) return false
  const identities: { identity: string; isCurrent: boolean }[] = []
  let oldest = -1
  for (const member of members.toReversed()) {
    if (following.signal.aborted) return false
    const { path, isCurrent } = member
    const identity = await identityAt(following, member)
    if (identity === 'unreadable' && !isSettled(following, member)) return false
    if (identity === null || identity === 'unreadable') continue
    if ((await positionOf(following, identity, path)).position > 0) oldest = identities.length
    identities.push({ identity, isCurrent })
  }
  if (namesOf(await membersOf(following)) !== namesOf(members)) return false
  for (const { identity, isCurrent } of identities.slice(oldest + 1))
    if (!isCurrent) following.older.add(identity)
  return true
}

const namesOf = (members: LogMember[]): string => members.map(({ path, id }) => `${path} ${id}`).join('\n')

async function identityAt(
  { watched }: Following,
  { path, id }: LogMember,
): Promise<string | 'unreadable' | null> {
  try {
    const file = await openMember(path, watched)
    try {
      return file.id === id ? identityOf(await file.head()) : 'unreadable'
    } finally {
      await file.close()
    }
  } catch {
    return 'unreadable' // it vanished, or it is being compressed
  }
}

async function membersOf(following: Following): Promise<LogMember[]> {
  const { problems, path } = following
  const fail = (error: unknown): void => void problems.set('log', `${path} ${reasonOf(error)}`)
  try {
    const { members, problem } = await following.list()
    if (problem === null) problems.delete('log')
    else fail(problem)
    return members
  } catch (error) {
    fail(error)
    return []
  }
}

/** Looks at all files. Returns whether to look again at once. */
async function readAll(following: Following): Promise<boolean> {
  const { held: heldFile, read, problems } = following
  const members = await membersOf(following)
  const ids = new Set(members.map(({ id }) => id))
  for (const id of read.keys()) if (!ids.has(id)) read.delete(id)
  for (const id of problems.keys()) if (id.includes(':') && !ids.has(id)) problems.delete(id)
  if (heldFile !== null && !ids.has(heldFile.member.id) && (await readDeleted(following, heldFile)))
    return true
  let isMore = false
  for (const member of members) {
    if (following.signal.aborted) return false
    const stamp = `${member.bytes} ${member.mtimeMs} ${member.isCurrent}`
    if (read.get(member.id) === stamp) continue
    try {
      const isAnother = await readMember(following, member)
      problems.delete(member.id)
      if (isAnother) isMore = true
      else if (isSettled(following, member) || isCompressedName(member.path)) read.set(member.id, stamp)
    } catch (error) {
      if (!isOfFile(error)) throw error
      if (isSettled(following, member)) noteProblem(following, member, error)
      if (isLasting(error) && isSettled(following, member)) read.set(member.id, stamp)
    }
  }
  return isMore
}

/**
 * A rotated file that changed a moment ago may still be copied or compressed. It is looked at again when it has
 * settled, also because its last line may have no line feed.
 */
function isSettled({ now }: Following, { isCurrent, mtimeMs }: LogMember): boolean {
  return isCurrent || now() - mtimeMs > settledMs
}

/** Compressed data has an end of its own, so what was read without an error is whole. */
function isCompressedName(path: string): boolean {
  return /\.(?:gz|zst)$/.test(path)
}

function noteProblem({ problems }: Following, { id, path }: LogMember, error: unknown): void {
  problems.set(id, `${path} ${error instanceof FileError ? error.message : reasonOf(error)}`)
}

/** Errors of reading. Those of the appliance end the step. */
function isOfFile(error: unknown): boolean {
  return (
    isLasting(error) ||
    /^(?:EACCES|EIO|EISDIR|ELOOP|EMFILE|ENFILE|ENOENT|ENOTDIR|ENOTFILE|ENXIO|EPERM|ESTALE|ETIMEDOUT|refused)$/.test(
      codeOf(error),
    )
  )
}

/** Errors that the content has, which only another content ends. */
function isLasting(error: unknown): boolean {
  return error instanceof FileError || codeOf(error) === damagedCode
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}

/** Reads the rest of a file that has no name any more. */
async function readDeleted(following: Following, { member, file }: Held): Promise<boolean> {
  try {
    const { bytes } = await file.facts()
    if (await readFile(following, { ...member, bytes, isCurrent: false }, file)) return true
  } catch (error) {
    if (!isOfFile(error)) throw error
  }
  await file.close()
  following.held = null
  return false
}

async function readMember(following: Following, member: LogMember): Promise<boolean> {
  const { held: heldFile, watched } = following
  if (heldFile?.member.id === member.id) return readFile(following, member, heldFile.file)
  const file = await openMember(member.path, watched)
  // The name may belong to another file by now.
  const isHeld = member.isCurrent && file.id === member.id && !file.isCompressed
  if (!isHeld) {
    try {
      return file.id !== member.id || (await readFile(following, member, file))
    } finally {
      await file.close()
    }
  }
  // The file before was renamed or deleted, and was read as one of the others.
  await heldFile?.file.close()
  following.held = { member, file }
  return readFile(following, member, file)
}
