/** Retention: deletes events above the age or size limit of every organization, in steps, so that ingest continues. */
import { clockToleranceMs } from '../../system/clock-guard.ts'
import { StoreError, type StoreErrorKind } from '../../../db/contract/errors.ts'
import type { ExpireCommand, Store } from '../../../db/contract/store.ts'
import type { Log } from '../../log.ts'
import { dayMs } from '../../../db/rules/units.ts'
import { countsRetentionDays } from '../../../db/rules/retention-days.ts'

/** Null: no limit. */
export interface RetentionRule {
  days: number | null
  bytes: number | null
  auditDays: number | null
  /** How long networks of contradicted requests are stored. */
  networkDays?: number
}

const networkDaysDefault = 90

interface Services {
  store: Pick<Store, 'orgs' | 'events' | 'retention' | 'accessLogs'>
  rule: RetentionRule
  log: Log
}

/**
 * Runs `work` for one organization after the other. One whose data cannot be read or changed does not hold up the
 * others: returns the first such failure, for the caller to throw at its end. Throws any other.
 */
export async function forEachOrg(
  orgIds: readonly string[],
  work: (orgId: string) => Promise<void>,
  kinds: readonly StoreErrorKind[] = kindsOfOne,
): Promise<StoreError | null> {
  let failure: StoreError | null = null
  for (const id of orgIds) {
    try {
      await work(id)
    } catch (error) {
      if (!(error instanceof StoreError) || !kinds.includes(error.kind)) throw error
      failure ??= new StoreError(error.kind, `organization ${id}: ${error.message}`, { cause: error })
    }
  }
  return failure
}

/** Failures that need not concern every organization. A `conflict` may be a lost lease, which ends the run. */
export const kindsOfOne: StoreErrorKind[] = ['corrupt', 'internal', 'not_found', 'read_only']

export const orgIdsOf = async ({ orgs }: Pick<Store, 'orgs'>): Promise<string[]> =>
  (await orgs.list()).map(({ id }) => id)

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
  if (bytes > 0) log.info('room_given_back', { bytes })
  if (failure !== null) throw failure
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

const pauseMs = 20

interface Steps {
  once<T>(step: () => Promise<T>): Promise<T>
  /** Returns the sum of `countOf` over all steps. Throws between two steps when it must end. */
  untilDone<T extends { done: boolean }>(
    step: () => Promise<T>,
    countOf: (part: T) => number,
  ): Promise<number>
}

/**
 * Deleting needs space on the disk before it frees any. After the first step that a full disk rejects, the store makes
 * space for small steps, and returns what each of them deleted.
 */
export function makeSteps({ retention }: Pick<Store, 'retention'>, ending: AbortSignal): Steps {
  let tight = false

  async function once<T>(step: () => Promise<T>): Promise<T> {
    try {
      const done = await step()
      if (tight) await retention.maintain({ reason: 'deleted' })
      return done
    } catch (error) {
      if (tight || !(error instanceof StoreError) || error.kind !== 'storage_full') throw error
      tight = true
      await retention.maintain({ reason: 'full' })
      const done = await step()
      await retention.maintain({ reason: 'deleted' })
      return done
    }
  }

  return {
    once,
    async untilDone(step, countOf) {
      for (let sum = 0; ;) {
        const part = await once(step)
        sum += countOf(part)
        if (part.done) return sum
        await Bun.sleep(pauseMs)
        ending.throwIfAborted()
      }
    },
  }
}
