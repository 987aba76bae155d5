/** How a session looks in answers. */
import type { Session } from '../../../db/contract/sessions.ts'
import { isoTime } from '../../clock.ts'

export function sessionView(session: Session) {
  const { id, siteIds, firstSeenAtMs, lastSeenAtMs, events, byPillar, byOutcome, isCut } = session
  return {
    id,
    siteIds,
    firstSeenAt: isoTime(firstSeenAtMs),
    lastSeenAt: isoTime(lastSeenAtMs),
    events,
    agent: { class: session.class, vendor: session.vendor, trust: session.trust },
    byPillar,
    byOutcome,
    ...(isCut ? { truncated: true } : {}),
  }
}
