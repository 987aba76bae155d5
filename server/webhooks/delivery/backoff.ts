/** When a failed delivery is tried again: a step for each retry, jitter on top, and what the receiver asked for. */

const jitterShareMax = 0.2
export const retryAfterMsMax = 3_600_000

export interface Failure {
  attempts: number // counted ones, this failure included
  stepsMs: readonly number[] // one for each retry
  retryAfterMs: number | null
  atMs: number
  random: number // 0 inclusive to 1 exclusive
}

/** Milliseconds since 1970 of the next attempt, or null when the retries are used up. Never earlier than the step. */
export function nextAttemptAt({ attempts, stepsMs, retryAfterMs, atMs, random }: Failure): number | null {
  const stepMs = stepsMs[attempts - 1]
  if (stepMs === undefined) return null
  const askedMs = Math.min(retryAfterMs ?? 0, retryAfterMsMax)
  return atMs + Math.max(Math.round(stepMs * (1 + jitterShareMax * random)), askedMs)
}

/**
 * Reads a `Retry-After` header, seconds or an HTTP date, as at most one hour; null when it says nothing usable.
 * Fractions are no HTTP, but receivers send them: rounded up, they are what was meant. A negative number is ignored.
 */
export function readRetryAfter(header: string | null, nowMs: number): number | null {
  const text = header?.trim() ?? ''
  if (/^\d+(?:\.\d+)?$/.test(text)) return Math.min(Math.ceil(Number(text) * 1_000), retryAfterMsMax)
  // Date.parse takes far more than HTTP dates, so the shape is asked first.
  if (!/^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(text)) return null
  const atMs = Date.parse(text)
  return Number.isNaN(atMs) ? null : Math.min(Math.max(0, atMs - nowMs), retryAfterMsMax)
}
