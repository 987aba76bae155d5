/** Retention: takes what is too old or too much in every organization, in steps that leave room for ingest. */
import type { ExpireCommand, Store } from '../../../db/contract/store.ts'
import { clockToleranceMs } from '../../system/clock-guard.ts'
import type { Log } from '../../log.ts'
import { makeSteps } from './steps.ts'

/** Null: without that limit. */
export interface RetentionRule {
  days: number | null
  bytes: number | null
  auditDays: number | null
}

const dayMs = 24 * 3_600_000

/** Counts outlive their events by far, but not for ever (contract §7). */
const rollupsKeptMs = 400 * dayMs

interface Services {
  store: Pick<Store, 'orgs' | 'events' | 'retention'>
  rule: RetentionRule
  log: Log
}

/** Throws between two steps once `ending` is aborted; what they took is gone, and the next run takes the rest. */
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
    const rollups = { orgId, beforeMs: now - rollupsKeptMs }
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

/** An organization's own rule goes before the appliance's, each limit by itself. */
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

/** By days the time of arrival counts, by bytes its order, which no clock can put wrong. */
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
