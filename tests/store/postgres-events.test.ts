/** Events on PostgreSQL while nodes delete, lose the server and append at once. */
import { afterAll, expect, test } from 'bun:test'
import { openConnection } from '../../db/postgres/connection/connection.ts'
import { idsInTable } from '../../db/postgres/events/ids.ts'
import { openPostgresStore } from '../../db/postgres/store.ts'
import { compactEventReader } from '../../db/sql/events/reader.ts'
import type { SqlStore } from '../../db/sql/store/store.ts'
import { database, startPostgres } from '../support/postgres.ts'
import { readAtOnce } from '../support/read-at-once.ts'
import { spreadBlocks } from '../support/spread-blocks.ts'
import { until } from '../support/until.ts'
import { makeAudit, makeBatch, makeEvent, makeOrg, noon } from './make.ts'

const opened: SqlStore[] = []
afterAll(async () => {
  await Promise.all(opened.map((store) => store.close()))
})

async function openNode(url: string, node: string): Promise<SqlStore> {
  const store = await openPostgresStore({ url, node, now: noon, readers: 1, readDeadlineMs: 10_000 })
  opened.push(store)
  return store
}

async function twoNodes(): Promise<[SqlStore, SqlStore]> {
  const { url } = await database('migrated')
  return [await openNode(url, 'one'), await openNode(url, 'two')]
}

const eventsOf = (siteId: string, ids: string[]) =>
  ids.map((id) => makeEvent(id, { siteId, sessionId: `of ${id}`, json: JSON.stringify({ id, siteId }) }))

async function faults(store: SqlStore) {
  return (await store.call('events.verify')).faults
}

async function stored(store: SqlStore, orgId: string): Promise<string[]> {
  const ids: string[] = []
  for (let afterSeq = 0; ;) {
    const { events, lastSeq } = await store.events.tail({ orgId, filter: {}, afterSeq, limit: 10_000 })
    for (const { json } of events) ids.push((JSON.parse(json) as { id: string }).id)
    if (events.length === 0) return ids
    afterSeq = lastSeq
  }
}

const dayMs = 86_400_000

test('a site is removed on one node while the other appends to it: no event names a deleted term', async () => {
  const [firstNode, two] = await twoNodes()
  const { id: orgId } = makeOrg()
  let accepted = 0
  let removed = 0
  for (let round = 0; round < 12; round++) {
    const ids = Array.from({ length: 30 }, (_, index) => `${round} ${index}`)
    const appends = [
      two.events.append(makeBatch(orgId, eventsOf('shop', ids.slice(0, 15)))),
      two.events.append(makeBatch(orgId, eventsOf(`shop ${round}`, ids.slice(15)))),
    ]
    removed += await firstNode.events.removeSite({ orgId, siteId: 'shop', audit: makeAudit(orgId) })
    for (const result of await Promise.all(appends)) accepted += result.accepted
  }
  expect(accepted).toBe(360)
  expect((await stored(firstNode, orgId)).length).toBe(accepted - removed)
  expect(await faults(firstNode)).toEqual([])
  // Removed ids are new again, on either node; the others are known.
  const storedIds = new Set(await stored(firstNode, orgId))
  const again = Array.from({ length: 12 }, (_, round) => `${round} 0`)
  const result = await two.events.append(makeBatch(orgId, eventsOf('shop', again)))
  const newOnes = again.filter((id) => !storedIds.has(id)).length
  expect(result).toEqual({ accepted: newOnes, deduped: again.length - newOnes, rejected: [] })
  expect(await faults(two)).toEqual([])
})

test('an erased id stays known to both nodes, and an expired one is new again', async () => {
  const [firstNode, two] = await twoNodes()
  const { id: orgId } = makeOrg()
  const ids = Array.from({ length: 300 }, (_, index) => `e${index}`)
  await firstNode.events.append(makeBatch(orgId, eventsOf('shop', ids)))
  const erasure = { orgId, sessionIds: ['of e7'], subjects: [], audit: makeAudit(orgId), cursor: null }
  expect((await two.events.erase(erasure)).events).toBe(1)
  expect(await firstNode.events.byId({ orgId, id: 'e7' })).toBeNull()
  const resend = makeBatch(orgId, eventsOf('shop', ['e7', 'e8']))
  for (const node of [firstNode, two]) expect(await node.events.append(resend)).toMatchObject({ deduped: 2 })
  expect(await faults(firstNode)).toEqual([])
  const cutoffMs = noon + 60_000
  expect(await two.events.expire({ orgId, receivedBeforeMs: cutoffMs })).toEqual({ events: 299, done: true })
  const later = { ...resend, receivedAtMs: cutoffMs }
  expect(await firstNode.events.append(later)).toEqual({ accepted: 2, deduped: 0, rejected: [] })
  expect(await stored(two, orgId)).toEqual(['e7', 'e8'])
  expect(await faults(two)).toEqual([])
})

