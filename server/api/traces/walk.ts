/** Walks every event that a filter takes, page by page, newest first: what exports stream. */
import type { EventFilter, EventPosition, EventStore } from '../../../db/contract/store.ts'

/** Of one page: few events when they are large. A walk holds two pages, and several walks run at a time. */
export const walkPage = { limit: 2_000, bytesMax: 1024 * 1024 }

/**
 * The JSON texts of one page after the other; the next page is read while the last one is sent. Arrivals after
 * `ceilingSeq` are not in the walk.
 */
export async function* walkEvents(
  events: Pick<EventStore, 'page'>,
  orgId: string,
  filter: EventFilter,
  ceilingSeq: number,
): AsyncGenerator<string[]> {
  const read = (before: EventPosition | null) =>
    events.page({ orgId, filter, ...walkPage, before, ceilingSeq })
  let reading: ReturnType<typeof read> | null = read(null)
  while (reading !== null) {
    const page: Awaited<ReturnType<typeof read>> = await reading
    reading = page.next === null ? null : read(page.next)
    reading?.catch(() => undefined) // told when its turn comes
    if (page.events.length > 0) yield page.events.map((event) => event.json)
  }
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
