/** The sites' part of the store: which are restricted is asked with every ingest request, so it is kept in memory. */
import type { SiteStore } from '../../contract/store.ts'
import type { Threads } from '../threads/threads.ts'

const none: ReadonlySet<string> = new Set()

export function siteStore(
  { read, write }: Pick<Threads, 'read' | 'write'>,
  loaded: { orgId: string; siteId: string }[],
): SiteStore {
  const byOrg = new Map<string, Set<string>>()
  const put = (orgId: string, siteId: string): void => {
    const sites = byOrg.get(orgId) ?? new Set()
    byOrg.set(orgId, sites.add(siteId))
  }
  for (const { orgId, siteId } of loaded) put(orgId, siteId)
  return {
    list: (orgId) => read('sites.list', orgId),
    async change(command) {
      await write('sites.change', command)
      const { orgId, site } = command
      if (site.restricted) put(orgId, site.siteId)
      else byOrg.get(orgId)?.delete(site.siteId)
    },
    restricted: async (orgId) => byOrg.get(orgId) ?? none,
  }
}
