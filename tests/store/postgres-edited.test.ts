/** Rows that somebody edited in SQL: `verify` names the organization, and the range of arrivals or the entry. */
import { expect, test } from 'bun:test'
import { ofOrg } from '../../db/postgres/events/id-hash.ts'
import { openDatabaseAdmin, openStore } from '../../db/open.ts'
import { database } from '../support/postgres.ts'
import { accessEdits, linesBatch, someLog } from './access-log-cases.ts'
import { makeAudit, makeBatch, makeEvent, makeOrg, noon } from './make.ts'

const flipped = (column: string) => `${column} = set_byte(${column}, 9, get_byte(${column}, 9) # 1)`
const bytes = 'arrivals 201 to 400: the bytes of the block differ from those written'
const totals = 'the totals by type: differ from the rollups for 1 types'
const ofNum = ofOrg('NUM')
const rollup = 'the rollup of 2026-06-01T12:00:00.000Z'

/** Each edits one organization: NUM is its number, SECOND the place of its second block, ORG its id. */
const edits: { [name: string]: { sql: string; named: string } } = {
  ...accessEdits,
  nothing: { sql: '', named: '' },
  columns: { sql: `UPDATE event_block SET ${flipped('columns')} WHERE place = SECOND`, named: bytes },
  texts: { sql: `UPDATE event_body SET ${flipped('bodies')} WHERE place = SECOND`, named: bytes },
  ids: { sql: `UPDATE event_body SET ${flipped('ids')} WHERE place = SECOND`, named: bytes },
  'texts deleted': {
    sql: 'DELETE FROM event_body WHERE place = SECOND',
    named: 'arrivals 201 to 400: the texts of the block are missing',
  },
  'a block deleted': {
    sql: 'DELETE FROM event_block WHERE place = SECOND',
    named: `${rollup}: says 200 too many`,
  },
  'the time of a block': {
    sql: 'UPDATE event_block SET min_at = min_at + 100000000 WHERE place = SECOND',
    named: 'arrivals 201 to 400: times are outside the range that the block declares',
  },
  'an id moved': {
    sql: `UPDATE event_id SET seq = 7 WHERE ${ofNum} AND seq = 300`,
    named: 'arrivals 201 to 400: the id of arrival 300 is not known',
  },
  'an id deleted': {
    sql: `DELETE FROM event_id WHERE ${ofNum} AND seq = 300`,
    named: 'arrivals 201 to 400: the id of arrival 300 is not known',
  },
  'an id added': {
    sql: `INSERT INTO event_id SELECT (left(h::text, 4) || repeat('01', 14))::uuid, 300 FROM event_id
      WHERE ${ofNum} AND seq = 300`,
    named: 'the known ids: 1 of them lead to no arrival',
  },
  'an hour counted up': {
    sql: 'UPDATE rollup_metric SET live = live + 1 WHERE org = NUM',
    named: `${rollup}: says 1 too many`,
  },
  'a value counted down': {
    sql: 'UPDATE rollup_value SET live = live - 1 WHERE org = NUM AND member = 5',
    named: 'the rollup by vendor of 2026-06-01T12:00:00.000Z: says 1 too few',
  },
  'a total': { sql: 'UPDATE event_type_total SET events = events + 1 WHERE org = NUM', named: totals },
  'a term renamed': {
    sql: "UPDATE event_term SET text = 'Anybody' WHERE org = NUM AND member = 5",
    named: 'arrivals 201 to 400: the value of vendor differs from that of 200 events',
  },
  'the last arrival number raised': {
    sql: 'UPDATE event_org SET last_seq = last_seq + 1000 WHERE num = NUM',
    named: 'the last arrival number: says 1600, but no arrival after 600 is stored',
  },
  'the last arrival number': {
    sql: 'UPDATE event_org SET last_seq = last_seq - 5 WHERE num = NUM',
    named: 'the last arrival number: says 595, but arrival 600 is stored',
  },
  'an entry edited': {
    sql: `UPDATE audit_entry SET actor = 'eve' WHERE id = 'aud_ORG_2'`,
    named: 'position 4 aud_ORG_2 is edited',
  },
  'an entry deleted': {
    sql: `DELETE FROM audit_entry WHERE id = 'aud_ORG_2'`,
    named: 'position 4 null is missing',
  },
  'the last entry deleted': {
    sql: `DELETE FROM audit_entry WHERE id = 'aud_ORG_4'`,
    named: 'position 6 null is cut',
  },
}

