/** Keeps a share of the events, and always what went wrong or was blocked. */
import type { CompleteEvent } from './event.ts'

/**
 * Whether to keep the event at `rate` (0 to 1). Events of a session that the host named are kept or left together, so
 * that what remains still tells whole stories; `random` decides about the others.
 */
export function isKept(
  event: CompleteEvent,
  rate: number,
  named: string | undefined,
  random: () => number,
): boolean {
  if (rate >= 1 || event.outcome === 'error' || event.outcome === 'blocked') return true
  if (event.policy?.decision === 'deny') return true
  return (named === undefined ? random() : share(named)) < rate
}

/** A number from 0 to 1 that depends only on the text: FNV-1a with its bits mixed once more. */
export function share(text: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x45d9f3b)
  return ((hash ^ (hash >>> 16)) >>> 0) / 0x1_0000_0000
}
