/** The only reader of the clock, so that tests can control the time. */

export interface Clock {
  /** Milliseconds since 1970-01-01 UTC. */
  now(): number
  /** Monotonic milliseconds, unaffected by clock changes. Test clocks without it use `now`. */
  elapsed?(): number
}

export const systemClock: Clock = { now: () => Date.now(), elapsed: () => performance.now() }

/** Monotonic time for measuring waits: changes of the clock neither lengthen nor end a wait. */
export function elapsedMs(clock: Clock): number {
  return clock.elapsed?.() ?? clock.now()
}

/** `YYYY-MM-DDTHH:MM:SS.sssZ`, the format of every time in responses (contract §1). */
export function isoTime(ms: number): string {
  return new Date(ms).toISOString()
}
