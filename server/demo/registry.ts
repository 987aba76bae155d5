/** What the demo site pushes of its tools: the real registry, and as it was before it was last changed. */
import { dayMs } from './rhythm.ts'
import registry from './tools.github.json'
import { demoTools } from './tools.ts'

/** A descriptor as a site pushes it (contract §5), marked as demo data. */
export interface DemoDescriptor {
  name: string
  title: string
  description: string
  group: string
  page: string
  inputSchema: object
  annotations: object
  demo: true
}

export interface DemoPush<T> {
  atMs: number
  pushed: T
}

/** The last tools of the list came with the second push, every ninth was described more briefly before. */
const laterTools = 9
const describedAnew = 9

/** Oldest first. The first lies before the demo's first event, so that every call has a version that was in force. */
export function demoRegistry(nowMs: number): DemoPush<DemoDescriptor[]>[] {
  const tools = registry.tools.map(descriptor)
  const first = tools
    .slice(0, -laterTools)
    .map((tool, index) => (index % describedAnew === 0 ? earlier(tool) : tool))
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

/** The same tool with the first line of its description and without its last optional input. */
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
