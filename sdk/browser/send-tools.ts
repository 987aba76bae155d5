/**
 * Sends the tool registry of a page to the relay: only what changed, the newest descriptor of each tool, and again
 * until the relay has it.
 */
import type { ToolChange } from '../client/client.ts'
import type { Problem } from '../client/problem.ts'
import type { Tool } from '../sync/intel-sync.ts'

export interface ToolSenderOptions {
  url: string
  /** Known when the exporter is attached. */
  publishableKey(): string
  report(problem: Problem): void
}

export interface ToolSender {
  change(change: ToolChange): void
  /** The page closes: what it has registered is no longer open, which is not the same as unregistered. */
  leave(): void
  close(): void
}

const namesMax = 1_000 // bounds the memory of a page that cannot send
const toolsPerRequest = 50
const requestCharsMax = 100_000
const pauseMsMax = 60_000

export function createToolSender({ url, publishableKey, report }: ToolSenderOptions): ToolSender {
  const pending = new Map<string, Tool | null>() // by name; null: unregistered
  const page = String(Math.random()).slice(2) // tells the pages of one relay apart
  let failures = 0
  let timer: ReturnType<typeof setTimeout> | null = null
  let isSending = false
  let isKnown = false // to the relay

  const schedule = (): void => {
    if (timer !== null || isSending || pending.size === 0) return
    const pauseMs = failures === 0 ? 0 : Math.min(pauseMsMax, 1_000 * 2 ** failures)
    timer = setTimeout(() => {
      timer = null
      void send()
    }, pauseMs)
  }
  const send = async (): Promise<void> => {
    isSending = true
    const batch = batchOf(pending)
    const tools = batch.flatMap(([, tool]) => tool ?? [])
    const removed = batch.flatMap(([name, tool]) => (tool === null ? [name] : []))
    const body = JSON.stringify({ publishableKey: publishableKey(), page, tools, removed })
    const refusal = await post(url, body)
    isSending = false
    if (refusal === 'retry') failures++
    else {
      failures = 0
      isKnown ||= refusal === null
      // A tool that changed meanwhile stays pending.
      for (const [name, tool] of batch) if (pending.get(name) === tool) pending.delete(name)
      if (refusal !== null) report(refusal)
    }
    schedule()
  }
  return {
    change({ tools, removed }) {
      for (const tool of tools) put(tool.name, tool)
      for (const name of removed) put(name, null)
      schedule()
    },
    leave() {
      const leaveMessage = { publishableKey: publishableKey(), page, tools: [], removed: [], left: true }
      if (isKnown) navigator.sendBeacon(url, JSON.stringify(leaveMessage))
    },
    close() {
      if (timer !== null) clearTimeout(timer)
      pending.clear()
    },
  }

  function put(name: string, tool: Tool | null): void {
    if (pending.has(name) || pending.size < namesMax) pending.set(name, tool)
  }
}

/** The oldest changes that fit into one request, at least one. */
function batchOf(pending: Map<string, Tool | null>): [string, Tool | null][] {
  const batch: [string, Tool | null][] = []
  let chars = 0
  for (const [name, tool] of pending) {
    chars += JSON.stringify(tool).length + name.length
    if (batch.length > 0 && (chars > requestCharsMax || batch.length >= toolsPerRequest)) break
    batch.push([name, tool])
  }
  return batch
}

/** Null when the relay has it. */
async function post(url: string, body: string): Promise<Problem | 'retry' | null> {
  let response: Response
  try {
    response = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
  } catch {
    return 'retry' // no connection
  }
  const { status } = response
  if (status === 429 || status >= 500) return 'retry'
  if (status >= 200 && status < 300) return null
  const answer = (await response.json().catch(() => null)) as { message?: unknown } | null
  const reason = typeof answer?.message === 'string' ? answer.message : `status ${status}`
  return { code: 'rejected', message: `The relay did not accept tools: ${reason}.`, status }
}
