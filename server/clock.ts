/** The only place that reads the time, so that tests can move it. */

export interface Clock {
  /** Milliseconds since 1970-01-01 UTC. */
  now(): number
  /** Milliseconds that only grow, whoever sets the clock. A test's clock without it uses `now`. */
  elapsed?(): number
}

export const systemClock: Clock = { now: () => Date.now(), elapsed: () => performance.now() }

/** The time to measure waits by: a clock that is set back or ahead neither lengthens nor ends one. */
export function elapsedMs(clock: Clock): number {
  return clock.elapsed?.() ?? clock.now()
}

/** `YYYY-MM-DDTHH:MM:SS.sssZ`, the form of every time we send (contract §1). */
export function isoTime(ms: number): string {
  return new Date(ms).toISOString()
}
