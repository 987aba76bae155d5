/** What an erasure says before it begins, and whether one that was watched came to its end. */
import { counted } from '../../../text/format.ts'
import type { Erasures } from '../../../api/operate-api.ts'

/** Before it begins. Null: the events could not be counted in time. */
export function whatGoes(events: number | null): string {
  if (events === 0)
    return 'No event that is kept here carries it: look at its spelling, capitals count. Copies of events that are gone already would go.'
  const those =
    events === null
      ? 'Every event of it goes; counting them first would take too long.'
      : `${counted(events, 'event')} of it ${events === 1 ? 'goes' : 'go'}.`
  return `${those} Counts and copies in deliveries and samples go with it.`
}

/** What was at work is neither at work any more nor at its end: the appliance was restarted. */
export function hasVanished(before: Erasures | null, { running, last }: Erasures): boolean {
  const startedAt = before?.running?.startedAt
  return startedAt !== undefined && running === null && (last === null || last.endedAt < startedAt)
}
