/** The log: one JSON object per line on standard error, redacted, and never blocked by a slow reader. */
import { isoTime, type Clock } from './clock.ts'
import { closeSync, constants, fstatSync, openSync, readlinkSync, write } from 'node:fs'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/** Scalars only: whole objects could contain data that must not be logged. */
export type LogFields = Record<string, string | number | boolean | null | undefined | readonly string[]>

export interface Log {
  debug(event: string, fields?: LogFields): void
  info(event: string, fields?: LogFields): void
  warn(event: string, fields?: LogFields): void
  error(event: string, fields?: LogFields): void
  /** Whether `debug` writes: composing a line for every request costs more than most of its checks. */
  isDebug(): boolean
  /** Sets the level and returns the previous one. */
  setLevel(level: LogLevel): LogLevel
  /** Waits until everything is written, at most about `timeoutMs`. The last call before the process ends. */
  close(timeoutMs?: number): Promise<void>
}

interface ServerLog extends Log {
  /** Reopens the log file after a rotation; false when the log is not a file. */
  reopen(): boolean
}

const rank: Record<LogLevel, number> = { debug: 0, info: 1, warn: 2, error: 3 }

interface LogOptions {
  level: LogLevel
  clock: Clock
  sink?: LogSink
}

export function startLog({ level: initialLevel, clock, sink: givenSink }: LogOptions): ServerLog {
  let level = initialLevel
  const sink = givenSink ?? openLogSink({ drained: () => reportDropped() })
  function reportDropped(): void {
    const count = sink.takeDropped()
    if (count > 0) sink.write(logLine(clock.now(), 'warn', 'log_lines_dropped', { count }))
  }
  const write =
    (lineLevel: LogLevel) =>
    (event: string, fields: LogFields = {}) => {
      if (rank[lineLevel] < rank[level]) return
      reportDropped()
      sink.write(logLine(clock.now(), lineLevel, event, fields))
    }
  return {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    isDebug: () => level === 'debug',
    setLevel(next) {
      const previousLevel = level
      level = next
      return previousLevel
    },
    reopen: () => sink.reopen?.() ?? false,
    async close(timeoutMs = 1_000) {
      const endMs = performance.now() + timeoutMs
      await sink.flush(timeoutMs)
      reportDropped()
      await sink.flush(endMs - performance.now())
    },
  }
}

/** One line with its newline. `time`, `level` and `event` come first; fields cannot override them. */
export function logLine(nowMs: number, level: LogLevel, event: string, fields: LogFields): string {
  const line: Record<string, unknown> = { time: isoTime(nowMs), level, event }
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined || name in line) continue
    const isPublic = publicEvents.has(event)
    line[name] = isPublic ? value : secretNames.test(name) ? '[redacted]' : clean(value)
  }
  return `${JSON.stringify(line)}\n`
}

// Not redacted: the public key of a checkpoint, which looks like a secret but is what makes the log evidence.
const publicEvents = new Set(['audit_checkpoint'])
const secretNames = /^(?:password|authorization|cookie|secret|token)$/i
const textCharsMax = 4_000

// Redacts before the text becomes JSON, because an escaped newline would put a letter in front of a token.
function clean(value: LogFields[string]): unknown {
  if (typeof value === 'string')
    return redact(value.length > textCharsMax ? `${value.slice(0, textCharsMax)}…` : value)
  return value !== null && typeof value === 'object' ? value.map(clean) : value
}

