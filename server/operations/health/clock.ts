/** Whether the clock is trusted, and an operator's confirmation of the clock. */
import { applianceOrgId } from '../../../db/contract/audit.ts'
import type { Store } from '../../../db/contract/store.ts'
import { auditEntry } from '../../audit/entry.ts'
import { isoTime } from '../../clock.ts'
import { holdSentence } from '../../system/clock-hold.ts'
import type { ClockGuard } from '../../system/clock-guard.ts'

export interface ClockView {
  now: string
  hold: { since: string; jumpMs: number; leftMs: number; message: string } | null
}

export function clockView(clockGuard: ClockGuard): ClockView {
  const hold = clockGuard.hold()
  const now = isoTime(clockGuard.clock.now())
  if (hold === null) return { now, hold: null }
  const { sinceMs, jumpMs, leftMs } = hold
  return { now, hold: { since: isoTime(sinceMs), jumpMs, leftMs, message: holdSentence(hold) } }
}

/** Writes the audit entry first. Without a hold there is nothing to confirm or record. */
export async function confirmClock(
  { clockGuard, store }: { clockGuard: ClockGuard; store: Pick<Store, 'audit'> },
  actor: string,
): Promise<ClockView> {
  const hold = clockGuard.hold()
  if (hold !== null) {
    const now = clockGuard.clock.now()
    const metadata = { jumpMs: Math.round(hold.jumpMs), since: isoTime(hold.sinceMs) }
    const act = { action: 'clock.confirmed', target: isoTime(now), metadata }
    await store.audit.append(auditEntry({ orgId: applianceOrgId, actor }, act, now))
    clockGuard.confirm()
  }
  return clockView(clockGuard)
}
