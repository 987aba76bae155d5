/** What each kind of rule finds in an organization as it is now; pure, so that the watch only has to compare. */
import type { ApiKey, Json } from '../../../db/contract/store.ts'
import type { Rule } from '../../../db/contract/webhooks.ts'
import { isoTime } from '../../clock.ts'
import type { Share } from './rates.ts'

export interface OrgView {
  newVendors: { vendor: string; firstAtMs: number }[]
  blocked: Share // of the last hour
  toolErrors: Map<string, Share> // of the last hour, by tool
  lastEventAtMs: number | null // null: never
  exposedKeys: ApiKey[] // seen with a browser's headers and not revoked
}

/** Something that is the case; `subject` tells two findings of one rule apart. */
export interface Finding {
  subject: string
  data: { [member: string]: Json }
}

export function findings(rule: Rule, view: OrgView, now: number): Finding[] {
  switch (rule.kind) {
    case 'new_vendor':
      return view.newVendors
        .filter(({ firstAtMs }) => firstAtMs >= rule.createdAtMs)
        .map(({ vendor, firstAtMs }) => ({
          subject: vendor,
          data: { vendor, firstSeenAt: isoTime(firstAtMs) },
        }))
    case 'blocked_share':
      return passes(rule, view.blocked) ? [{ subject: '', data: shareData(rule, view.blocked) }] : []
    case 'tool_error_rate':
      return [...view.toolErrors]
        .filter(([, share]) => passes(rule, share))
        .map(([tool, share]) => ({ subject: tool, data: { tool, ...shareData(rule, share) } }))
    case 'silence':
      return silence(rule, view, now)
    case 'key_leaked':
      return view.exposedKeys.map(({ id, label, prefix, exposedAtMs }) => ({
        subject: id,
        data: { keyId: id, label, prefix, exposedAt: isoTime(exposedAtMs ?? now) },
      }))
  }
}

function passes({ threshold, eventsMin }: Rule, { total, bad }: Share): boolean {
  return total >= (eventsMin ?? 1) && bad / total > (threshold ?? 1)
}

function shareData({ threshold }: Rule, { total, bad }: Share): { [member: string]: Json } {
  return { share: Math.round((bad / total) * 10_000) / 10_000, threshold, events: total, windowMinutes: 60 }
}

/** Before the first event nothing can have fallen silent; a rule hears nothing of the time before it was made. */
function silence({ minutes, createdAtMs }: Rule, { lastEventAtMs }: OrgView, now: number): Finding[] {
  if (lastEventAtMs === null || now - Math.max(lastEventAtMs, createdAtMs) < (minutes ?? 0) * 60_000)
    return []
  return [{ subject: '', data: { minutes, lastEventAt: isoTime(lastEventAtMs) } }]
}
