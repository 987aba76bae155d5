/** Walks the events of one session, newest first, page by page of the engine. */
import type { EventPosition, StoredEvent } from '../../store.ts'
import type { EventReader } from '../event-engine.ts'

const pageEvents = 500

/** `each` ends the walk by answering false. */
export function walkSession(
  events: Pick<EventReader, 'page'>,
  { orgId, sessionId, ceilingSeq }: { orgId: string; sessionId: string; ceilingSeq: number | null },
  each: (event: StoredEvent) => boolean,
): { ceilingSeq: number } {
  let before: EventPosition | null = null
  let ceiling = ceilingSeq
  do {
    const page = events.page({
      orgId,
      filter: { sessionIds: [sessionId] },
      limit: pageEvents,
      before,
      ceilingSeq: ceiling,
    })
    ceiling = page.ceilingSeq
    for (const event of page.events) if (!each(event)) return { ceilingSeq: ceiling }
    before = page.next
  } while (before !== null)
  return { ceilingSeq: ceiling ?? 0 }
}
