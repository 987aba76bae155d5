/** The time that orders an event in lists (contract §6). A test compares it with the server's. */

/** A client's clock may be ahead by this much. Beyond it, the time of receipt counts. */
const aheadMaxMs = 5 * 60_000

export function eventTimeMs(occurredAtMs: number, receivedAtMs: number): number {
  return aheadMs(occurredAtMs, receivedAtMs) > 0 ? receivedAtMs : occurredAtMs
}

/** How far the client's clock was ahead if that is too far, else 0. */
export function aheadMs(occurredAtMs: number, receivedAtMs: number): number {
  return occurredAtMs > receivedAtMs + aheadMaxMs ? occurredAtMs - receivedAtMs : 0
}
