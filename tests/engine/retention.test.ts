/** Retention by days and by bytes through the whole store, beside writers that must not wait for it. */
import { expect, test } from 'bun:test'
import { Database } from 'bun:sqlite'
import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs'
import { openDatabaseAdmin, openStore } from '../../db/open.ts'
import { databasePath } from '../../db/sqlite/file/files.ts'
import type { ExpireCommand, Store } from '../../db/contract/store.ts'
import { startLog } from '../../server/log.ts'
import { expireAll } from '../../server/operations/retention/expire-all.ts'
import { makeRecount } from '../../server/operations/retention/recount.ts'
import { makeAudit, makeBatch, makeEvent, makeOrg, noon } from '../store/make.ts'
import { countAll } from '../store/subject.ts'
import { tempDir } from '../support/temp-dir.ts'
import { unending } from '../support/unending.ts'

const dayMs = 24 * 3_600_000
const log = startLog({ level: 'error', clock: { now: () => noon } })
const fullRange = { sinceMs: 0, untilMs: null, rowsMax: 0 }

async function fill(store: Store, orgId: string, from: number, count: number, receivedAtMs: number) {
  for (let start = from; start < from + count; start += 1_000) {
    const events = Array.from({ length: Math.min(1_000, from + count - start) }, (_, index) => {
      const n = start + index
      const json = JSON.stringify({ id: `evt_${n}`, noise: [1, 2, 3, 4].map((k) => Math.sin(n * k)) })
      return makeEvent(`evt_${n}`, { json, sessionId: `ses_${n}`, occurredAtMs: noon + n })
    })
    await store.events.append({ ...makeBatch(orgId, events), receivedAtMs })
  }
}

async function openWith(...names: string[]) {
  const dir = tempDir('retention')
  const store = await openStore({ folder: dir.path, now: noon })
  const orgs = names.map((name) => makeOrg({ id: `org_${name}`, slug: name }))
  for (const org of orgs) await store.orgs.create({ org, audit: makeAudit(org.id) })
  return { dir, store }
}

const storedCount = (store: Store, orgId: string) => countAll(store, orgId, {}, 10 ** 9)

/** The results of the readers, each of which is queried. */
async function totalsOf(store: Store, orgId: string): Promise<number[]> {
  const queries = Array.from({ length: 4 }, () => store.events.metrics({ orgId, ...fullRange }))
  return (await Promise.all(queries)).map(({ total }) => total)
}

test('by days: old events expire, counts stay, and an organization may have its own rule', async () => {
  const { dir, store } = await openWith('short', 'long')
  for (const orgId of ['org_short', 'org_long']) {
    await fill(store, orgId, 0, 5_120, noon)
    await fill(store, orgId, 5_120, 2_560, noon + 50 * dayMs)
  }
  const setting = { days: 200, bytes: null, auditDays: null }
  await store.retention.set({ orgId: 'org_long', setting, audit: makeAudit('org_long') })
  expect(await store.retention.setting('org_short')).toEqual({ days: null, bytes: null, auditDays: null })
  const rule = { days: 90, bytes: null, auditDays: null }
  await expireAll({ store, rule, log }, noon + 89 * dayMs, unending)
  expect([await storedCount(store, 'org_short'), await storedCount(store, 'org_long')]).toEqual([
    7_680, 7_680,
  ])
  await expireAll({ store, rule, log }, noon + 91 * dayMs, unending)
  expect([await storedCount(store, 'org_short'), await storedCount(store, 'org_long')]).toEqual([
    2_560, 7_680,
  ])
  expect((await store.events.metrics({ orgId: 'org_short', ...fullRange })).total).toBe(7_680)
  await expireAll(
    { store, rule: { days: null, bytes: null, auditDays: null }, log },
    noon + 300 * dayMs,
    unending,
  )
  expect(await storedCount(store, 'org_long')).toBe(0)
  expect(await totalsOf(store, 'org_long')).toEqual([7_680, 7_680, 7_680, 7_680])
  await expireAll(
    { store, rule: { days: null, bytes: null, auditDays: null }, log },
    noon + 900 * dayMs,
    unending,
  )
  expect([await storedCount(store, 'org_short'), await storedCount(store, 'org_long')]).toEqual([2_560, 0])
  // Drops exactly the rollups of hours without a live event after `countsRetentionDays`.
  expect(await totalsOf(store, 'org_long')).toEqual([0, 0, 0, 0])
  expect((await store.events.metrics({ orgId: 'org_short', ...fullRange })).total).toBeGreaterThanOrEqual(
    2_560,
  )
  expect((await store.events.overview('org_long')).total).toBe(0)
  expect((await openDatabaseAdmin(dir.path).verifyEvents()).faults).toEqual([])
  await store.close()
  dir.remove()
}, 90_000)