test('acknowledged events are stored after the server was killed, and resends complete the rest', async () => {
  const cluster = await startPostgres({ fsync: true })
  const store = await openNode(cluster.url, 'one')
  const { id: orgId } = makeOrg()
  const acknowledged = new Set<string>()
  const sentIds: string[] = []
  let kinds = new Set<string>()
  let isKilled = false
  const send = async (ids: string[]) => {
    const result = await store.events.append(makeBatch(orgId, eventsOf('shop', ids)))
    for (const id of ids) acknowledged.add(id)
    return result
  }
  const sender = async (name: string) => {
    for (let batch = 0; !isKilled; batch++) {
      const ids = Array.from({ length: 20 }, (_, index) => `${name} ${batch} ${index}`)
      sentIds.push(...ids)
      await send(ids).catch((error: { kind: string }) => {
        kinds.add(error.kind)
        return Bun.sleep(20) // the server may take a while to end
      })
    }
  }
  const senders = Promise.all(['a', 'b', 'c'].map(sender))
  await until(() => acknowledged.size >= 1_000)
  await cluster.kill()
  isKilled = true
  await senders
  expect([...kinds].filter((kind) => kind !== 'unavailable')).toEqual([])
  await cluster.restart()
  kinds = new Set()
  const idsAfter = new Set(await retried(() => stored(store, orgId)))
  expect(acknowledged.size).toBeGreaterThan(0)
  expect([...acknowledged].filter((id) => !idsAfter.has(id)).slice(0, 5)).toEqual([])
  for (let from = 0; from < sentIds.length; from += 500)
    await retried(() => send(sentIds.slice(from, from + 500)))
  expect((await stored(store, orgId)).toSorted().join()).toBe(sentIds.toSorted().join())
  expect(await faults(store)).toEqual([])
  await store.close()
  await cluster.stop()
}, 60_000)

test('a page reads its rows from the indexes of many segments at once', async () => {
  const { url } = await database('migrated')
  const store = await openNode(url, 'one')
  const { id: orgId } = makeOrg()
  for (let block = 0; block < 12; block++) {
    const events = Array.from({ length: 256 }, (_, index) => {
      const id = `${block} ${index}`
      const outcome = index < 2 ? 'rare' : index === 3 && block === 5 ? 'once' : 'success'
      return makeEvent(id, { outcome, json: JSON.stringify({ id, outcome }) })
    })
    await store.events.append(makeBatch(orgId, events))
  }
  await store.close()
  const db = openConnection({ url, node: 'reader', statementTimeoutMs: 10_000 })
  const { num } = db.query<{ num: number }>('SELECT num FROM event_org').get()!
  const ceilingSeq = spreadBlocks(db, num)
  const reader = readAtOnce(compactEventReader(db, idsInTable(db)))
  const page = (outcomes: string[], limit: number) => {
    const { events } = reader.page({ orgId, filter: { outcomes }, limit, before: null, ceilingSeq })
    return events.map(({ json }) => (JSON.parse(json) as { id: string }).id)
  }
  const rare = Array.from({ length: 24 }, (_, n) => `${11 - (n >> 1)} ${1 - (n % 2)}`)
  for (let times = 0; times < 2; times++) expect(page(['rare'], 30)).toEqual(rare)
  expect(page(['rare'], 7)).toEqual(rare.slice(0, 7))
  expect([page(['once'], 5), page(['never'], 5)]).toEqual([['5 3'], []])
  expect(page(['once', 'rare'], 30)).toEqual(rare.toSpliced(12, 0, '5 3'))
  db.close()
})

test('counts by hour are exact when the server reads a table instead of its index', async () => {
  const { url } = await database('migrated')
  const db = openConnection({ url, node: 'watcher', statementTimeoutMs: 10_000 })
  const { name } = db.query<{ name: string }>('SELECT current_database() AS name').get()!
  for (const kind of ['indexscan', 'indexonlyscan', 'bitmapscan'])
    db.run(`ALTER DATABASE "${name}" SET enable_${kind} = off`)
  const store = await openNode(url, 'one')
  const { id: orgId } = makeOrg()
  const hourMs = 3_600_000
  const hours = 50
  // The newest hours come first, so that they are first in the table.
  for (let hour = hours - 1; hour >= 0; hour--) {
    const events = Array.from({ length: hour + 1 }, (_, index) =>
      makeEvent(`${hour} ${index}`, {
        vendor: `vendor ${index % 3}`,
        occurredAtMs: noon + hour * hourMs,
        json: '{}',
      }),
    )
    await store.events.append(makeBatch(orgId, events))
  }
  await until(() => db.query('SELECT 1 FROM event_org WHERE folded_seq = last_seq').get() !== null)
  const range = { orgId, sinceMs: noon, untilMs: noon + hours * hourMs }
  const { rows } = await store.events.breakdown({ ...range, by: 'vendor', stepMs: hourMs })
  const hourCounts = Array<number>(hours).fill(0)
  for (const { startMs, count } of rows) hourCounts[(startMs - noon) / hourMs]! += count
  expect(hourCounts).toEqual(Array.from({ length: hours }, (_, hour) => hour + 1))
  db.close()
}, 60_000)

