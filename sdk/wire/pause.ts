/** Waiting between attempts: how long, and a wait that can be cut short and keeps no process alive. */

/** Doubles from `minMs` to `maxMs`, with half of it random so that many clients do not come back together. */
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

/** Node.js and Bun wait for timers before they end; elsewhere a timer is a number and nothing waits. */
export function unref<Timer>(timer: Timer): Timer {
  ;(timer as { unref?: () => unknown }).unref?.()
  return timer
}
