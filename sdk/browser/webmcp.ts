/**
 * `captureWebMcp`: reports the WebMCP tools of a page, functions and forms, and their calls. Keeps the tool registry on
 * the appliance in step, by comparing what the page has registered with what was known.
 */
import { cleanText, recorderOf, type WebMcpOptions, type WebMcpRecorder } from './recorder.ts'
import type { ModelContext, PageWindow } from './model-context.ts'
import type { Client, ToolChange } from '../client/client.ts'
import type { Tool } from '../sync/intel-sync.ts'

export type { WebMcpOptions }

/** A tool as `getTools` returns it. */
interface RegisteredTool {
  name: string
  title?: string
  description?: string
  inputSchema?: unknown
  annotations?: object | null
  window?: unknown
}

const toolsMax = 1_000
const changesMax = 1_000 // events about the registry of one page view
const schemaCharsMax = 60_000
const settleMs = 200 // a page registers its tools one after the other

/**
 * Records the tools of this page and their calls: `tool.surfaced`, `tool.unregistered` and `tool.executed`. Keeps the
 * registry on the appliance in step, if the relay has `sync`. Returns a function that ends it. Never throws.
 */
export function captureWebMcp(client: Client, options?: WebMcpOptions): () => void {
  if (typeof document === 'undefined') return () => {} // rendered on a server
  return captureOn(window as PageWindow, client, options)
}

export function captureOn(
  page: PageWindow,
  client: Pick<Client, 'trace' | 'tools'>,
  options?: WebMcpOptions,
): () => void {
  const recorder = recorderOf(page)
  const disconnect = recorder.connect(client.trace, options)
  let isStopped = false
  watchRegistry(page, recorder, (change) => {
    if (!isStopped) client.tools(change)
  })
  return () => {
    isStopped = true
    disconnect()
  }
}

function watchRegistry(
  page: PageWindow,
  recorder: WebMcpRecorder,
  report: (change: ToolChange) => void,
): void {
  let context: ModelContext | null = null
  let isDue = false
  let changesLeft = changesMax
  const jsonByName = new Map<string, string>() // JSON by name
  const note = (type: string, name: string, metadata: object): void => {
    if (changesLeft-- > 0) recorder.trace({ type, tool: cleanText(name, 200), metadata: { ...metadata } })
  }
  const compare = (registeredTools: unknown[]): void => {
    const formNames = new Set([...page.document.forms].map((form) => form.getAttribute('toolname')))
    const currentTools = registeredTools
      .flatMap((registeredTool) => toolOf(registeredTool, formNames) ?? [])
      .slice(0, toolsMax)
    const names = new Set(currentTools.map(({ name }) => name))
    const tools = currentTools.filter((tool) => {
      const json = JSON.stringify(tool)
      const previousJson = jsonByName.get(tool.name)
      if (previousJson === json) return false
      jsonByName.set(tool.name, json)
      note('tool.surfaced', tool.name, previousJson === undefined ? {} : { change: 'changed' })
      return true
    })
    const removed = [...jsonByName.keys()].filter((name) => !names.has(name))
    for (const name of removed) {
      jsonByName.delete(name)
      note('tool.unregistered', name, {})
    }
    if (tools.length + removed.length > 0) report({ tools, removed })
  }
  const refresh = async (): Promise<void> => {
    isDue = false
    try {
      const registeredTools =
        context?.getTools === undefined ? [...recorder.own.values()] : await context.getTools()
      compare(registeredTools.filter((tool) => isOfPage(tool, page)))
    } catch {
      // Not allowed here, by a permissions policy or origin isolation.
    }
  }
  const schedule = (): void => {
    if (isDue) return
    isDue = true
    page.setTimeout(() => void refresh(), settleMs)
  }
  recorder.watch((modelContext) => {
    context = modelContext
    context.addEventListener?.('toolchange', schedule)
    schedule()
  }, schedule)
}

/** Tools of frames report themselves. */
function isOfPage(tool: unknown, page: PageWindow): boolean {
  const owner = (tool as RegisteredTool).window
  return owner === undefined || owner === page
}

/** The descriptor as the appliance stores it; null for an invalid tool. */
function toolOf(registeredTool: unknown, formNames: Set<string | null>): Tool | null {
  try {
    const { name, title, description, inputSchema, annotations } = registeredTool as RegisteredTool
    if (typeof name !== 'string' || name === '') return null
    const schemaText = typeof inputSchema === 'string' ? inputSchema : (JSON.stringify(inputSchema) ?? '')
    const schema: unknown =
      schemaText === '' || schemaText.length > schemaCharsMax ? undefined : JSON.parse(schemaText)
    return {
      name: cleanText(name, 128),
      ...(title ? { title: cleanText(String(title), 200) } : {}),
      ...(description ? { description: cleanText(String(description), 32_000) } : {}),
      ...(typeof schema === 'object' && schema !== null ? { inputSchema: schema } : {}),
      ...(annotations ? { annotations: { ...annotations } } : {}),
      ...(formNames.has(name) ? { declarative: true } : {}),
    }
  } catch {
    return null // a schema that is not JSON
  }
}
