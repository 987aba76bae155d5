/** Defines the time by which an event is ordered, filtered and counted (contract §6). */

/** The most that a sender's clock may be ahead. Beyond it the arrival time counts. */
const aheadMaxMs = 5 * 60_000

export function eventTimeMs(occurredAtMs: number, receivedAtMs: number): number {
  return occurredAtMs > receivedAtMs + aheadMaxMs ? receivedAtMs : occurredAtMs
}
