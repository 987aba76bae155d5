/** Opens a store on a PostgreSQL database of its own in place of a data folder, to run tests of the server on it. */
import { applianceOrgId } from '../../db/contract/audit.ts'
import type { Org, Store } from '../../db/contract/store.ts'
import { openStore } from '../../db/open.ts'
import type { Clock } from '../../server/clock.ts'
import { newId } from '../../server/ids.ts'
import { database } from './postgres.ts'

export async function openOnPostgres(folder: string, clock: Clock): Promise<Store> {
  const { url } = await database()
  const now = clock.now()
  const org: Org = { id: newId('org'), slug: 'default', name: 'Default', createdAtMs: now }
  const audit = {
    ...{ id: newId('aud'), orgId: applianceOrgId, actor: 'system', action: 'org.created', target: org.id },
    ...{ metadata: { name: org.name, slug: org.slug }, occurredAtMs: now },
  }
  return openStore({ folder, now, bootstrap: { org, audit }, shared: { url, node: 'test' } })
}
