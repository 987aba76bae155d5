/** Whoever changes the audit trail in PostgreSQL, past its triggers, is found: each change by its kind and place. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { positionText } from '../../db/contract/audit.ts'
import { openConnection } from '../../db/postgres/connection/connection.ts'
import type { Database } from '../../db/sql/database.ts'
import { database } from '../support/postgres.ts'
import { makeAudit, makeOrg } from './make.ts'
import { openRecords, type RecordsStore } from './postgres-records.ts'

const entries = 6
let store: RecordsStore
/** As the owner of the tables. */
let owner: Database

beforeAll(async () => {
  const { url } = await database('migrated')
  store = await openRecords({ url })
  owner = openConnection({ url, node: 'owner', statementTimeoutMs: 10_000 })
})

afterAll(async () => {
  owner.close()
  await store.close()
})

async function chain(): Promise<string> {
  const orgId = makeOrg().id
  for (let n = 1; n <= entries; n++) await store.audit.append(makeAudit(orgId, { id: `${orgId}-${n}` }))
  return orgId
}

function pastTriggers(sql: string): void {
  owner.run(`BEGIN`)
  owner.run(`ALTER TABLE audit_entry DISABLE TRIGGER ALL; ${sql}; ALTER TABLE audit_entry ENABLE TRIGGER ALL`)
  owner.run('COMMIT')
}

const rowOf = (orgId: string, n: number) => `"orgId" = '${orgId}' AND position = '${positionText(n)}'`

const changes: { [name: string]: { sql(orgId: string): string; fault: object } } = {
  'an edited entry': {
    sql: (orgId) => `UPDATE audit_entry SET actor = 'nobody' WHERE ${rowOf(orgId, 3)}`,
    fault: { kind: 'edited', position: 3 },
  },
  'a deleted entry': {
    sql: (orgId) => `DELETE FROM audit_entry WHERE ${rowOf(orgId, 4)}`,
    fault: { kind: 'missing', position: 4 },
  },
  'the deletion of the newest entries': {
    sql: (orgId) => `DELETE FROM audit_entry WHERE "orgId" = '${orgId}' AND position > '${positionText(4)}'`,
    fault: { kind: 'cut', position: 5 },
  },
  'two entries that changed places': {
    sql: (orgId) =>
      `UPDATE audit_entry SET position = 'x' WHERE ${rowOf(orgId, 2)};
       UPDATE audit_entry SET position = '${positionText(2)}' WHERE ${rowOf(orgId, 3)};
       UPDATE audit_entry SET position = '${positionText(3)}' WHERE "orgId" = '${orgId}' AND position = 'x'`,
    fault: { kind: 'reordered', position: 2 },
  },
  'an entry that was stored again': {
    sql: (orgId) =>
      `UPDATE audit_entry SET rowid = (SELECT max(rowid) + 1000 FROM audit_entry) WHERE ${rowOf(orgId, 2)}`,
    fault: { kind: 'reordered', position: 3 },
  },
  'a head that was set back': {
    sql: (orgId) => `UPDATE audit_head SET count = count - 1 WHERE org_id = '${orgId}'`,
    fault: { kind: 'rewritten', position: entries },
  },
}

for (const [name, { sql, fault }] of Object.entries(changes)) {
  test(`${name} is found`, async () => {
    const orgId = await chain()
    const faultsOf = async () =>
      (await store.audit.verify([])).faults.filter((auditFault) => auditFault.orgId === orgId)
    expect(await faultsOf()).toEqual([])
    pastTriggers(sql(orgId))
    expect(await faultsOf()).toMatchObject([fault])
  })
}

test('a truncation that also resets the head is found by a head that was recorded elsewhere', async () => {
  const orgId = await chain()
  const headBefore = (await store.audit.heads())[orgId]!
  const hash = `(SELECT hash FROM audit_entry WHERE ${rowOf(orgId, entries - 1)})`
  pastTriggers(`UPDATE audit_head SET count = ${entries - 1}, hash = ${hash} WHERE org_id = '${orgId}';
    DELETE FROM audit_entry WHERE ${rowOf(orgId, entries)}`)
  const anchor = { orgId, ...headBefore, source: 'a checkpoint' }
  const faults = (await store.audit.verify([anchor])).faults.filter((fault) => fault.orgId === orgId)
  expect(faults).toMatchObject([{ kind: 'cut', position: entries }])
})