test('an edited block, id, count or audit entry is named with its organization, and no other', async () => {
  const { url, cluster, name } = await database('migrated')
  const shared = { url, node: 'one' }
  const store = await openStore({ folder: '', now: noon, shared })
  const orgs = Object.keys(edits).map((edit) => ({ what: edit, org: makeOrg() }))
  for (const { what: edit, org } of orgs) {
    await store.orgs.create({ org, audit: makeAudit(org.id) })
    for (let from = 0; from < 600; from += 200) {
      const json = JSON.stringify({ agent: { vendor: 'Acme' } })
      const events = Array.from({ length: 200 }, (_, n) =>
        makeEvent(`evt_${from + n}`, { vendor: 'Acme', json }),
      )
      await store.events.append(makeBatch(org.id, events))
    }
    if (edit in accessEdits) await store.events.append(linesBatch(org.id, someLog, 0, someLog.length))
    for (let n = 0; n < 5; n++) await store.audit.append({ ...makeAudit(org.id), id: `aud_${org.id}_${n}` })
  }
  const unfolded = 'SELECT count(*) FROM sightglass.event_org WHERE folded_seq < last_seq'
  while ((await cluster.sql(unfolded, name)) !== '0') await Bun.sleep(50)
  await store.close()

  for (const { what: edit, org } of orgs) {
    const num = `(SELECT num FROM event_org WHERE org_id = '${org.id}')`
    const blocks = `SELECT place FROM event_block WHERE place >> 36 = ${num} ORDER BY place`
    const sql = edits[edit]!.sql.replaceAll('SECOND', `(${blocks} OFFSET 1 LIMIT 1)`)
      .replaceAll('NUM', num)
      .replaceAll('ORG', org.id)
    // The triggers that protect the audit trail stop nobody who owns the server.
    await cluster.sql(`SET search_path = sightglass; SET session_replication_role = replica; ${sql}`, name)
  }

  const admin = openDatabaseAdmin(url)
  const { faults } = await admin.verifyEvents()
  const trail = await admin.verifyAudit()
  for (const { what: edit, org } of orgs) {
    const faultTexts = [
      ...faults.filter(({ orgId }) => orgId === org.id).map(({ place, problem }) => `${place}: ${problem}`),
      ...trail.faults
        .filter(({ orgId }) => orgId === org.id)
        .map(({ position, entryId, kind }) => `position ${position} ${entryId} is ${kind}`),
    ]
    const expected = edits[edit]!.named.replaceAll('ORG', org.id)
    if (expected === '') expect([edit, ...faultTexts]).toEqual([edit])
    else expect([edit, ...faultTexts]).toContain(expected)
  }
}, 90_000)

test('without its newest events an organization is sound, until its last arrival number is raised', async () => {
  const { url, cluster, name } = await database('migrated')
  const store = await openStore({ folder: '', now: noon, shared: { url, node: 'one' } })
  const deletions: { [deletion: string]: (orgId: string) => Promise<unknown> } = {
    expire: (orgId) => store.events.expire({ orgId, receivedBeforeMs: noon + 60_000 }),
    site: (orgId) => store.events.removeSite({ orgId, siteId: 'closed', audit: makeAudit(orgId) }),
  }
  const orgs = Object.keys(deletions).map((deletion) => ({ what: deletion, org: makeOrg() }))
  for (const { what: deletion, org } of orgs) {
    await store.orgs.create({ org, audit: makeAudit(org.id) })
    for (const siteId of ['open', 'closed']) {
      const events = Array.from({ length: 200 }, (_, n) => makeEvent(`${siteId} ${n}`, { siteId }))
      await store.events.append(makeBatch(org.id, events))
    }
    await deletions[deletion]!(org.id)
  }
  const faults = async () => (await openDatabaseAdmin(url).verifyEvents()).faults
  const ends = `SELECT last_seq, deleted_seq, (SELECT count(*) FROM sightglass.event_block WHERE place >> 36 = num)
    FROM sightglass.event_org ORDER BY num`
  expect(await cluster.sql(ends, name)).toBe('400|400|0\n400|400|1')
  expect(await faults()).toEqual([])
  // From the next arrival on its block is the newest.
  await store.events.append(makeBatch(orgs[1]!.org.id, [makeEvent('next')]))
  expect(await faults()).toEqual([])
  await store.close()
  await cluster.sql('UPDATE sightglass.event_org SET last_seq = last_seq + 5', name)
  expect((await faults()).map(({ orgId, problem }) => [orgId, problem])).toEqual(
    orgs
      .map(({ org }, index) => [org.id, `says ${405 + index}, but no arrival after ${index * 401} is stored`])
      .toSorted(),
  )
}, 60_000)
