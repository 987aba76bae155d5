/** The clock of the client; no other file reads the time. */

/** Milliseconds since 1970 UTC. */
export const nowMs = (): number => Date.now()

let lastMs = Number.NaN
let lastText = ''

/** `YYYY-MM-DDTHH:MM:SS.sssZ`. Cached per millisecond, because formatting is expensive. */
export function isoTime(ms: number): string {
  if (ms !== lastMs) {
    lastText = new Date(ms).toISOString()
    lastMs = ms
  }
  return lastText
}
