/** Several nodes append at once: every event is stored once, numbered without a gap, and counted. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { type SharedCluster, database, hasPooler, startPooler } from '../../../tests/support/postgres.ts'
import { makeBatch, makeEvent, noon } from '../../../tests/store/make.ts'
import { atOnce } from '../../sql/slices.ts'
import { compactEventReader } from '../../sql/events/reader.ts'
import { openConnection } from '../connection/connection.ts'
import { idsInTable } from '../events/ids.ts'
import { ofOrg } from '../events/id-hash.ts'
import { migrate, migrations } from '../migrations/migrations.ts'
import { upkeep } from '../upkeep/upkeep.ts'
import { openAppends, type Appends } from './append.ts'
import { openAppendClient, type AppendClient } from './client.ts'
import type { Database } from '../../sql/database.ts'
import type { EventBatch } from '../../contract/store.ts'

const nodes = 3
const clients: AppendClient[] = []
let appends: Appends[] = []
let cluster: SharedCluster
let name = ''
let db: Database
let otherNode: Database

beforeAll(async () => {
  const testDatabase = await database()
  const { url } = testDatabase
  ;({ cluster, name } = testDatabase)
  const options = { url, node: 'test', statementTimeoutMs: 30_000 }
  db = openConnection(options)
  otherNode = openConnection(options)
  migrate(db, 'sightglass', migrations, noon)
  for (let node = 0; node < nodes; node++) clients.push(openAppendClient(options))
  appends = await Promise.all(clients.map(openAppends))
})

afterAll(async () => {
  await Promise.all(clients.map((client) => client.end()))
  db.close()
  otherNode.close()
})

let orgId = ''
let orgs = 0
beforeEach(() => {
  orgId = `org_${++orgs}`
})

interface Sums {
  accepted: number
  deduped: number
}

/** Appends on every node at once, two groups at a time. Returns the sums of all outcomes. */
async function appendEverywhere(groups: number, makeGroup: (node: number) => EventBatch[]): Promise<Sums> {
  const sums: Sums = { accepted: 0, deduped: 0 }
  const worker = async (node: number) => {
    for (let group = 0; group < groups; group++) {
      for (const outcome of await appends[node]!.append(makeGroup(node))) {
        if ('kind' in outcome) throw new Error(outcome.message)
        expect(outcome.rejected).toEqual([])
        sums.accepted += outcome.accepted
        sums.deduped += outcome.deduped
      }
    }
  }
  await Promise.all(appends.flatMap((_, node) => [worker(node), worker(node)]))
  return sums
}

/** What four tables say of the number of stored events. */
function numbersOf(ownerOrg: string) {
  const row = db
    .query<
      { last: number; ids: number; first: number; highest: number; events: number; counted: number },
      [string]
    >(
      `SELECT last_seq AS last, i.ids, i.first, i.highest,
         (SELECT sum(events) FROM event_block WHERE place >= num * 68719476736 AND place < (num + 1) * 68719476736)
           AS events,
         (SELECT sum(accepted) FROM ingest_hour AS h WHERE h.org_id = o.org_id) AS counted
       FROM event_org AS o, LATERAL (
         SELECT count(DISTINCT seq) AS ids, min(seq) AS first, max(seq) AS highest FROM event_id WHERE ${ofOrg('num')}
       ) AS i WHERE o.org_id = ?`,
    )
    .get(ownerOrg)!
  return row
}

const count = { rejected: 0, aheadMaxMs: 0, behindMinMs: 1, keptSinceMs: 0 }

function batchOf(org: string, ids: string[], receivedAtMs: number): EventBatch {
  const events = ids.map((id, index) => {
    const json = JSON.stringify({ id, sessionId: `s${index % 3}`, n: index })
    return makeEvent(id, { sessionId: `s${index % 3}`, tool: `tool ${id.slice(0, -2)}`, json })
  })
  return { ...makeBatch(org, events), receivedAtMs, count }
}

