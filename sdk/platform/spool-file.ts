/**
 * The spool on disk: JSON lines in segment files (`<path>.000001`), and the acknowledged position in `<path>.done`.
 * Segments are rotated at 4 MiB and deleted when acknowledged, so nothing is copied or compacted.
 */
import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { basename, dirname } from 'node:path'
import type { Spool } from './platform.ts'

const segmentBytesMax = 4 * 1024 * 1024

interface State {
  path: string
  segments: Segment[] // oldest first; the last one is written to
  offset: number // acknowledged bytes of the oldest segment
  number: number // of the last segment
  file: number // its descriptor
  done: number // descriptor of `<path>.done`
  unwritten: string
}

/** Implements `openSpool` of the platform. */
export function openSpoolFile(path: string, onFailure: (error: unknown) => void): Spool {
  mkdirSync(dirname(path), { recursive: true })
  const unlock = lockSpool(`${path}.lock`)
  try {
    return startSpool(path, unlock, onFailure)
  } catch (error) {
    unlock()
    throw error
  }
}

function startSpool(path: string, unlock: () => void, onFailure: (error: unknown) => void): Spool {
  const { events, damaged, segments, offset, lastNumber } = readSpool(path)
  const doneFile = openOwn(`${path}.done`, O_WRONLY | O_CREAT | O_TRUNC)
  const state: State = { path, segments, offset, number: lastNumber, file: -1, done: doneFile, unwritten: '' }
  startSegment(state)
  noteDone(state)
  let isOpen = true
  const end = (): void => {
    isOpen = false
    process.off('exit', flush)
    closeSync(state.file)
    closeSync(state.done)
    unlock()
  }
  /** A failing disk must not throw into the host: the spool closes, the queue in memory continues. */
  const guarded = (act: () => void): void => {
    if (!isOpen) return
    try {
      act()
    } catch (error) {
      end()
      onFailure(error)
    }
  }
  const flush = (): void => guarded(() => write(state))
  process.on('exit', flush) // process.exit() skips microtasks
  return {
    pending: events,
    damaged,
    append(text) {
      if (state.unwritten === '') queueMicrotask(flush)
      state.unwritten += `${text}\n`
    },
    forget(count, bytes) {
      guarded(() => {
        write(state)
        state.offset += bytes + count // one newline per event
        dropDoneSegments(state)
        noteDone(state)
      })
    },
    close() {
      guarded(() => {
        write(state)
        if (segments.length === 1 && segments[0]?.bytes === 0) unlinkSync(segmentPath(path, state.number))
        end()
      })
    },
  }
}

const { O_APPEND, O_CREAT, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_TRUNC, O_WRONLY } = constants

/** Refuses links, and pipes and devices, for whose other end the host would wait. */
function openOwn(path: string, flags: number): number {
  const file = openSync(path, flags | O_NOFOLLOW | O_NONBLOCK, 0o600)
  if (fstatSync(file).isFile()) return file
  closeSync(file)
  throw new Error(`${path} is not a file`)
}

function readOwn(path: string): Buffer {
  const file = openOwn(path, O_RDONLY)
  try {
    return readFileSync(file)
  } finally {
    closeSync(file)
  }
}

function startSegment(state: State): void {
  const next = openOwn(segmentPath(state.path, state.number + 1), O_WRONLY | O_CREAT | O_APPEND)
  if (state.file >= 0) closeSync(state.file) // after the new one is open, so that the old one survives a failure
  state.file = next
  state.number++
  state.segments.push({ number: state.number, bytes: 0 })
}

function write(state: State): void {
  const current = state.segments[state.segments.length - 1]
  if (state.unwritten === '' || current === undefined) return
  const bytes = Buffer.from(state.unwritten)
  state.unwritten = ''
  for (let offset = 0; offset < bytes.length;) offset += writeSync(state.file, bytes, offset)
  current.bytes += bytes.length
  if (current.bytes >= segmentBytesMax) startSegment(state)
}

function noteDone({ segments, number, offset, done: doneFile }: State): void {
  writeSync(doneFile, `${segments[0]?.number ?? number} ${offset}`.padEnd(40), 0)
}

function dropDoneSegments(state: State): void {
  const { segments, path, file } = state
  for (let oldest = segments[0]; oldest !== undefined && state.offset >= oldest.bytes; oldest = segments[0]) {
    state.offset -= oldest.bytes
    if (segments.length === 1) {
      ftruncateSync(file, 0)
      oldest.bytes = 0
      return
    }
    unlinkSync(segmentPath(path, oldest.number))
    segments.shift()
  }
}

interface Segment {
  number: number
  bytes: number // of complete lines
}

interface SpoolContents {
  events: string[] // not acknowledged, oldest first
  damaged: number // lines that are no event
  segments: Segment[] // with these events
  offset: number // acknowledged bytes of the oldest segment
  lastNumber: number // highest segment number so far
}

function segmentPath(path: string, number: number): string {
  return `${path}.${String(number).padStart(6, '0')}`
}

