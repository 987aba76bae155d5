/** Retention: deletes events above the age or size limit of every organization, in steps, so that ingest continues. */
import { clockToleranceMs } from '../../system/clock-guard.ts'
import { ruleOf, type RetentionRule } from '../../system/retention-rule.ts'
import { forEachOrg, makeSteps, orgIdsOf } from '../../system/steps.ts'
import type { ExpireCommand, Store } from '../../../db/contract/store.ts'
import type { Log } from '../../log.ts'
import { dayMs } from '../../../db/contract/units.ts'
import { countsRetentionDays } from '../../../db/rules/retention-days.ts'

const networkDaysDefault = 90

interface Services {
  store: Pick<Store, 'orgs' | 'events' | 'retention' | 'accessLogs'>
  rule: RetentionRule
  log: Log
}

/** Throws between two steps once `ending` is aborted, and at the end what failed; the next run continues. */
export async function expireAll(
  { store, rule, log }: Services,
  now: number,
  ending: AbortSignal,
): Promise<void> {
  const steps = makeSteps(store, ending)
  const failure = await forEachOrg(await orgIdsOf(store), async (orgId) => {
    const limit = await limitOf(store, orgId, rule, now)
    const events =
      limit === null
        ? 0
        : await steps.untilDone(
            () => store.events.expire({ orgId, ...limit }),
            (part) => part.events,
          )
    const rollups = { orgId, beforeMs: now - countsRetentionDays * dayMs }
    const rows = await steps.untilDone(
      () => store.retention.dropRollups(rollups),
      (part) => part.rows,
    )
    await steps.untilDone(
      () => store.accessLogs.expire({ ...rollups, now }),
      (part) => part.rows,
    )
    if (events > 0 || rows > 0) log.info('retention_applied', { orgId, events, rollupRows: rows })
  })
  const { networkDays = networkDaysDefault } = rule
  const beforeDay = Math.floor((now - networkDays * dayMs) / dayMs)
  const networks = await steps.untilDone(
    () => store.events.expireNetworks({ beforeDay }),
    (part) => part.rows,
  )
  if (networks > 0) log.info('impostor_networks_expired', { networks })
  const bytes = await steps.untilDone(
    () => store.retention.release(),
    (part) => part.bytes,
  )
  if (bytes > 0) log.info('disk_reserve_released', { bytes })
  if (failure !== null) throw failure
}

/** The age limit uses arrival times; the size limit uses arrival order, which is independent of clocks. */
async function limitOf(
  store: Pick<Store, 'retention'>,
  orgId: string,
  rule: RetentionRule,
  now: number,
): Promise<Omit<ExpireCommand, 'orgId'> | null> {
  const { days, bytes } = await ruleOf(store, orgId, rule)
  const beforeSeq = bytes === null ? null : await store.retention.cutoff({ orgId, bytesMax: bytes })
  if (days === null && beforeSeq === null) return null
  return {
    receivedBeforeMs: days === null ? 0 : now - days * dayMs,
    receivedUntilMs: now + clockToleranceMs,
    ...(beforeSeq === null ? {} : { beforeSeq }),
  }
}