function faults(ownerOrg: string) {
  const { faults: eventFaults } = compactEventReader(db, idsInTable(db)).verify()
  return eventFaults.filter((fault) => fault.orgId === ownerOrg)
}

// First, because it verifies all organizations three times.
test('verify finds an id that is missing, and one that leads to no arrival', async () => {
  await appends[0]!.append([batchOf(orgId, ['v1', 'v2', 'v3'], noon)])
  expect(faults(orgId)).toEqual([])
  const org = '(SELECT num FROM event_org WHERE org_id = ?1)'
  db.query(`DELETE FROM event_id WHERE ${ofOrg(org)} AND seq = 2`).run(orgId)
  const problems = () => faults(orgId).map(({ place, problem }) => `${place}: ${problem}`)
  expect(problems()).toEqual(['arrivals 1 to 3: the id of arrival 2 is not known'])
  const stray = "CAST(lpad(to_hex(num), 4, '0') || repeat('01', 14) AS uuid)"
  db.query(`INSERT INTO event_id (h, seq) SELECT ${stray}, 2 FROM event_org WHERE org_id = ?`).run(orgId)
  expect(problems()).toEqual([
    'arrivals 1 to 3: the id of arrival 2 is not known',
    'the known ids: 1 of them lead to no arrival',
  ])
})

test('three nodes with resends and equal new names store each event once and count it', async () => {
  const orgIds = [orgId, `${orgId}_too`]
  const sentIds = new Map(orgIds.map((senderOrg) => [senderOrg, new Set<string>()]))
  let madeCount = 0
  let total = 0
  const sums = await appendEverywhere(10, (node) =>
    orgIds.map((senderOrg) => {
      const ids = Array.from({ length: 1 + (madeCount % 150) }, (_, index) => {
        const id =
          index % 9 === 0 && madeCount > 0 ? `e${(madeCount * 7 + index) % madeCount}` : `e${madeCount++}`
        sentIds.get(senderOrg)!.add(id)
        total++
        return id
      })
      return batchOf(senderOrg, ids, noon + madeCount - node * 50)
    }),
  )
  const stored = orgIds.reduce((sum, senderOrg) => sum + sentIds.get(senderOrg)!.size, 0)
  expect(sums).toEqual({ accepted: stored, deduped: total - stored })
  for (const senderOrg of orgIds) {
    const n = sentIds.get(senderOrg)!.size
    expect(numbersOf(senderOrg)).toEqual({ last: n, ids: n, first: 1, highest: n, events: n, counted: n })
    expect(faults(senderOrg)).toEqual([])
  }
})

test.if(hasPooler)('through a pooler that changes connections, resends are known', async () => {
  const pooler = await startPooler(cluster, 1)
  const client = openAppendClient({ url: pooler.url(name), node: 'pooled', statementTimeoutMs: 5_000 })
  const pooled = await openAppends(client)
  const batch = batchOf(orgId, ['p1', 'p2', 'p3'], noon)
  expect(await pooled.append([batch])).toEqual([{ accepted: 3, deduped: 0, rejected: [] }])
  expect(await pooled.append([batch])).toEqual([{ accepted: 0, deduped: 3, rejected: [] }])
  expect(numbersOf(orgId)).toEqual({ last: 3, ids: 3, first: 1, highest: 3, events: 3, counted: 3 })
  await client.end()
  await pooler.stop()
})

