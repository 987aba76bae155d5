/** The trust that sessions of detections reached: an agent is detected first and proves itself afterwards. */
import { limits } from '../limits.ts'
import type { Asked } from './counts.ts'
import type { DetectTrust } from './shapes.ts'

export async function detectTrust({ store, orgId, period }: Asked): Promise<DetectTrust> {
  const { sinceMs, untilMs, siteIds, filter } = period
  const found = await store.events.trustReached({
    ...{ orgId, sinceMs, untilMs, types: ['agent.detected'], deadlineMs: limits.trustReachedMs },
    ...(siteIds && { siteIds }),
    ...(filter && { filter: filter.filter, also: filter.also }),
  })
  if (found === null) return { rows: [], complete: false, isTooMuch: true }
  const rows = found.rows.map(({ trust, events, sessions }) => ({ trust, count: events, sessions }))
  return { rows, complete: found.complete, isTooMuch: false }
}
