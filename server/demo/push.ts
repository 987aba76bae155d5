/** Pushes the demo site's tools and memory with the times they are told to have come at, unless they are there. */
import type { Store } from '../../db/contract/store.ts'
import { limits } from '../limits.ts'
import { memoryRecord } from '../api/site-memory/record.ts'
import { toolRecords } from '../api/tools/records.ts'
import { demoSiteId } from './event.ts'
import { demoRegistry } from './registry.ts'
import { demoMemory } from './site-memory.ts'

/** Doing it again would put old versions on top of new ones. */
export async function pushDemo(
  { registry }: Pick<Store, 'registry'>,
  orgId: string,
  nowMs: number,
): Promise<void> {
  const site = { orgId, siteId: demoSiteId }
  const { tools } = await registry.tools({
    ...{ orgId, siteIds: [demoSiteId], withRemoved: true, after: null },
    ...{ limit: 1, bytesMax: limits.registryPageBytesMax },
  })
  if (tools.length === 0) {
    for (const { atMs, pushed } of demoRegistry(nowMs)) {
      await registry.pushTools({
        ...site,
        tools: toolRecords(pushed, pushed),
        replace: true,
        now: atMs,
        sitesMax: limits.sitesPerOrgMax,
        toolsMax: limits.toolsPerSiteMax,
        versionsMax: limits.toolVersionsMax,
      })
    }
  }
  if ((await registry.memory({ ...site, version: null })) !== null) return
  for (const { atMs, pushed } of demoMemory(nowMs)) {
    await registry.pushMemory({
      ...site,
      ...memoryRecord({ ...pushed }, null, JSON.stringify(pushed)),
      now: atMs,
      sitesMax: limits.sitesPerOrgMax,
      versionsMax: limits.memoryVersionsMax,
    })
  }
}
