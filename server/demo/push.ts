/** Pushes tools and site memory of the demo site, with versions in the past, unless they are already stored. */
import registry from './tools.github.json'
import { limits } from '../limits.ts'
import { memoryRecord, toolRecords } from '../api/registry/record.ts'
import { demoSiteId } from './event.ts'
import { atOnce } from '../http/slices.ts'
import { demoTools } from './tools.ts'
import type { Store } from '../../db/contract/store.ts'
import { dayMs } from '../../db/contract/units.ts'

/** Pushes only once, because a second time would store old versions after new ones. */
export async function pushDemo(
  { registry }: Pick<Store, 'registry'>,
  orgId: string,
  nowMs: number,
): Promise<void> {
  const site = { orgId, siteId: demoSiteId }
  const { tools } = await registry.tools({
    orgId,
    siteIds: [demoSiteId],
    withRemoved: true,
    after: null,
    limit: 1,
    bytesMax: limits.registryPageBytesMax,
  })
  if (tools.length === 0) {
    for (const { atMs, pushed } of demoRegistry(nowMs)) {
      await registry.pushTools({
        ...site,
        tools: atOnce(toolRecords(pushed)),
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
      ...atOnce(memoryRecord({ ...pushed }, null)),
      now: atMs,
      sitesMax: limits.sitesPerOrgMax,
      versionsMax: limits.memoryVersionsMax,
    })
  }
}

/** What is pushed, and when. */
interface DemoPush<T> {
  atMs: number
  pushed: T
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
    name,
    title: annotations.title,
    description,
    group: page.slice(1),
    page,
    inputSchema,
    annotations,
    demo: true as const,
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

interface DemoSnapshot {
  demo: true
  siteMap: { pages: object[]; navigation?: object }
  policies: { [name: string]: string | string[] }
  workflows: object[]
  pageContexts?: object
}

/** Pages of the first snapshot of the site memory; `added` come later. */
const shop = [
  {
    path: '/',
    name: 'Home',
    purpose: 'Starts every visit: search, categories, offers of the week.',
    availableActions: ['search', 'open category'],
  },
  {
    path: '/products',
    name: 'Products',
    purpose: 'Lists everything that is for sale, filtered by category and price.',
    availableActions: ['filter', 'sort', 'open product'],
  },
  {
    path: '/products/kettle-2',
    name: 'Kettle 2',
    purpose: 'One product: price, stock, delivery time.',
    availableActions: ['add to cart', 'compare'],
  },
  { path: '/products/lamp-9', name: 'Lamp 9', availableActions: ['add to cart', 'compare'] },
  { path: '/categories/kitchen', name: 'Kitchen', purpose: 'Kettles, pans and knives.' },
  { path: '/faq', name: 'Questions', purpose: 'Answers what customers ask before they order.' },
]

const added = [
  { path: '/blog', name: 'Blog', purpose: 'Stories about how things are made.' },
  { path: '/docs/api', name: 'API', purpose: 'How partners order through the API.' },
  { path: '/account', name: 'Account', purpose: 'Orders and addresses; needs a linked identity.' },
  {
    path: '/checkout',
    name: 'Checkout',
    purpose: 'Address, delivery, payment; a person confirms.',
    availableActions: ['choose delivery', 'pay'],
  },
]

const workflows = [
  { name: 'Buy a product', steps: ['/products', '/products/{product}', '/checkout'], needs: 'linked' },
  { name: 'Ask for delivery time', steps: ['/products/{product}'], needs: 'nothing' },
]

const navigation = {
  main: ['/', '/products', '/categories/kitchen', '/faq'],
  footer: ['/blog', '/docs/api'],
}

/** Three snapshots of the site memory, oldest first, each fuller. The server computes the scores 50, 67 and 83. */
export function demoMemory(nowMs: number): DemoPush<DemoSnapshot>[] {
  const first: DemoSnapshot = {
    demo: true,
    siteMap: { pages: shop },
    policies: {
      returns: 'Unused goods may be returned within 30 days.',
      crawling: 'Public pages may be read and indexed. /account, /checkout and /admin are closed.',
    },
    workflows: workflows.slice(0, 1),
  }
  const second: DemoSnapshot = {
    ...first,
    siteMap: { pages: [...shop, ...added.slice(0, 2)], navigation },
    policies: {
      ...first.policies,
      privacy: 'No personal data is given to agents without a linked identity.',
    },
    workflows,
  }
  const third: DemoSnapshot = {
    ...second,
    siteMap: { pages: [...shop, ...added], navigation },
    policies: {
      ...second.policies,
      returns: 'Unused goods may be returned within 14 days.',
      payment: [
        'A person confirms every payment.',
        'Agents may prepare an order of up to 200 euros; above that a call is reviewed.',
      ],
    },
    pageContexts: {
      '/checkout': 'Prices include tax. Delivery to islands takes two days longer.',
      '/products': 'Stock is counted every five minutes.',
    },
  }
  return [
    { atMs: nowMs - 31 * dayMs, pushed: first },
    { atMs: nowMs - 16 * dayMs, pushed: second },
    { atMs: nowMs - 4 * dayMs, pushed: third },
  ]
}
