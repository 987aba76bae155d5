/** The summary shown before an erasure starts, and the check for one that a restart stopped. */
import { counted } from '../../../text/format.ts'
import type { Erasures } from '../../../api/operate-api.ts'

/** Null: too many events to count in time. */
export function erasureSummary(events: number | null): string {
  if (events === 0)
    return 'No stored event matches. Check the spelling; case matters. Copies of expired events are erased anyway.'
  const matches =
    events === null
      ? 'All matching events are erased. There are too many to count first.'
      : `${counted(events, 'event')} ${events === 1 ? 'is' : 'are'} erased.`
  return `${matches} Their counts and their copies in deliveries and samples are erased too.`
}

/** True if a running erasure is neither running nor finished: the server restarted. */
export function hasVanished(before: Erasures | null, { running, last }: Erasures): boolean {
  const startedAt = before?.running?.startedAt
  return startedAt !== undefined && running === null && (last === null || last.endedAt < startedAt)
}
