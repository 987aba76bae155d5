/** The labels of alert rules, and the numbers that each kind of rule has. */
import type { Rule, RuleKind, RuleNumbers } from '../../../api/webhook-api.ts'
import { counted } from '../../../text/format.ts'

export const ruleNames: { readonly [kind in RuleKind]: string } = {
  new_vendor: 'New vendor',
  blocked_share: 'Blocked share',
  tool_error_rate: 'Tool error rate',
  silence: 'Silence',
  key_leaked: 'Leaked key',
}

export type NumberName = 'threshold' | 'minutes' | 'eventsMin'

export const ruleNumbers: { readonly [kind in RuleKind]: readonly NumberName[] } = {
  new_vendor: [],
  blocked_share: ['threshold', 'eventsMin'],
  tool_error_rate: ['threshold', 'eventsMin'],
  silence: ['minutes'],
  key_leaked: [],
}

export function isRuleKind(text: string): text is RuleKind {
  return Object.hasOwn(ruleNames, text)
}

/** The condition: "more than 50 % of events in the last hour are blocked, minimum 20 events". */
export function ruleCondition({
  kind,
  threshold,
  minutes,
  eventsMin,
}: Pick<Rule, 'kind' | keyof RuleNumbers>): string {
  const share = `more than ${percent(threshold)} %`
  switch (kind) {
    case 'new_vendor':
      return 'an event has a vendor not seen before'
    case 'blocked_share':
      return `${share} of events in the last hour are blocked, minimum ${counted(eventsMin ?? 0, 'event')}`
    case 'tool_error_rate':
      return `${share} of a tool’s calls in the last hour fail, minimum ${counted(eventsMin ?? 0, 'call')}`
    case 'silence':
      return `no events for ${counted(minutes ?? 0, 'minute')}`
    case 'key_leaked':
      return 'an ingest or secret key is sent from a browser'
  }
}

/** A share as the form and the sentence show it: 0.125 is 12.5. */
export function percent(share: number | null): number {
  return Math.round((share ?? 0) * 100_000) / 1_000
}

/** The share of a percentage, rounded so that a division leaves no extra digits. */
export function shareOf(percentage: number): number {
  return Math.round(percentage * 1_000) / 100_000
}
