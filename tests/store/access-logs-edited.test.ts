/** `verify` names rows of access logs that were edited in SQL. `postgres-edited.test.ts` has the same edits. */
import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { openDatabaseAdmin, openStore } from '../../db/open.ts'
import { tempDir } from '../support/temp-dir.ts'
import { accessEdits, linesBatch, someLog } from './access-log-cases.ts'
import { makeAudit, makeOrg, noon } from './make.ts'

test('an edited count or log is named with its organization, and no other', async () => {
  using dir = tempDir('edited')
  const store = await openStore({ folder: dir.path, now: noon })
  const orgs = ['nothing', ...Object.keys(accessEdits)].map((edit) => ({ what: edit, org: makeOrg() }))
  for (const { org } of orgs) {
    await store.orgs.create({ org, audit: makeAudit(org.id) })
    for (const source of ['log_a', 'log_b'])
      await store.events.append(
        linesBatch(org.id, someLog, 0, 8, { source, siteId: source === 'log_a' ? 'shop' : 'b' }),
      )
    while (!(await store.accessLogs.expire({ orgId: org.id, beforeMs: 0, now: 0 })).done);
  }
  await store.close()
  const db = new Database(dir.join('sightglass.db'))
  for (const { what: edit, org } of orgs)
    if (edit !== 'nothing') db.run(`${accessEdits[edit]!.sql.replaceAll('ORG', org.id)} AND site_id = 'shop'`)
  db.close()
  const { faults } = await openDatabaseAdmin(dir.path).verifyEvents()
  for (const { what: edit, org } of orgs) {
    const faultTexts = faults
      .filter(({ orgId }) => orgId === org.id)
      .map(({ place, problem }) => `${place}: ${problem}`)
    if (edit === 'nothing') expect(faultTexts).toEqual([])
    else expect([edit, ...faultTexts]).toContain(accessEdits[edit]!.named)
  }
})
