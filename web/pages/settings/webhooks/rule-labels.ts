/** The words for rules that speak, and the numbers that each kind takes. */
import type { Rule, RuleKind } from '../../../api/webhook-api.ts'

export const ruleNames: { readonly [kind in RuleKind]: string } = {
  new_vendor: 'A new vendor',
  blocked_share: 'Share of blocked events',
  tool_error_rate: 'Error rate of a tool',
  silence: 'Silence',
  key_leaked: 'A leaked key',
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

/** When it speaks: "more than 50 % of the last hour’s events are blocked, from 20 events on". */
export function ruleSentence({
  kind,
  threshold,
  minutes,
  eventsMin,
}: Omit<Rule, 'id' | 'endpointId'>): string {
  switch (kind) {
    case 'new_vendor':
      return 'a vendor comes that never came before'
    case 'blocked_share':
      return `more than ${percent(threshold)} % of the last hour’s events are blocked, from ${eventsMin} events on`
    case 'tool_error_rate':
      return `more than ${percent(threshold)} % of a tool’s calls of the last hour fail, from ${eventsMin} calls on`
    case 'silence':
      return minutes === 1 ? 'no event came for a minute' : `no event came for ${minutes} minutes`
    case 'key_leaked':
      return 'an ingest or secret key was seen in a browser'
  }
}

/** A share as the form and the sentence show it: 0.125 is 12.5. */
export function percent(share: number | null): number {
  return Math.round((share ?? 0) * 100_000) / 1_000
}

/** The share of a percentage, without the digits that a division would leave behind. */
export function shareOf(percentage: number): number {
  return Math.round(percentage * 1_000) / 100_000
}
