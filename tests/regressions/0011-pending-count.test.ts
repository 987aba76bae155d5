/** Scheduling a batch takes as long after a week of deliveries as after none, because only pending ones are counted. */
import { expect, test } from 'bun:test'
import { makeAudit, makeOrg } from '../store/make.ts'
import { makeDelivery, makeEndpoint } from '../store/webhook-make.ts'
import { openTestFolder, rawSql } from '../support/engine.ts'
import { quickestMs } from '../support/quickest.ts'
import { tempDir } from '../support/temp-dir.ts'

const orgId = 'org_busy'

test('100,000 delivered messages do not slow down a new one', async () => {
  using folder = tempDir('pending-count')
  const store = await openTestFolder(folder.path, { now: () => 1 })
  await store.orgs.create({ org: makeOrg({ id: orgId, slug: 'busy' }), audit: makeAudit(orgId) })
  await store.webhooks.createEndpoint({ endpoint: makeEndpoint(orgId, 'ep_busy'), audit: makeAudit(orgId) })
  let position = 0
  const advance = async (): Promise<void> => {
    const delivery = makeDelivery(orgId, `wh_${position}`, 'ep_busy', { endpointId: 'ep_busy' })
    const from = { position, sequence: position }
    const fields = { endpointId: 'ep_busy', missed: 0, pendingMax: 100 }
    const advanceResult = await store.webhooks.advance({ ...fields, from, position: position + 1, delivery })
    expect(advanceResult).toBe('advanced')
    position++
  }
  const beforeMs = await quickestMs(advance, 9)
  await rawSql(
    folder.path,
    `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
     INSERT INTO webhook_delivery (id, org_id, endpoint_id, url, lane, body, status, attempts, interruptions, probe,
       scheduled_at_ms, pending_since_ms, delivered_at_ms, ended_at_ms)
     SELECT 'wh_old_' || i, '${orgId}', 'ep_busy', 'http://receiver/', 'ep_busy', '{}', 'delivered', 1, 0, 0, 1, 1, 2, 2
     FROM n`,
  )
  const afterMs = await quickestMs(advance, 25)
  const count = (n: number) =>
    `(SELECT count(*) FROM webhook_delivery WHERE endpoint_id || '' = 'ep_busy' AND id <> '${n}') AS n${n}`
  const countsMs = (times: number) => {
    const sql = `SELECT ${Array.from({ length: times }, (_, n) => count(n)).join(', ')}`
    return quickestMs(() => rawSql(folder.path, sql), 5)
  }
  // Of ten counts at once, because opening the database takes longer than one.
  const countMs = ((await countsMs(11)) - (await countsMs(1))) / 10
  await store.close()
  expect(afterMs - beforeMs).toBeLessThan(countMs / 2)
}, 90_000)
