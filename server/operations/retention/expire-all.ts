/** Retention: deletes events above the age or size limit of every organization, in steps, so that ingest continues. */
import type { ExpireCommand, Store } from '../../../db/contract/store.ts'
import { clockToleranceMs } from '../../system/clock-guard.ts'
import type { Log } from '../../log.ts'
import { makeSteps } from './steps.ts'

/** Null: no limit. */
export interface RetentionRule {
  days: number | null
  bytes: number | null
  auditDays: number | null
}

const dayMs = 24 * 3_600_000

/** Counts are stored much longer than their events, but not forever (contract §7). */
const rollupsRetentionMs = 400 * dayMs

interface Services {
  store: Pick<Store, 'orgs' | 'events' | 'retention'>
  rule: RetentionRule
  log: Log
}

/** Throws between two steps once `ending` is aborted; the next run continues. */
export async function expireAll(
  { store, rule, log }: Services,
  now: number,
  ending: AbortSignal,
): Promise<void> {
  const steps = makeSteps(store, ending)
  for (const { id: orgId } of await store.orgs.list()) {
    const limit = await limitOf(store, orgId, rule, now)
    const events =
      limit === null
        ? 0
        : await steps.untilDone(
            (small) => store.events.expire({ orgId, ...limit, small }),
            (part) => part.events,
          )
    const rollups = { orgId, beforeMs: now - rollupsRetentionMs }
    const rows = await steps.untilDone(
      () => store.retention.dropRollups(rollups),
      (part) => part.rows,
    )
    if (events > 0 || rows > 0) log.info('retention_applied', { orgId, events, rollupRows: rows })
  }
  const bytes = await steps.untilDone(
    () => store.retention.release(),
    (part) => part.bytes,
  )
  if (bytes > 0) log.info('room_given_back', { bytes })
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

/** The age limit uses arrival times; the size limit uses arrival order, which is independent of clocks. */
async function limitOf(
  store: Pick<Store, 'retention'>,
  orgId: string,
  rule: RetentionRule,
  now: number,
): Promise<Omit<ExpireCommand, 'orgId' | 'small'> | null> {
  const { days, bytes } = await ruleOf(store, orgId, rule)
  const beforeSeq = bytes === null ? null : await store.retention.cutoff({ orgId, bytesMax: bytes })
  if (days === null && beforeSeq === null) return null
  return {
    receivedBeforeMs: days === null ? 0 : now - days * dayMs,
    receivedUntilMs: now + clockToleranceMs,
    ...(beforeSeq === null ? {} : { beforeSeq }),
  }
}
