/**
 * Keeps the process below its limit of open files. At the limit Bun retries accepting connections in a busy loop, so
 * the listeners close before it is reached. Requests in flight continue; idle connections are closed, and new ones are
 * refused until enough have ended.
 */
import { readFileSync, readdirSync, statSync } from 'node:fs'
import type { Log } from '../log.ts'

export interface Acceptor {
  pause(): void
  /** Throws when another process uses the address by now. */
  resume(): void
}

interface ConnectionLimit {
  check(): void
  stop(): void
}

interface Options {
  acceptors: Acceptor[]
  log: Log
  /** Set by tests. */
  limit?: number | null
  open?: () => number
}

const checkMs = 200

export function limitConnections({
  acceptors,
  log,
  limit = fileLimit(),
  open = openFiles,
}: Options): ConnectionLimit {
  if (limit === null) return { check() {}, stop() {} }
  const pauseAt = limit - headroom(limit)
  const resumeBelow = limit - headroom(limit) * 1.25
  let isPaused = false

  function check(): void {
    const files = open()
    if (!isPaused && files >= pauseAt) {
      isPaused = true
      log.warn('connections_paused', { openFiles: files, limit })
      for (const acceptor of acceptors) acceptor.pause()
    } else if (isPaused && files < resumeBelow) {
      try {
        for (const acceptor of acceptors) acceptor.resume()
        isPaused = false
        log.info('connections_resumed', { openFiles: files, limit })
      } catch (error) {
        log.error('connections_not_resumed', { message: String(error) }) // retried at the next check
      }
    }
  }

  const timer = setInterval(check, checkMs)
  timer.unref()
  return { check, stop: () => clearInterval(timer) }
}

/** File descriptors reserved for the database and for outgoing connections. */
function headroom(limit: number): number {
  return Math.min(256, Math.ceil(limit / 4))
}

/** The soft limit, which the runtime raised to the hard limit; null when unknown. */
function fileLimit(): number | null {
  if (process.platform !== 'linux') return null
  const text = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]
  return text === undefined ? null : Number(text)
}

const folder = '/proc/self/fd'

/** Infinity when not even one descriptor is left to count them. */
function openFiles(): number {
  try {
    return statSync(folder).size || readdirSync(folder).length // kernels before 6.2 report 0
  } catch {
    return Infinity
  }
}
