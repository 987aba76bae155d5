/** The clock of the dashboard. No other file reads the time of day. */

/** Milliseconds since 1970-01-01 UTC, by the browser's clock. */
export function now(): number {
  return Date.now()
}

/** `YYYY-MM-DDTHH:MM:SS.sssZ`, the format of the API. */
export function isoTime(ms: number): string {
  return new Date(ms).toISOString()
}
