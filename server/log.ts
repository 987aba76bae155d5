/** The log: one JSON object a line on standard error, redacted, and never a wait for whoever reads it. */
import { isoTime, type Clock } from './clock.ts'
import { openLogSink, type LogSink } from './log-sink.ts'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/** Plain named facts only: whole objects would carry along what nobody meant to log. */
export type LogFields = Record<string, string | number | boolean | null | undefined | readonly string[]>

export interface Log {
  debug(event: string, fields?: LogFields): void
  info(event: string, fields?: LogFields): void
  warn(event: string, fields?: LogFields): void
  error(event: string, fields?: LogFields): void
  /** From now on; returns what it was. */
  setLevel(level: LogLevel): LogLevel
  /** Waits until everything is written, at most about this long: the last call before the process ends. */
  close(timeoutMs?: number): Promise<void>
}

export interface ServerLog extends Log {
  /** Opens the log file again after a rotation; false when the log is no file. */
  reopen(): boolean
}

const rank: Record<LogLevel, number> = { debug: 0, info: 1, warn: 2, error: 3 }

export interface LogOptions {
  level: LogLevel
  clock: Clock
  sink?: LogSink
}

export function startLog({ level: begun, clock, sink: given }: LogOptions): ServerLog {
  let level = begun
  const sink = given ?? openLogSink({ drained: () => reportDropped() })
  function reportDropped(): void {
    const count = sink.takeDropped()
    if (count > 0) sink.write(logLine(clock.now(), 'warn', 'log_lines_dropped', { count }))
  }
  const write =
    (of: LogLevel) =>
    (event: string, fields: LogFields = {}) => {
      if (rank[of] < rank[level]) return
      reportDropped()
      sink.write(logLine(clock.now(), of, event, fields))
    }
  return {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    setLevel(next) {
      const before = level
      level = next
      return before
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

/** One line with its newline; `time`, `level` and `event` come first and cannot be replaced by a field. */
export function logLine(nowMs: number, level: LogLevel, event: string, fields: LogFields): string {
  const line: Record<string, unknown> = { time: isoTime(nowMs), level, event }
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined || name in line) continue
    const isPublic = publicEvents.has(event)
    line[name] = isPublic ? value : secretNames.test(name) ? '[redacted]' : clean(value)
  }
  return `${JSON.stringify(line)}\n`
}

// The key in a checkpoint is the public one, and has the form of a secret: without it the log proves nothing.
const publicEvents = new Set(['audit_checkpoint'])
const secretNames = /^(?:password|authorization|cookie|secret|token)$/i
const textCharsMax = 4_000

// Before the text becomes JSON: there an escaped newline would put a letter in front of a token and hide it.
function clean(value: LogFields[string]): unknown {
  if (typeof value === 'string')
    return redact(value.length > textCharsMax ? `${value.slice(0, textCharsMax)}…` : value)
  return value !== null && typeof value === 'object' ? value.map(clean) : value
}

/** Blanks whatever has the form of a key, a webhook secret or a token, wherever in the text it stands. */
export function redact(text: string): string {
  return text
    .replace(/agtx_([a-z]{2})_[\w-]+/g, 'agtx_$1_[redacted]')
    .replace(/whsec_[\w+/=-]+/g, 'whsec_[redacted]')
    .replace(/#[\w-]{20,}/g, '#[redacted]') // the part of a one-time link that opens it
    .replace(/(bearer|basic)\s+[\w+/=.~-]{8,}/gi, '$1 [redacted]')
    .replace(/(?<![\w-])[\w-]{43,50}(?![\w-])/g, '[redacted]') // 32 random bytes in base64url, our tokens, and a little
}