test('times of arrival never fall although the clocks of the nodes differ', async () => {
  let madeCount = 0
  await appendEverywhere(20, (node) => {
    const ids = Array.from({ length: 3 }, () => `t${madeCount++}`)
    return [batchOf(orgId, ids, noon + madeCount - node * 5_000)]
  })
  const arrivalTimes = () => {
    const reader = compactEventReader(db, idsInTable(db))
    const { events } = atOnce(reader.tail({ orgId, filter: {}, afterSeq: 0, limit: 1_000 }))
    return events.map(({ receivedAtMs }) => receivedAtMs)
  }
  const times = arrivalTimes()
  expect(times.length).toBe(madeCount)
  expect(times).toEqual(times.toSorted((a, b) => a - b))
  expect(times[0]).toBeLessThan(times.at(-1)!)
  upkeep(db).run() // merges the blocks
  expect(arrivalTimes()).toEqual(times)
  expect(faults(orgId)).toEqual([])
})

test('a node knows whether others append to the same organization', async () => {
  let madeCount = 0
  const send = (node: number) => appends[node]!.append([batchOf(orgId, [`o${madeCount++}`], noon)])
  for (let n = 0; n < 10; n++) await send(0)
  expect(appends[0]!.othersAppend()).toBe(false)
  for (let n = 0; n < 3; n++) for (const node of [1, 0]) await send(node)
  expect([appends[0]!.othersAppend(), appends[1]!.othersAppend()]).toEqual([true, true])
  for (let n = 0; n < 8; n++) await send(0)
  expect(appends[0]!.othersAppend()).toBe(false)
})

test('no block crosses a segment, and due work of two nodes at once changes no answer', async () => {
  let madeCount = 0
  // Without new names, so that no conflict of terms makes a node read the last arrival.
  const unnamed = (batch: EventBatch) => ({
    ...batch,
    events: batch.events.map((event) => ({ ...event, tool: null })),
  })
  const send = (node: number, events: number) => {
    const ids = Array.from({ length: events }, () => `b${madeCount++}`)
    return appends[node]!.append([unnamed(batchOf(orgId, ids, noon))])
  }
  await send(1, 1) // from here on it knows of one arrival
  while (madeCount < 65_500) await send(0, Math.min(990, 65_500 - madeCount))
  await send(1, 100)
  await appendEverywhere(40, () => [
    batchOf(
      orgId,
      Array.from({ length: 11 }, () => `b${madeCount++}`),
      noon,
    ),
  ])
  expect(madeCount).toBeGreaterThan(65_536)
  const crossing = 'SELECT place FROM event_block WHERE place >> 16 <> (place + events - 1) >> 16'
  expect(db.query(crossing).all()).toEqual([])
  const answer = (connection: Database) => {
    const reader = compactEventReader(connection, idsInTable(connection))
    const filter = { sessionIds: ['s1'] }
    /** On a busy machine a count ends before its ceiling. */
    const countTo = (ceilingSeq: number) => {
      let count = 0
      let afterSeq = 0
      while (afterSeq < ceilingSeq) {
        const part = atOnce(reader.count({ orgId, filter, afterSeq, ceilingSeq }))
        count += part.count
        afterSeq = part.lastSeq
      }
      return count
    }
    return [
      countTo(2_000),
      atOnce(reader.metrics({ orgId, sinceMs: 0, untilMs: noon * 2, rowsMax: 1_000 })),
      atOnce(reader.page({ orgId, filter, before: null, limit: 50, ceilingSeq: null })),
      reader.byId({ orgId, id: 'b65535' }),
    ]
  }
  const answerBefore = answer(db)
  const blocks = () => db.query<{ n: number }, []>('SELECT count(*) AS n FROM event_block').get()!.n
  const blocksBefore = blocks()
  const works = [upkeep(db), upkeep(otherNode)]
  for (let run = 0; run < 3; run++) for (const work of works) work.run()
  expect(answer(db)).toEqual(answerBefore)
  expect(answer(otherNode)).toEqual(answerBefore)
  expect(blocks()).toBeLessThan(blocksBefore)
  const state = db.query('SELECT last_seq - folded_seq AS behind, segments FROM event_org WHERE org_id = ?')
  expect(state.get(orgId)).toEqual({ behind: 0, segments: 1 })
  expect(faults(orgId)).toEqual([])
})
