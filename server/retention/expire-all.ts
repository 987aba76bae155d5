/** Retention: takes what is too old or too much in every organization, in steps that leave room for ingest. */
import { StoreError } from '../../db/errors.ts'
import type { Store } from '../../db/store.ts'
import type { Log } from '../log.ts'

/** Null: without that limit. */
export interface RetentionRule {
  days: number | null
  bytes: number | null
  auditDays: number | null
}

const dayMs = 24 * 3_600_000

/** Counts outlive their events by far, but not for ever (contract §7). */
const rollupsKeptMs = 400 * dayMs

/** Between two steps ingest has the writer to itself. */
const pauseMs = 20

interface Steps {
  store: Pick<Store, 'events' | 'retention'>
  inSteps: ReturnType<typeof tightSteps>
}

interface Parts {
  store: Pick<Store, 'orgs' | 'events' | 'retention'>
  rule: RetentionRule
  log: Log
}

export async function expireAll({ store, rule, log }: Parts, now: number): Promise<void> {
  const steps = { store, inSteps: tightSteps(store) }
  for (const { id: orgId } of await store.orgs.list()) {
    const receivedBeforeMs = await cutoffOf(store, orgId, rule, now)
    const events = receivedBeforeMs === null ? 0 : await expireBefore(steps, orgId, receivedBeforeMs)
    const rows = await dropRollups(steps, orgId, now - rollupsKeptMs)
    if (events > 0 || rows > 0) log.info('retention_applied', { orgId, events, rollupRows: rows })
  }
  const bytes = await release(steps)
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

async function cutoffOf(
  store: Pick<Store, 'retention'>,
  orgId: string,
  rule: RetentionRule,
  now: number,
): Promise<number | null> {
  const { days, bytes } = await ruleOf(store, orgId, rule)
  const byDays = days === null ? null : now - days * dayMs
  const byBytes = bytes === null ? null : await store.retention.cutoff({ orgId, bytesMax: bytes })
  if (byDays === null || byBytes === null) return byDays ?? byBytes
  return Math.max(byDays, byBytes)
}

async function expireBefore(
  { store, inSteps }: Steps,
  orgId: string,
  receivedBeforeMs: number,
): Promise<number> {
  for (let events = 0; ;) {
    const step = await inSteps((small) => store.events.expire({ orgId, receivedBeforeMs, small }))
    events += step.events
    if (step.done) return events
    await Bun.sleep(pauseMs)
  }
}

async function dropRollups({ store, inSteps }: Steps, orgId: string, beforeMs: number): Promise<number> {
  for (let rows = 0; ;) {
    const step = await inSteps(() => store.retention.dropRollups({ orgId, beforeMs }))
    rows += step.rows
    if (step.done) return rows
    await Bun.sleep(pauseMs)
  }
}

async function release({ store, inSteps }: Steps): Promise<number> {
  for (let bytes = 0; ;) {
    const step = await inSteps(() => store.retention.release())
    bytes += step.bytes
    if (step.done) return bytes
    await Bun.sleep(pauseMs)
  }
}

/**
 * Taking events away writes to the log first. On a full disk the reserve is the room for that: it is given up once, and
 * from then on steps are small and the log is emptied after each, which turns them into free pages of the database.
 */
function tightSteps(store: Pick<Store, 'retention'>) {
  let tight = false
  return async <T>(step: (small: boolean) => Promise<T>): Promise<T> => {
    try {
      const done = await step(tight)
      if (tight) await store.retention.truncateLog()
      return done
    } catch (error) {
      if (tight || !(error instanceof StoreError) || error.kind !== 'storage_full') throw error
      tight = true
      await store.retention.truncateLog()
      await store.retention.dropReserve()
      const done = await step(true)
      await store.retention.truncateLog()
      return done
    }
  }
}
