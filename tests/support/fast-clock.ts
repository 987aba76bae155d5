/** A clock that jumps from one awaited moment to the next, so that a day of waiting takes only as long as its work. */
import type { Waker } from '../../server/system/scheduler.ts'

export interface FastClock {
  now(): number
  /** Time since the start, whatever the clock was set to. */
  elapsed(): number
  waker: Waker
  /** Resolves when the clock has advanced by this much, for work that takes time. */
  passes(ms: number): Promise<void>
  /** Sets the clock as a person or NTP would. Waits last as long as before. */
  set(ms: number): void
  /** Lets this much time pass. */
  run(ms: number): Promise<void>
}

/** `lateMs` says how late a timer fires, as timers of a busy machine do. */
export function fastClock(startMs: number, lateMs: () => number = () => 0): FastClock {
  let elapsedMs = 0 // since the start, whatever the clock was set to
  let baseMs = startMs
  let waiting: { atMs: number; wake: () => void }[] = []

  const schedule = (ms: number, wake: () => void) => {
    const entry = { atMs: elapsedMs + ms, wake }
    waiting.push(entry)
    return () => void (waiting = waiting.filter((timer) => timer !== entry))
  }

  return {
    now: () => baseMs + elapsedMs,
    elapsed: () => elapsedMs,
    waker: (ms, wake) => schedule(ms + lateMs(), wake),
    passes: (ms) => new Promise((resolve) => void schedule(ms, resolve)),
    set: (ms) => void (baseMs = ms - elapsedMs),
    async run(ms) {
      const endMs = elapsedMs + ms
      for (;;) {
        const next = waiting.reduce<(typeof waiting)[number] | null>(
          (first, timer) => (first === null || timer.atMs < first.atMs ? timer : first),
          null,
        )
        if (next === null || next.atMs > endMs) break
        waiting = waiting.filter((timer) => timer !== next)
        elapsedMs = Math.max(elapsedMs, next.atMs)
        next.wake()
        // Started work advances as far as it can without time passing.
        for (let turn = 0; turn < 8; turn++) await Promise.resolve()
      }
      elapsedMs = endMs
    },
  }
}
