/** Pauses between attempts: their length, and timers that can be cut short and keep no process alive. */

/** Doubles from `minMs` to `maxMs`, half of it random, so that clients do not retry at the same time. */
export function backoffMs(attempt: number, minMs: number, maxMs: number, random: () => number): number {
  const stepMs = Math.min(maxMs, minMs * 2 ** Math.min(attempt, 30))
  return stepMs / 2 + (stepMs / 2) * random()
}

export interface Pause {
  over: Promise<void>
  /** Ends it now. */
  cut(): void
}

export function pause(ms: number): Pause {
  let cut = (): void => {}
  const over = new Promise<void>((resolve) => {
    const timer = unref(setTimeout(resolve, ms))
    cut = () => {
      clearTimeout(timer)
      resolve()
    }
  })
  return { over, cut }
}

/** Node.js and Bun wait for timers before they exit. In other runtimes a timer is a number. */
export function unref<Timer>(timer: Timer): Timer {
  ;(timer as { unref?: () => unknown }).unref?.()
  return timer
}
