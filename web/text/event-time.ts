/** The time by which an event is listed (contract §6); a test compares it with the server's. */

/** A sender's clock may be this far ahead; beyond it the arrival time counts. */
const aheadMaxMs = 5 * 60_000

export function eventTimeMs(occurredAtMs: number, receivedAtMs: number): number {
  return aheadMs(occurredAtMs, receivedAtMs) > 0 ? receivedAtMs : occurredAtMs
}

/** How far the sender's clock was ahead when that is too far, else 0. */
export function aheadMs(occurredAtMs: number, receivedAtMs: number): number {
  return occurredAtMs > receivedAtMs + aheadMaxMs ? occurredAtMs - receivedAtMs : 0
}
