/** The hourly re-count: each closed hour once, missed hours caught up, repairs counted, clock steps harmless. */
import { expect, test } from 'bun:test'
import { Database } from 'bun:sqlite'
import { openDatabaseAdmin, openStore } from '../../db/open.ts'
import type { EventRecord, Store } from '../../db/contract/store.ts'
import { startLog } from '../../server/log.ts'
import { StoreError } from '../../db/contract/errors.ts'
import { forEachOrg } from '../../server/system/steps.ts'
import { makeRecount } from '../../server/operations/retention/recount.ts'
import { makeAudit, makeBatch, makeOrg, noon } from '../store/make.ts'
import { failure } from '../store/subject.ts'
import { tempDir } from '../support/temp-dir.ts'
import { unending } from '../support/unending.ts'
import { event } from './subject.ts'

const hourMs = 3_600_000
const log = { ...startLog({ level: 'error', clock: { now: () => noon } }), error: () => undefined }

/** A store that records its re-counts. */
function watched(store: Store): { hours: number[]; store: Store } {
  const hours: number[] = []
  const recount: Store['events']['recount'] = (query) => {
    hours.push((query.hourStartMs - noon) / hourMs)
    return store.events.recount(query)
  }
  return { hours, store: { ...store, events: { ...store.events, recount } } }
}

test('counts each ended hour, resumes where it stopped, and repairs', async () => {
  using dir = tempDir('recount')
  let store = await openStore({ folder: dir.path, now: noon })
  await store.orgs.create({ org: makeOrg({ id: 'org_a' }), audit: makeAudit('org_a') })
  const events = Array.from({ length: 3_000 }, (_, n) => event(n, (n % 6) * hourMs))
  for (let offset = 0; offset < 3_000; offset += 1_000) {
    await store.events.append(makeBatch('org_a', events.slice(offset, offset + 1_000)))
  }
  await store.events.expire({ orgId: 'org_a', receivedBeforeMs: 0 }) // nothing is that old, but rollups are folded
  const look = watched(store)
  const recount = makeRecount({ store: look.store, log })
  await recount.run(noon + 2.5 * hourMs, unending)
  expect(look.hours.splice(0)).toEqual([0, 1])
  await recount.run(noon + 2.9 * hourMs, unending)
  expect(look.hours.splice(0)).toEqual([])
  expect(recount.repaired()).toBe(0)
  const progress = await store.retention.recounted('org_a')
  expect(progress).toEqual({ throughMs: noon + 2 * hourMs, repaired: 0 })
  await store.close()

  // No code of ours does this: a wrong count.
  const spoil = new Database(dir.join('sightglass.db'))
  spoil.run('UPDATE rollup_metric SET live = live + 3 WHERE hour = ?', [noon / hourMs + 3])
  spoil.close()
  expect((await openDatabaseAdmin(dir.path).verifyEvents()).faults.length).toBeGreaterThan(0)

  store = await openStore({ folder: dir.path, now: noon })
  const job = { job: 'rollup-recount', leaseMs: 60_000, now: noon }
  const lost = (await store.jobs.claim({ ...job, node: 'a' }))!
  const lease = (await store.jobs.claim({ ...job, node: 'a' }))!
  const hour = { orgId: 'org_a', hourStartMs: noon + 3 * hourMs }
  expect((await failure(store.events.recount({ ...hour, lease: lost }))).kind).toBe('conflict')
  await store.jobs.release({ ...lease, quietMs: 0, now: noon })
  const again = watched(store)
  const next = makeRecount({ store: again.store, log })
  await next.run(noon + 6 * hourMs, unending) // four hours were missed
  expect(again.hours.splice(0)).toEqual([2, 3, 4, 5])
  expect(next.repaired()).toBeGreaterThan(0)
  expect((await store.retention.recounted('org_a'))?.repaired).toBe(next.repaired())

  // The clock jumps a month ahead and back: hours counted too early are counted again.
  await next.run(noon + 30 * 24 * hourMs, unending)
  again.hours.length = 0
  await next.run(noon + 7 * hourMs, unending)
  expect(again.hours.splice(0)).toEqual([0, 1, 2, 3, 4, 5, 6])
  await next.run(noon + 8 * hourMs, unending)
  expect(again.hours).toEqual([7])
  await store.close()
  expect((await openDatabaseAdmin(dir.path).verifyEvents()).faults).toEqual([])
}, 90_000)

