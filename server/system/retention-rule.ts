/** How long an organization's events and audit entries are stored. */
import type { Store } from '../../db/contract/store.ts'

/** Null: no limit. */
export interface RetentionRule {
  days: number | null
  bytes: number | null
  auditDays: number | null
  /** How long networks of contradicted requests are stored. */
  networkDays?: number
}

/** An organization's own limits override the server's, each on its own. */
export async function ruleOf(
  store: Pick<Store, 'retention'>,
  orgId: string,
  rule: RetentionRule,
): Promise<RetentionRule> {
  const own = await store.retention.setting(orgId)
  return {
    days: own.days ?? rule.days,
    bytes: own.bytes ?? rule.bytes,
    auditDays: own.auditDays ?? rule.auditDays,
  }
}
