/** Walks every event that a filter takes, page by page, newest first: what exports stream. */
import type { EventFilter, EventPosition, EventStore } from '../../db/store.ts'

export const walkPageEvents = 1_000

/** The JSON texts of one page after the other. Arrivals after `ceilingSeq` are not in the walk. */
export async function* walkEvents(
  events: Pick<EventStore, 'page'>,
  orgId: string,
  filter: EventFilter,
  ceilingSeq: number,
): AsyncGenerator<string[]> {
  let before: EventPosition | null = null
  do {
    const query = { orgId, filter, limit: walkPageEvents, before, ceilingSeq }
    const page: Awaited<ReturnType<EventStore['page']>> = await events.page(query)
    if (page.events.length > 0) yield page.events.map((event) => event.json)
    before = page.next
  } while (before !== null)
}

/** How many events the same walk gives; null when counting them takes longer than `msMax`. */
export async function countEvents(
  events: Pick<EventStore, 'count'>,
  orgId: string,
  filter: EventFilter,
  ceilingSeq: number,
  msMax: number,
): Promise<number | null> {
  const endMs = performance.now() + msMax
  let total = 0
  let afterSeq = 0
  while (afterSeq < ceilingSeq) {
    if (performance.now() > endMs) return null
    const step: Awaited<ReturnType<EventStore['count']>> = await events.count({
      orgId,
      filter,
      afterSeq,
      ceilingSeq,
    })
    total += step.count
    afterSeq = step.lastSeq
  }
  return total
}