test('late arrivals for a recounted hour and day count at once, and the next re-count agrees', async () => {
  using dir = tempDir('recount-late')
  const store = await openStore({ folder: dir.path, now: noon })
  await store.orgs.create({ org: makeOrg({ id: 'org_a' }), audit: makeAudit('org_a') })
  const recount = makeRecount({ store, log })
  const midnight = noon + 12 * hourMs
  const fold = () => store.events.expire({ orgId: 'org_a', receivedBeforeMs: 0 }) // nothing is that old
  const totals = async () => {
    const query = { orgId: 'org_a', sinceMs: noon, untilMs: midnight }
    const metrics = await store.events.metrics({ ...query, rowsMax: 1_000 })
    const tools = await store.events.breakdown({ ...query, by: 'tool', stepMs: null })
    const durations = await store.events.durations({ ...query, stepMs: null })
    const sum = (rows: { count: number }[]) => rows.reduce((total, { count }) => total + count, 0)
    return [metrics.total, sum(metrics.byHour), sum(tools.rows), sum(durations.rows)]
  }
  const truth = (events: EventRecord[]) => {
    const toolEvents = events.filter(({ tool }) => tool !== null)
    return [
      events.length,
      events.length,
      toolEvents.length,
      toolEvents.filter((call) => call.durationMs !== null).length,
    ]
  }
  const onTime = Array.from({ length: 600 }, (_, n) => event(n, (n % 12) * hourMs))
  const late = Array.from({ length: 300 }, (_, n) => event(1_000 + n, (n % 12) * hourMs + 17))

  await store.events.append(makeBatch('org_a', onTime))
  await fold()
  await recount.run(midnight + hourMs, unending) // the day is closed
  expect((await store.retention.recounted('org_a'))?.throughMs).toBe(midnight + hourMs)
  for (const [index, part] of [late.slice(0, 100), late.slice(100)].entries()) {
    await store.events.append(makeBatch('org_a', part))
    const arrived = [...onTime, ...late.slice(0, index === 0 ? 100 : 300)]
    expect(await totals()).toEqual(truth(arrived)) // unfolded
    await fold()
    expect(await totals()).toEqual(truth(arrived)) // in the rollups
    for (let hour = 0; hour < 12; hour++)
      expect(await store.events.recount({ orgId: 'org_a', hourStartMs: noon + hour * hourMs })).toBe(0)
  }
  await recount.run(midnight + 3 * hourMs, unending)
  expect(recount.repaired()).toBe(0)
  await store.close()
  expect((await openDatabaseAdmin(dir.path).verifyEvents()).faults).toEqual([])
}, 90_000)

test('a recount of many blocks does not block its reader, and a stop does not wait for it', async () => {
  using dir = tempDir('recount')
  const store = await openStore({ folder: dir.path, now: noon, readers: 1 })
  await store.orgs.create({ org: makeOrg({ id: 'org_a' }), audit: makeAudit('org_a') })
  const events = Array.from({ length: 30_000 }, (_, n) => event(n, n)) // 118 blocks of one hour, five slices
  for (let offset = 0; offset < events.length; offset += 1_000)
    await store.events.append(makeBatch('org_a', events.slice(offset, offset + 1_000)))
  await store.events.expire({ orgId: 'org_a', receivedBeforeMs: 0 }) // rollups are folded
  const answered: string[] = []
  const recount = () => store.events.recount({ orgId: 'org_a', hourStartMs: noon })
  await Promise.all([
    recount().then((rows) => answered.push(`${rows} rows wrong`)),
    store.events.lastSeq('org_a').then((seq) => answered.push(`last is ${seq}`)),
  ])
  expect(answered).toEqual(['last is 30000', '0 rows wrong'])

  const ending = new AbortController()
  const run = makeRecount({ store, log }).run(noon + 2 * hourMs, ending.signal)
  setTimeout(() => ending.abort(), 1)
  expect(await run.catch((error: Error) => error.name)).toBe('AbortError')
  const abandoned = recount()
  await Promise.all([store.close(), abandoned.catch((error: StoreError) => answered.push(error.kind))])
  expect(answered.at(-1)).toBe('closed')
}, 90_000)

test('a run that lost its lease ends at once; a damaged organization ends no run', async () => {
  const visited: string[] = []
  const failing = (kind: 'conflict' | 'corrupt') =>
    forEachOrg(['org_a', 'org_b'], async (orgId) => {
      visited.push(orgId)
      throw new StoreError(kind, 'no')
    })
  expect(await failing('conflict').catch(String)).toBe('StoreError: no')
  expect(visited.splice(0)).toEqual(['org_a'])
  expect(String(await failing('corrupt'))).toBe('StoreError: organization org_a: no')
  expect(visited).toEqual(['org_a', 'org_b'])
})
