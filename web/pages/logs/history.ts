/** Walking back through history: by the cursor of the page before, or by time where rows were let go. */
import type { EventPage, ReceivedEvent } from '../../api/api.ts'
import { isoTime } from '../../app/clock.ts'
import type { EntryList } from './entries.ts'

export interface HistoryPlace {
  cursor: string | null
  untilMs: number | null // rows at and before this time went; history is asked for anew from there
}

/** The end of history. */
export const noHistory: HistoryPlace = { cursor: null, untilMs: null }

/** A page may hold only events that are shown already; at most as many such pages come as the table holds. */
const knownPagesMax = 60

type Ask = (page: { cursor: string | null; until: string | null }) => Promise<EventPage>

/** The next events that the list does not hold, with the place to go on from. Nothing new at the end of history. */
export async function olderPage(
  shown: EntryList,
  from: HistoryPlace,
  ask: Ask,
): Promise<{ list: ReceivedEvent[]; history: HistoryPlace }> {
  let history = from
  for (let pages = 0; pages < knownPagesMax; pages++) {
    const { cursor, untilMs } = history
    // `until` is exclusive, and there may be more events at that very millisecond.
    const page = await ask({ cursor, until: untilMs === null ? null : isoTime(untilMs + 1) })
    history = page.nextCursor === null ? noHistory : { cursor: page.nextCursor, untilMs: null }
    const list = page.events.filter((item) => !shown.ids.has(item.event.id))
    if (list.length > 0 || history === noHistory) return { list, history }
  }
  return { list: [], history }
}
