/** Opens the data folder for whoever holds it, server or verb; an empty one gets the organization `default`. */
import { openStore } from '../../db/open.ts'
import type { Org, Store } from '../../db/store.ts'
import type { Clock } from '../clock.ts'
import { newId } from '../ids.ts'
import { applianceOrgId } from './org.ts'

export function openDataFolder(dataDir: string, clock: Clock): Promise<Store> {
  const now = clock.now()
  const org: Org = { id: newId('org'), slug: 'default', name: 'Default', createdAtMs: now }
  const audit = {
    id: newId('aud'),
    orgId: applianceOrgId,
    actor: 'system',
    action: 'org.created',
    target: org.id,
    metadata: { name: org.name, slug: org.slug },
    occurredAtMs: now,
  }
  return openStore({ folder: dataDir, now, bootstrap: { org, audit } })
}