test('an organization whose events cannot be read does not hold up the others', async () => {
  const { dir, store } = await openWith('damaged', 'whole')
  for (const orgId of ['org_damaged', 'org_whole']) await fill(store, orgId, 0, 2_560, noon)
  const db = new Database(databasePath(dir.path))
  const num = "(SELECT num FROM event_org WHERE org_id = 'org_damaged')"
  db.run(`UPDATE event_block SET columns = x'00' WHERE place / (1 << 36) = ${num}`)
  db.close()
  const rule = { days: 90, bytes: null, auditDays: null }
  let releases = 0
  const retention = new Proxy(store.retention, {
    get: (verbs, name) => {
      if (name === 'release') releases++
      return Reflect.get(verbs, name) as unknown
    },
  })
  const { orgs, events, accessLogs } = store
  const watched = { orgs, events, accessLogs, retention }
  const run = expireAll({ store: watched, rule, log }, noon + 91 * dayMs, unending)
  expect(await run.catch((error: Error) => error.message)).toStartWith('organization org_damaged: ')
  expect(await storedCount(store, 'org_whole')).toBe(0)
  expect(releases).toBeGreaterThan(0)
  const recount = makeRecount({ store, log })
  const counted = recount.run(noon + 91 * dayMs, unending)
  expect(await counted.catch((error: Error) => error.message)).toStartWith('organization org_damaged: ')
  expect((await store.retention.recounted('org_whole'))?.throughMs).toBe(noon + 91 * dayMs)
  await store.close()
  dir.remove()
}, 90_000)

test('by bytes: the rest fits, the newest stay, and the file shrinks', async () => {
  const { dir, store } = await openWith('a')
  for (let day = 0; day < 20; day++) await fill(store, 'org_a', day * 2_048, 2_048, noon + day * dayMs)
  const bytesBefore = await store.retention.eventBytes('org_a')
  const bytesMax = Math.floor(bytesBefore / 4)
  await store.retention.maintain({ reason: 'deleted' })
  const { bytes: fileBefore } = await store.health()
  await expireAll(
    { store, rule: { days: null, bytes: bytesMax, auditDays: null }, log },
    noon + 20 * dayMs,
    unending,
  )
  const bytesAfter = await store.retention.eventBytes('org_a')
  expect(bytesAfter).toBeLessThanOrEqual(bytesMax)
  expect(bytesAfter).toBeGreaterThan(bytesMax * 0.8)
  const newest = await store.events.byId({ orgId: 'org_a', id: `evt_${20 * 2_048 - 1}` })
  expect(newest).not.toBeNull()
  expect(await store.events.byId({ orgId: 'org_a', id: 'evt_0' })).toBeNull()
  expect(await store.retention.maintain({ reason: 'deleted' })).toBe(true)
  // 8 MiB of pages stay free for new data.
  expect((await store.health()).bytes).toBeLessThan(
    fileBefore - (bytesBefore - bytesAfter) + 12 * 1024 * 1024,
  )
  expect(await store.retention.cutoff({ orgId: 'org_a', bytesMax })).toBeNull()
  expect((await openDatabaseAdmin(dir.path).verifyEvents()).faults).toEqual([])
  await store.close()
  dir.remove()
}, 90_000)

/** How long an append of 100 events within retention takes, in milliseconds. */
async function timedFill(store: Store, from: number): Promise<number> {
  const startedMs = performance.now()
  await fill(store, 'org_a', from, 100, noon + 91 * dayMs)
  return performance.now() - startedMs
}

/** How long this thread takes to compute a little and to sync 64 KiB to disk, in milliseconds. */
function timedSync(path: string): number {
  const startedMs = performance.now()
  const bytes = new Uint8Array(65_536)
  for (let index = 0, word = 1; index < bytes.length; index++) bytes[index] = word = (word * 31 + index) & 255
  const file = openSync(path, 'w')
  writeSync(file, bytes)
  fsyncSync(file)
  closeSync(file)
  return performance.now() - startedMs
}

test('aborted retention stops at its next step, and the next run completes it', async () => {
  const { dir, store } = await openWith('a')
  await fill(store, 'org_a', 0, 20_000, noon)
  const rule = { days: 90, bytes: null, auditDays: null }
  const ending = new AbortController()
  const durations: number[] = [] // deleted by each step
  await store.retention.maintain({ reason: 'full' }) // one block per step
  const counting = {
    ...store,
    events: {
      ...store.events,
      async expire(command: ExpireCommand) {
        const part = await store.events.expire(command)
        if (durations.push(part.events) === 3) ending.abort()
        return part
      },
    },
  }
  const run = expireAll({ store: counting, rule, log }, noon + 91 * dayMs, ending.signal)
  expect(await run.catch((error: Error) => error.name)).toBe('AbortError')
  expect(durations.length).toBe(3)
  // A block has 256 events, or more where the idle writer merged it with its neighbours.
  for (const events of durations) expect(events).toBeWithin(256, 4_097)
  expect(await storedCount(store, 'org_a')).toBe(20_000 - durations.reduce((sum, events) => sum + events))
  await expireAll({ store, rule, log }, noon + 91 * dayMs, unending)
  expect(await storedCount(store, 'org_a')).toBe(0)
  await store.close()
  expect((await openDatabaseAdmin(dir.path).verifyEvents()).faults).toEqual([])
}, 90_000)

