/**
 * A `modelContext` for tests as the specification describes it: reads the fields of a tool in the order of their names,
 * rejects instead of throwing, and converts results to promises in either of the two ways that browsers do.
 */
import type { ModelContext } from './model-context.ts'

interface Registered {
  name: string
  title: string
  description: string
  inputSchema: string
  annotations: object | undefined
  execute: (input: unknown, options: { signal: AbortSignal }) => unknown
}

export type TestModelContext = ModelContext &
  EventTarget & {
    registerTool(tool: unknown, options?: { signal?: AbortSignal }): Promise<void>
    getTools(): Promise<{ name: string; inputSchema: string }[]>
    executeTool(name: string, input: unknown, options?: { signal?: AbortSignal }): Promise<string | null>
  }

/** `casts`: a promise is taken as it is, as in Chromium, or resolved into a new one, as in the specification. */
export function testModelContext({ casts }: { casts: boolean }): TestModelContext {
  const tools = new Map<string, Registered>()
  const events = new EventTarget()
  const changed = (): void => void setTimeout(() => events.dispatchEvent(new Event('toolchange')))
  const methods = {
    async registerTool(value: unknown, options: { signal?: AbortSignal } = {}): Promise<void> {
      const tool = read(value)
      if (tools.has(tool.name)) throw new DOMException('registered already', 'InvalidStateError')
      if (!/^[\w.-]{1,128}$/.test(tool.name)) throw new DOMException('bad name', 'InvalidStateError')
      const { signal } = options
      if (signal?.aborted === true) throw signal.reason
      tools.set(tool.name, tool)
      signal?.addEventListener('abort', () => {
        tools.delete(tool.name)
        changed()
      })
      changed()
    },
    async getTools() {
      return [...tools.values()].map(({ execute: _, ...tool }) => tool)
    },
    async executeTool(name: string, input: unknown, { signal }: { signal?: AbortSignal } = {}) {
      const tool = tools.get(name)
      if (tool === undefined) throw new DOMException('no such tool', 'NotFoundError')
      const { execute } = tool // called without `this`
      const controller = new AbortController()
      signal?.addEventListener('abort', () => controller.abort(signal.reason))
      const value = execute(JSON.parse(JSON.stringify(input)), { signal: controller.signal })
      const result = await (casts ? Promise.resolve(value) : new Promise((resolve) => resolve(value)))
      return JSON.stringify(result) ?? null
    },
  }
  // On a prototype, as in a browser.
  return Object.setPrototypeOf(events, Object.setPrototypeOf(methods, EventTarget.prototype))
}

/** Converts a dictionary (Web IDL): each field is read once, in the order of names. */
function read(value: unknown): Registered {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null)
    throw new TypeError('not an object')
  const tool = value as { [name: string]: unknown }
  const annotations = tool['annotations']
  const description = required(tool['description'], 'description')
  const execute = tool['execute']
  if (typeof execute !== 'function') throw new TypeError('execute is not a function')
  const schema = tool['inputSchema']
  const name = required(tool['name'], 'name')
  const title = tool['title']
  return {
    name,
    description,
    title: title === undefined ? '' : `${title as string}`,
    inputSchema: schema === undefined ? '' : JSON.stringify(schema),
    annotations: annotations as object | undefined,
    execute: execute as Registered['execute'],
  }
}

function required(value: unknown, name: string): string {
  if (value === undefined) throw new TypeError(`${name} is missing`)
  return `${value as string}` // throws for a symbol
}
