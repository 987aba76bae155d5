/** Engine verbs through the whole store: threads, transactions, audit. */
import { expect, test } from 'bun:test'
import { openDatabaseAdmin, openStore } from '../../db/open.ts'
import { makeAudit, makeBatch, makeOrg, noon } from '../store/make.ts'
import { auditOf } from '../store/subject.ts'
import { tempDir } from '../support/temp-dir.ts'
import { event } from './subject.ts'

const fullRange = { sinceMs: 0, untilMs: null }

test('count, recount, erase, expire and verify', async () => {
  using dir = tempDir('seam')
  const store = await openStore({ folder: dir.path, now: noon })
  const org = makeOrg()
  const orgId = org.id
  await store.orgs.create({ org, audit: makeAudit(orgId) })
  const events = Array.from({ length: 900 }, (_, n) => event(n, n * 1_000))
  await store.events.append(makeBatch(orgId, events))

  const metrics = await store.events.metrics({ orgId, ...fullRange, rowsMax: 3 })
  expect([metrics.total, metrics.rows.length, metrics.truncated]).toEqual([900, 3, true])
  const byTool = await store.events.breakdown({ orgId, ...fullRange, by: 'tool', stepMs: null })
  expect(byTool.rows.reduce((sum, { count }) => sum + count, 0)).toBe(450)
  expect(await store.events.recount({ orgId, hourStartMs: noon })).toBe(0)

  const audit = makeAudit(orgId, { action: 'data.erased' })
  const command = { orgId, sessionIds: ['ses_1'], subjects: [] }
  const first = await store.events.erase({ ...command, audit, cursor: null })
  expect(first).toMatchObject({ events: 180, next: { among: 'deliveries', after: 0 } })
  const secondResult = await store.events.erase({ ...command, audit: null, cursor: first.next })
  expect(secondResult).toEqual({ events: 0, deliveries: 0, samples: 0, next: null })
  expect((await auditOf(store, orgId)).filter(({ action }) => action === 'data.erased').length).toBe(1)
  expect(await store.events.append(makeBatch(orgId, events))).toMatchObject({ accepted: 0, deduped: 900 })

  const older = { orgId, receivedBeforeMs: noon + 900_000 }
  expect(await store.events.expire(older)).toEqual({ events: 720, done: true })
  expect((await store.events.metrics({ orgId, ...fullRange, rowsMax: 0 })).total).toBe(720)
  expect(await store.events.recount({ orgId, hourStartMs: noon })).toBe(0)
  expect(await store.events.append(makeBatch(orgId, events.slice(0, 10)))).toMatchObject({ accepted: 10 })
  expect(await openDatabaseAdmin(dir.path).verifyEvents()).toEqual({
    orgs: [{ orgId, events: 10 }],
    faults: [],
  })
  await store.close()
  expect(await openDatabaseAdmin(dir.path).verifyEvents()).toEqual({
    orgs: [{ orgId, events: 10 }],
    faults: [],
  })
}, 90_000)
