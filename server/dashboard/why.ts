/** Why an agent was blocked: the decision, its session before it, and the tool's descriptor at the time. */
import type { StoredEvent, Store } from '../../db/contract/store.ts'
import { isoTime } from '../clock.ts'
import { AppError } from '../errors.ts'
import type { Why } from './shapes.ts'

const earlierMax = 100
const versionsMax = 100

/** Throws 404 for an event that does not exist or is not a decision. */
export async function why(store: Pick<Store, 'events' | 'registry'>, orgId: string, id: string) {
  const stored = await store.events.byId({ orgId, id })
  const event = stored === null ? null : (JSON.parse(stored.json) as Decision)
  if (stored === null || event === null || !event.type.startsWith('authz.')) {
    throw new AppError('not_found', 'No decision has this id.')
  }
  const [session, tool] = await Promise.all([
    store.events.page({
      orgId,
      filter: { siteIds: [event.siteId], sessionIds: [event.sessionId], untilMs: stored.occurredAtMs + 1 },
      limit: earlierMax + 1,
      before: null,
      ceilingSeq: null,
    }),
    toolThen(store, orgId, event, stored.occurredAtMs),
  ])
  const earlier = session.events.filter((one) => one.seq !== stored.seq)
  // An event in the same millisecond that arrived later came after the decision.
  const before = earlier.filter((one) => one.occurredAtMs < stored.occurredAtMs || one.seq < stored.seq)
  const found: Why = {
    ...shown(stored),
    earlier: before.slice(0, earlierMax).map(shown),
    earlierComplete: session.next === null && before.length <= earlierMax,
    tool,
  }
  return found
}

interface Decision {
  type: string
  siteId: string
  sessionId: string
  tool?: string | null
}

const shown = (event: StoredEvent) => ({
  receivedAt: isoTime(event.receivedAtMs),
  event: JSON.parse(event.json) as unknown,
})

/** The newest version pushed before the decision; null when none is stored. */
async function toolThen(
  store: Pick<Store, 'registry'>,
  orgId: string,
  { siteId, tool }: Decision,
  atMs: number,
): Promise<Why['tool']> {
  if (tool == null) return null
  const found = await store.registry.tool({ orgId, siteId, name: tool, limit: versionsMax })
  const version = found?.versions.find((one) => one.atMs <= atMs)
  if (version === undefined || version.change === 'removed') return null
  const { description = null } = JSON.parse(version.json) as { description?: string | null }
  return { version: version.version, since: isoTime(version.atMs), description }
}
