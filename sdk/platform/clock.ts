/** The only place of the client that reads the time. */

/** Milliseconds since 1970 UTC. */
export const nowMs = (): number => Date.now()

let lastMs = Number.NaN
let lastText = ''

/** `YYYY-MM-DDTHH:MM:SS.sssZ`. Events of one millisecond share the text, which is dear to make. */
export function isoTime(ms: number): string {
  if (ms !== lastMs) {
    lastText = new Date(ms).toISOString()
    lastMs = ms
  }
  return lastText
}
