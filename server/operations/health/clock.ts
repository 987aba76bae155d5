/** The message while the clock is not trusted, and an operator's confirmation of the clock. */
import { applianceOrgId } from '../../../db/contract/audit.ts'
import type { Store } from '../../../db/contract/store.ts'
import { auditEntry } from '../../audit/entry.ts'
import { isoTime } from '../../clock.ts'
import type { ClockGuard, ClockHold } from '../../system/clock-guard.ts'
import { hourMs, minuteMs } from '../../../db/rules/units.ts'

export function holdSentence({ jumpMs, leftMs }: ClockHold): string {
  const off = `${spanText(Math.abs(jumpMs))} ${jumpMs > 0 ? 'ahead of' : 'behind'} the elapsed time`
  return (
    `The clock is ${off}. Deletion by age is paused until the clock is correct, an operator confirms it, ` +
    `or it has been steady for 24 hours (${spanText(leftMs)} left).`
  )
}

function spanText(ms: number): string {
  const [count, unit] =
    ms >= 47.5 * hourMs
      ? [ms / (24 * hourMs), 'days']
      : ms >= 1.95 * hourMs
        ? [ms / hourMs, 'hours']
        : [ms / minuteMs, 'minutes']
  return `${Math.round(count)} ${unit}`
}

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