/** Redacts anything that looks like a key, a webhook secret or a token. */
export function redact(text: string): string {
  return text
    .replace(/agtx_([a-z]{2})_[\w-]+/g, 'agtx_$1_[redacted]')
    .replace(/whsec_[\w+/=-]+/g, 'whsec_[redacted]')
    .replace(/#[\w-]{20,}/g, '#[redacted]') // the secret part of a one-time link
    .replace(/(bearer|basic)\s+[\w+/=.~-]{8,}/gi, '$1 [redacted]')
    .replace(/(?<![\w-])[\w-]{43,50}(?![\w-])/g, '[redacted]') // tokens: 32 random bytes in base64url, and slightly longer
}

/** Writes log text in the background; drops and counts lines when the reader is too slow. */
interface LogSink {
  write(line: string): void
  /** Lines dropped since the last call; 0 while they cannot be reported. */
  takeDropped(): number
  flush(timeoutMs: number): Promise<void>
  /** Reopens the log file after a rotation; false when the log is not a file or the file cannot be opened. */
  reopen?(): boolean
}

const pendingBytesMax = 1024 * 1024
const chunkBytesMax = 64 * 1024
const retryMs = 20
/** Retry interval after a full disk or a failed device. */
const failureRetryMs = 250

interface LogSinkOptions {
  /** Standard error by default. */
  fd?: number
  bytesMax?: number
  /** Tests make writes fail. */
  writeTo?: typeof write
  /** Called when everything is written after lines were dropped. */
  drained?(): void
}

export function openLogSink(options: LogSinkOptions = {}): LogSink {
  const { bytesMax = pendingBytesMax, writeTo = write } = options
  let fd = options.fd ?? nonBlocking(2)
  const path = filePath(fd)
  const lines: Buffer[] = []
  let pendingBytes = 0
  let dropped = 0
  let writing = false
  let failing = false
  let broken = false

  function next(): void {
    if (lines.length === 0 || broken) {
      writing = false
      if (dropped > 0 && !broken) options.drained?.()
      return
    }
    writing = true
    writeFrom(chunkOf(lines), 0)
  }

  function writeFrom(chunk: Buffer, from: number): void {
    writeTo(fd, chunk, from, chunk.length - from, null, (error, written) => {
      if (error && closedCodes.has(error.code ?? '')) {
        // The reader is gone for good: the server continues without a log.
        broken = true
        lines.length = 0
        pendingBytes = 0
        return next()
      }
      const isBusy = error !== null && busy.has(error.code ?? '')
      // While the disk is full the newest lines are dropped, because memory is bounded.
      failing = error !== null && !isBusy
      const writtenBytes = error ? 0 : written
      pendingBytes -= writtenBytes
      if (from + writtenBytes === chunk.length) return next()
      const waitMs = failing ? failureRetryMs : isBusy ? retryMs : 0
      setTimeout(writeFrom, waitMs, chunk, from + writtenBytes)
    })
  }

  return {
    write(line) {
      if (broken) return
      const bytes = Buffer.from(line)
      if (pendingBytes + bytes.length > bytesMax) return void dropped++
      lines.push(bytes)
      pendingBytes += bytes.length
      if (!writing) next()
    },
    takeDropped() {
      const canReport = !failing && pendingBytes < bytesMax / 2
      if (dropped === 0 || !canReport) return 0
      const count = dropped
      dropped = 0
      return count
    },
    flush: (timeoutMs) => until(() => pendingBytes === 0, timeoutMs),
    reopen() {
      const opened = path === null ? null : openAgain(path)
      if (opened === null) return false
      const previousFd = fd
      fd = opened
      // A write in progress still uses the old descriptor, and standard error stays open for crash reports.
      if (previousFd > 2) setTimeout(() => closeSync(previousFd), 1_000).unref()
      return true
    },
  }
}

const busy: ReadonlySet<string> = new Set(['EAGAIN', 'EINTR'])
const closedCodes: ReadonlySet<string> = new Set(['EPIPE', 'EBADF', 'ECONNRESET'])

async function until(isDone: () => boolean, timeoutMs: number): Promise<void> {
  const deadlineMs = performance.now() + timeoutMs
  while (!isDone() && performance.now() < deadlineMs) await Bun.sleep(5)
}

/** The next lines as one buffer: few large writes instead of one per line. */
function chunkOf(lines: Buffer[]): Buffer {
  let bytes = 0
  let count = 0
  for (const line of lines) {
    if (count > 0 && bytes + line.length > chunkBytesMax) break
    bytes += line.length
    count++
  }
  return Buffer.concat(lines.splice(0, count))
}

/** The path of a log file, read once at start: after a rotation the descriptor refers to the rotated file. */
function filePath(fd: number): string | null {
  try {
    if (!fstatSync(fd).isFile()) return null
    const path = readlinkSync(`/proc/self/fd/${fd}`)
    return path.endsWith(' (deleted)') ? null : path
  } catch {
    return null
  }
}

function openAgain(path: string): number | null {
  try {
    return openSync(path, constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT, 0o600)
  } catch {
    return null // the old descriptor still works
  }
}

/**
 * Reopens a pipe in non-blocking mode, without changing the mode of other descriptors. Otherwise a slow reader would
 * block one thread of the small pool that also reads files and hashes passwords.
 */
function nonBlocking(fd: number): number {
  try {
    if (fstatSync(fd).isFIFO())
      return openSync(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK)
  } catch {
    // No /proc, or a pipe of another user: the plain descriptor works too, but blocks a pool thread.
  }
  return fd
}
