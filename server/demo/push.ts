/** Pushes tools and site memory of the demo site, with versions in the past, unless they are already stored. */
import registry from './tools.github.json'
import { limits } from '../limits.ts'
import { memoryRecord } from '../api/registry/record.ts'
import { toolRecords } from '../api/registry/record.ts'
import { demoSiteId } from './event.ts'
import { demoMemory, type DemoPush } from './site-memory.ts'
import { dayMs } from './rhythm.ts'
import { demoTools } from './tools.ts'
import type { Store } from '../../db/contract/store.ts'

/** Pushes only once, because a second time would store old versions after new ones. */
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

/** A descriptor as a site pushes it (contract §5), marked as demo data. */
interface DemoDescriptor {
  name: string
  title: string
  description: string
  group: string
  page: string
  inputSchema: object
  annotations: object
  demo: true
}

/** The last nine tools arrive with the second push. Every ninth tool has a shorter description in the first. */
const laterTools = 9
const redescribedEvery = 9

/** Oldest first. The first push is older than all demo events, so that every call has a version of its tool. */
export function demoRegistry(nowMs: number): DemoPush<DemoDescriptor[]>[] {
  const tools = registry.tools.map(descriptor)
  const first = tools
    .slice(0, -laterTools)
    .map((tool, index) => (index % redescribedEvery === 0 ? earlier(tool) : tool))
  return [
    { atMs: nowMs - 31 * dayMs, pushed: first },
    { atMs: nowMs - 12 * dayMs, pushed: tools },
  ]
}

function descriptor(tool: (typeof registry.tools)[number], index: number): DemoDescriptor {
  const { name, description, inputSchema, annotations } = tool
  const page = demoTools[index]!.page
  return {
    ...{ name, title: annotations.title, description, group: page.slice(1), page },
    ...{ inputSchema, annotations, demo: true as const },
  }
}

/** The tool with a shorter description and without its last optional input. */
function earlier(tool: DemoDescriptor): DemoDescriptor {
  const { properties, ...schema } = tool.inputSchema as { properties?: object; required?: string[] }
  const inputs = Object.entries(properties ?? {})
  const optional = inputs.findLast(([name]) => !(schema.required ?? []).includes(name))
  return {
    ...tool,
    description: tool.description.split(/\n|(?<=\.) /)[0]!,
    inputSchema: { ...schema, properties: Object.fromEntries(inputs.filter((input) => input !== optional)) },
  }
}
