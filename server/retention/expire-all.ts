/** Retention: takes what is too old or too much in every organization, in steps that leave room for ingest. */
import { StoreError } from '../../db/errors.ts'
import type { Store } from '../../db/store.ts'
import type { Log } from '../log.ts'

/** Null: without that limit. */
export interface RetentionRule {
  days: number | null
  bytes: number | null
}

const dayMs = 24 * 3_600_000

/** Counts outlive their events by far, but not for ever (contract §7). */
const rollupsKeptMs = 400 * dayMs

/** Between two steps ingest has the writer to itself. */
const pauseMs = 20

interface Parts {
  store: Pick<Store, 'orgs' | 'events' | 'retention'>
  rule: RetentionRule
  log: Log
}

export async function expireAll({ store, rule, log }: Parts, now: number): Promise<void> {
  for (const { id: orgId } of await store.orgs.list()) {
    const receivedBeforeMs = await cutoffOf(store, orgId, rule, now)
    const events = receivedBeforeMs === null ? 0 : await expireBefore(store, orgId, receivedBeforeMs)
    const rows = await dropRollups(store, orgId, now - rollupsKeptMs)
    if (events > 0 || rows > 0) log.info('retention_applied', { orgId, events, rollupRows: rows })
  }
  const bytes = await release(store)
  if (bytes > 0) log.info('room_given_back', { bytes })
}

/** An organization's own rule goes before the appliance's, each limit by itself. */
export async function ruleOf(
  store: Pick<Store, 'retention'>,
  orgId: string,
  rule: RetentionRule,
): Promise<RetentionRule> {
  const own = await store.retention.setting(orgId)
  return { days: own.days ?? rule.days, bytes: own.bytes ?? rule.bytes }
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
  store: Pick<Store, 'events' | 'retention'>,
  orgId: string,
  receivedBeforeMs: number,
): Promise<number> {
  for (let events = 0; ;) {
    const step = await withReserve(store, () => store.events.expire({ orgId, receivedBeforeMs }))
    events += step.events
    if (step.done) return events
    await Bun.sleep(pauseMs)
  }
}

async function dropRollups(
  store: Pick<Store, 'retention'>,
  orgId: string,
  beforeMs: number,
): Promise<number> {
  for (let rows = 0; ;) {
    const step = await withReserve(store, () => store.retention.dropRollups({ orgId, beforeMs }))
    rows += step.rows
    if (step.done) return rows
    await Bun.sleep(pauseMs)
  }
}

async function release(store: Pick<Store, 'retention'>): Promise<number> {
  for (let bytes = 0; ;) {
    const step = await withReserve(store, () => store.retention.release())
    bytes += step.bytes
    if (step.done) return bytes
    await Bun.sleep(pauseMs)
  }
}

/** Taking events away writes to the log first: on a full disk the reserve is the room for that, given up once. */
async function withReserve<T>(store: Pick<Store, 'retention'>, step: () => Promise<T>): Promise<T> {
  try {
    return await step()
  } catch (error) {
    if (!(error instanceof StoreError) || error.kind !== 'storage_full') throw error
    // What the log holds already may be in the database, which makes room in it too.
    const emptied = await store.retention.truncateLog()
    const given = await store.retention.dropReserve()
    if (!emptied && !given) throw error
    return step()
  }
}
