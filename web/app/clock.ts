/** The only file of the dashboard that reads the time of day. */

/** Milliseconds since 1970-01-01 UTC, by the reader's own clock. */
export function now(): number {
  return Date.now()
}

/** `YYYY-MM-DDTHH:MM:SS.sssZ`, the form in which times travel. */
export function isoTime(ms: number): string {
  return new Date(ms).toISOString()
}
