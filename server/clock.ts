/** The only place that reads the time, so that tests can move it. */

export interface Clock {
  /** Milliseconds since 1970-01-01 UTC. */
  now(): number
}

export const systemClock: Clock = { now: () => Date.now() }

/** `YYYY-MM-DDTHH:MM:SS.sssZ`, the form of every time we send (contract §1). */
export function isoTime(ms: number): string {
  return new Date(ms).toISOString()
}