test('retention beside ingest: no append waits long, and all counts are exact', async () => {
  const { dir, store } = await openWith('a')
  await fill(store, 'org_a', 0, 40_000, noon)
  let ended = false
  const expiring = expireAll(
    { store, rule: { days: 90, bytes: null, auditDays: null }, log },
    noon + 91 * dayMs,
    unending,
  ).finally(() => {
    ended = true
  })
  const waits: number[] = []
  const floors: number[] = []
  const floorFile = dir.join('floor')
  let nextNumber = 40_000
  while (!ended) {
    waits.push(await timedFill(store, nextNumber))
    floors.push(timedSync(floorFile))
    nextNumber += 100
  }
  await expiring
  expect(waits.length).toBeGreaterThan(5)
  // The promise is 250 ms. It grows in proportion where a bare write of the same size takes over 5 ms.
  const late = (times: number[]) => times.sort((a, b) => a - b)[Math.floor(times.length * 0.9)]!
  expect(late(waits)).toBeLessThan(50 * Math.max(5, late(floors)))
  const remainingCount = await storedCount(store, 'org_a')
  expect(remainingCount).toBeGreaterThanOrEqual(nextNumber - 40_000)
  expect(remainingCount).toBeLessThan(nextNumber - 40_000 + 256)
  expect((await store.events.metrics({ orgId: 'org_a', ...fullRange })).total).toBe(nextNumber)
  await store.close()
  expect((await openDatabaseAdmin(dir.path).verifyEvents()).faults).toEqual([])
  const db = new Database(dir.join('sightglass.db'), { readonly: true })
  expect(
    db.query<{ n: number }, []>('SELECT count(*) AS n FROM event_id_filter').get()?.n,
  ).toBeLessThanOrEqual(2)
  db.close()
  dir.remove()
}, 90_000)

test('events of a clock 400 days ahead expire with the first that arrived after them', async () => {
  const { dir, store } = await openWith('a')
  const times = [0, 20, 420, 421, 21, 60].map((day) => noon + day * dayMs)
  for (const [index, receivedAtMs] of times.entries())
    await fill(store, 'org_a', index * 2_048, 2_048, receivedAtMs)
  const from = async () => {
    const storedEvents = await Promise.all(
      times.map((_, index) => store.events.byId({ orgId: 'org_a', id: `evt_${index * 2_048}` })),
    )
    return storedEvents.findIndex((event) => event !== null)
  }
  const byDays = (day: number) =>
    expireAll({ store, rule: { days: 30, bytes: null, auditDays: null }, log }, noon + day * dayMs, unending)
  await byDays(49)
  expect(await from()).toBe(1)
  // The block of day 20 is old. Only the block of day 21 tells how old the next two are.
  await byDays(50.5)
  expect(await from()).toBe(2)
  await byDays(52)
  expect(await from()).toBe(5)
  await byDays(91)
  expect(await from()).toBe(-1)
  expect((await openDatabaseAdmin(dir.path).verifyEvents()).faults).toEqual([])
  await store.close()
  dir.remove()
}, 90_000)

test('by bytes in order of arrival: a block of a clock ahead does not expire newer ones', async () => {
  const { dir, store } = await openWith('a')
  const days = [0, 1, 400, 2, 3]
  for (const [index, day] of days.entries())
    await fill(store, 'org_a', index * 2_048, 2_048, noon + day * dayMs)
  const bytesMax = Math.floor((await store.retention.eventBytes('org_a')) * 0.5)
  const rule = { days: null, bytes: bytesMax, auditDays: null }
  await expireAll({ store, rule, log }, noon + 4 * dayMs, unending)
  expect(await store.events.byId({ orgId: 'org_a', id: `evt_${3 * 2_048}` })).not.toBeNull()
  expect(await store.events.byId({ orgId: 'org_a', id: 'evt_0' })).toBeNull()
  expect(await store.retention.eventBytes('org_a')).toBeLessThanOrEqual(bytesMax)
  expect((await openDatabaseAdmin(dir.path).verifyEvents()).faults).toEqual([])
  await store.close()
  dir.remove()
}, 90_000)