const spreadEvents = 66_000

/** Over six days, each of which has many values. One event has a plan and a session of its own. */
async function appendSpread(store: SqlStore, orgId: string): Promise<void> {
  const plans = ['pro', 'free', 'team']
  for (let from = 0; from < spreadEvents; from += 3_000) {
    const events = Array.from({ length: 3_000 }, (_, index) => {
      const id = `e${from + index}`
      const plan = from + index === 20_000 ? 'only theirs' : plans[(from + index) % 3]
      const sessionId = from + index === 20_000 ? 'of theirs' : `s${(from + index) >> 10}`
      const vendor = `vendor ${index % 61}`
      const occurredAtMs = noon + Math.floor(((from + index) / spreadEvents) * 6 * dayMs)
      return makeEvent(id, {
        sessionId,
        vendor,
        occurredAtMs,
        json: JSON.stringify({ id, metadata: { plan } }),
      })
    })
    await store.events.append(makeBatch(orgId, events))
  }
}

test('a node builds path columns of sealed segments and sums of days, and an erasure empties them', async () => {
  const { url } = await database('migrated')
  const store = await openNode(url, 'one')
  const db = openConnection({ url, node: 'watcher', statementTimeoutMs: 10_000 })
  const { id: orgId } = makeOrg()
  await appendSpread(store, orgId)
  const rows = async (): Promise<{ path: string; packed: Uint8Array }[]> => {
    const pathRows = () =>
      db.query<{ path: string; packed: Uint8Array }>('SELECT path, packed FROM event_path').all()
    for (let tries = 0; pathRows().length === 0 && tries < 100; tries++) await Bun.sleep(100)
    return pathRows()
  }
  const explored = async () => {
    const query = { orgId, filter: {}, measure: 'events' as const, by: { metadata: 'plan' }, rowsMax: 10 }
    const edges = [noon - 3_600_000, noon + 7 * dayMs]
    const planCounts = await store.events.explore({ ...query, edges, budgetMs: 60_000 })
    return planCounts.rows.map(({ value, total }) => [value, total])
  }
  const holds = (column: { packed: Uint8Array }, text: string) =>
    Bun.zstdDecompressSync(column.packed as Uint8Array<ArrayBuffer>).includes(Buffer.from(text)) as boolean
  const third = spreadEvents / 3
  const largestGroups = [
    ['free', third],
    ['pro', third],
    ['team', third - 1],
  ]
  const [head, plan] = (await rows()).toSorted((a, b) => a.path.length - b.path.length)
  expect([head!.path, plan!.path, holds(plan!, 'only theirs')]).toEqual(['', '"plan"', true])
  expect(await explored()).toEqual([...largestGroups, ['only theirs', 1]])
  const days = () =>
    db
      .query<{ day: number }>('SELECT DISTINCT day FROM rollup_day WHERE length(sums) > 0 ORDER BY day')
      .all()
      .map(({ day }) => day)
  const range = { orgId, sinceMs: noon - dayMs, untilMs: noon + 9 * dayMs }
  for (let tries = 0; days().length === 0 && tries < 100; tries++) await Bun.sleep(100)
  const summed = days()
  expect(summed.length).toBe(6) // of seven: the last one is not over
  const fromSums = readAtOnce(compactEventReader(db, idsInTable(db))).classVendor(range)
  expect(fromSums).toEqual(await store.events.classVendor(range))
  await store.events.erase({
    orgId,
    sessionIds: ['of theirs'],
    subjects: [],
    audit: makeAudit(orgId),
    cursor: null,
  })
  expect(await explored()).toEqual(largestGroups)
  expect(days()).toEqual(summed.toSpliced(2, 1)) // the third one had the event
  const again = (await rows()).find(({ path }) => path !== '')
  expect(holds(again!, 'only theirs')).toBe(false)
  expect(await explored()).toEqual(largestGroups)
  expect(await faults(store)).toEqual([])
  db.close()
}, 60_000)

/** While connections are made again, calls are `unavailable`. */
async function retried<T>(call: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await call()
    } catch (error) {
      if (tries === 50 || (error as { kind: string }).kind !== 'unavailable') throw error
      await Bun.sleep(100)
    }
  }
}