/** Reads the events of an earlier run and deletes acknowledged segments. */
function readSpool(path: string): SpoolContents {
  const donePosition = readDone(path)
  const contents: SpoolContents = {
    events: [],
    damaged: 0,
    segments: [],
    offset: 0,
    lastNumber: donePosition.number,
  }
  for (const number of segmentNumbers(path)) {
    contents.lastNumber = Math.max(contents.lastNumber, number)
    const bytes = readOwn(segmentPath(path, number))
    const end = bytes.lastIndexOf(10) + 1 // a crash may have cut the last line
    const start =
      number < donePosition.number
        ? end
        : number === donePosition.number
          ? Math.min(donePosition.offset, end)
          : 0
    if (start >= end) {
      unlinkSync(segmentPath(path, number))
      continue
    }
    if (contents.segments.length === 0) contents.offset = start
    contents.segments.push({ number, bytes: end })
    readLines(bytes.subarray(start, end), contents)
  }
  if (contents.damaged > 0) rewrite(path, contents)
  return contents
}

/** A damaged line, as a full disk, a power cut or an editor leaves it, costs itself: in a batch it would cost all. */
function readLines(bytes: Buffer, contents: SpoolContents): void {
  for (let from = 0; from < bytes.length;) {
    const end = bytes.indexOf(10, from)
    const line = bytes.subarray(from, end)
    const text = line.toString('utf8')
    if (isEvent(text) && Buffer.from(text).equals(line)) contents.events.push(text)
    else contents.damaged++
    from = end + 1
  }
}

function isEvent(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
  } catch {
    return false
  }
}

/**
 * Writes the remaining events to a segment of their own, because acknowledged bytes are counted without gaps. A process
 * that is killed in between leaves both: the appliance deduplicates them.
 */
function rewrite(path: string, contents: SpoolContents): void {
  const oldSegments = contents.segments
  const number = contents.lastNumber + 1
  const bytes = Buffer.from(contents.events.map((text) => `${text}\n`).join(''))
  const draft = `${path}.draft`
  rmSync(draft, { force: true })
  const file = openSync(draft, 'wx', 0o600)
  try {
    for (let from = 0; from < bytes.length;) from += writeSync(file, bytes, from)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  renameSync(draft, segmentPath(path, number))
  for (const segment of oldSegments) unlinkSync(segmentPath(path, segment.number))
  contents.lastNumber = number
  contents.offset = 0
  contents.segments = [{ number, bytes: bytes.length }]
}

function readDone(path: string): { number: number; offset: number } {
  try {
    const [number, offset] = readOwn(`${path}.done`).toString().trim().split(' ').map(Number)
    if (Number.isInteger(number) && Number.isInteger(offset))
      return { number: number ?? 0, offset: offset ?? 0 }
  } catch {
    // No such file: nothing is acknowledged.
  }
  return { number: 0, offset: 0 }
}

function segmentNumbers(path: string): number[] {
  const prefix = `${basename(path)}.`
  return readdirSync(dirname(path))
    .filter((name) => name.startsWith(prefix) && /^\d{6,}$/.test(name.slice(prefix.length)))
    .map((name) => Number(name.slice(prefix.length)))
    .sort((left, right) => left - right)
}

/** Two processes with one spool would send and delete each other's events, so it is locked. */
const heldHere = new Set<string>()

/** Locks the spool or throws with the process id of the holder. Returns the function that unlocks it. */
function lockSpool(path: string): () => void {
  if (heldHere.has(path)) throw new Error(`the spool ${path} is already open in this process`)
  const holder = readHolder(path)
  if (holder !== null) {
    if (isRunning(holder)) throw new Error(`the spool ${path} is in use by process ${holder.pid}`)
    unlinkSync(path)
  }
  const file = openSync(path, 'wx', 0o600)
  writeSync(file, `${process.pid} ${startOf(process.pid)}\n`)
  closeSync(file)
  heldHere.add(path)
  return () => {
    heldHere.delete(path)
    try {
      unlinkSync(path)
    } catch {
      // The file was deleted by somebody else.
    }
  }
}

interface Holder {
  pid: number
  start: string
}

function readHolder(path: string): Holder | null {
  let text: string
  try {
    text = readOwn(path).toString()
  } catch {
    return null
  }
  const [pid = '', start = ''] = text.trim().split(' ')
  return { pid: Number(pid), start }
}

function isRunning({ pid, start }: Holder): boolean {
  if (!Number.isInteger(pid) || pid <= 0) return false
  // Our own process id: another thread of this process, or an earlier run of the container.
  if (pid === process.pid) return start !== '' && start === startOf(pid)
  try {
    process.kill(pid, 0)
  } catch (error) {
    if ((error as { code?: string }).code === 'ESRCH') return false
  }
  return startOf(pid) === start
}

/**
 * The start time of the process on Linux, '' elsewhere. It distinguishes runs of a container, which reuse low process
 * ids.
 */
function startOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? ''
  } catch {
    return ''
  }
}
