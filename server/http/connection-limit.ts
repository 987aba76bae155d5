/**
 * Keeps the process below its limit of open files. At the limit the runtime tries to accept waiting connections
 * without end, which takes a whole processor; so before that the listeners are closed for a while. Connections with a
 * request in flight go on; idle ones are closed, and new ones are refused until some have ended.
 */
import { readFileSync, readdirSync, statSync } from 'node:fs'
import type { Log } from '../log.ts'

export interface Acceptor {
  pause(): void
  /** Throws when the address has been taken meanwhile. */
  resume(): void
}

export interface ConnectionLimit {
  look(): void
  stop(): void
}

interface Options {
  acceptors: Acceptor[]
  log: Log
  /** Given by tests. */
  limit?: number | null
  open?: () => number
}

const lookMs = 200

export function limitConnections({
  acceptors,
  log,
  limit = fileLimit(),
  open = openFiles,
}: Options): ConnectionLimit {
  if (limit === null) return { look() {}, stop() {} }
  const pauseAt = limit - headroom(limit)
  const resumeBelow = limit - headroom(limit) * 1.25
  let isPaused = false

  function look(): void {
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
        log.error('connections_not_resumed', { message: String(error) }) // tried again at the next look
      }
    }
  }

  const timer = setInterval(look, lookMs)
  timer.unref()
  return { look, stop: () => clearInterval(timer) }
}

/** For the files of the database and for connections that we open. */
function headroom(limit: number): number {
  return Math.min(256, Math.ceil(limit / 4))
}

/** The soft limit, which the runtime has raised to the hard one; null where nothing tells it. */
function fileLimit(): number | null {
  if (process.platform !== 'linux') return null
  const text = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]
  return text === undefined ? null : Number(text)
}

const folder = '/proc/self/fd'

/** More than any limit when there is not even one left to look. */
function openFiles(): number {
  try {
    return statSync(folder).size || readdirSync(folder).length // kernels before 6.2 say 0
  } catch {
    return Infinity
  }
}
