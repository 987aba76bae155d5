/** Refuses what a key without limits sends for sites that only keys naming them may write. */
import type { ApiKey, SiteStore } from '../../db/contract/store.ts'
import type { Issue } from '../errors.ts'
import { rejected, type Accepted } from './rejected.ts'

export function restrictedIssue(): Issue {
  const message = 'is a restricted site; only ingest keys that name it may write it'
  return { path: 'siteId', code: 'wrong_site', message }
}

/** A key limited to sites names each one it may write, so only one without limits can meet a restricted site. */
export async function isRestricted(
  store: { sites: Pick<SiteStore, 'restricted'> },
  key: ApiKey,
  siteId: string,
): Promise<boolean> {
  return key.siteIds.length === 0 && (await store.sites.restricted(key.orgId)).has(siteId)
}

export async function refuseRestricted(
  store: { sites: Pick<SiteStore, 'restricted'> },
  key: ApiKey,
  accepted: Accepted,
): Promise<Accepted> {
  const sites = key.siteIds.length === 0 ? await store.sites.restricted(key.orgId) : null
  if (sites === null || sites.size === 0 || !accepted.records.some(({ siteId }) => sites.has(siteId)))
    return accepted
  const left: Accepted = { ...accepted, records: [], positions: [], rejected: [...accepted.rejected] }
  accepted.records.forEach((record, at) => {
    const position = accepted.positions[at] ?? 0
    if (sites.has(record.siteId)) {
      left.rejected.push(rejected(position, record, [restrictedIssue()], record.json))
    } else {
      left.records.push(record)
      left.positions.push(position)
    }
  })
  left.rejected.sort((a, b) => a.index - b.index)
  return left
}
