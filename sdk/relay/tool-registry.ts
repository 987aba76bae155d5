/**
 * The tools that pages report to a relay, and what of them the appliance has. Many visitors have the same tools open:
 * only the first report is pushed. Descriptors come from browsers, so each is checked and bounded.
 */
import { unref, IntelError } from '../wire/retry.ts'
import type { OnError } from '../client/problem.ts'
import type { IntelSync, Tool } from '../sync/intel-sync.ts'

export interface ToolRegistryOptions {
  sync: Pick<IntelSync, 'pushTools'>
  accept: ((tool: Tool) => boolean) | undefined
  report: OnError
  nowMs(): number
}

export interface ToolRegistry {
  /** `page` tells the open pages apart. Returns the number of accepted changes. */
  change(page: string, tools: unknown[], removed: unknown[]): number
  /** The page closes. Its tools stay enabled: the next page registers them again. */
  leave(page: string): void
  /** Pushes at once. False when the appliance does not have all changes. */
  flush(): Promise<boolean>
}

interface Entry {
  tool: Tool
  /** The descriptor as JSON, as the appliance should have it and as it has it. */
  wanted: string
  sent: string
  /** Open pages that have it registered, with the time of their report, oldest first. */
  holders: Map<string, number>
  changesLeft: number
  refilledMs: number
}

const namesMax = 1_000
const holdersMax = 32
const holderMs = 30 * 60_000 // a page may close without a word
const gatherMs = 200
const pushMax = 100 // tools of at most 64 KiB: below the 8 MiB of a request
const changesMax = 10 // per tool at once; pages that disagree must not fill its history
const changeMs = 6 * 60_000 // one more after each
const retryMs = 30_000

export function createToolRegistry({ sync, accept, report, nowMs }: ToolRegistryOptions): ToolRegistry {
  const entries = new Map<string, Entry>()
  let timer: ReturnType<typeof setTimeout> | null = null
  let pushing: Promise<boolean> | null = null

  const schedule = (ms: number): void => {
    if (timer !== null || pushing !== null) return
    timer = unref(
      setTimeout(() => {
        timer = null
        void flush()
      }, ms),
    )
  }
  const flush = (): Promise<boolean> => {
    pushing ??= pushAll().then((isDone) => {
      pushing = null
      if (isDone && changed().length > 0) schedule(gatherMs)
      else if (
        [...entries.values()].some(({ wanted: wantedJson, sent: sentJson }) => wantedJson !== sentJson)
      )
        schedule(retryMs)
      return isDone
    })
    return pushing
  }
  const changed = (): Entry[] =>
    [...entries.values()].filter((entry) => entry.wanted !== entry.sent && mayChange(entry, nowMs()))
  const pushAll = async (): Promise<boolean> => {
    for (let due = changed(); due.length > 0; due = changed())
      if (!(await push(due.slice(0, pushMax), sync, report))) return false
    return true
  }
  return {
    change(page, tools, removed) {
      const ms = nowMs()
      let accepted = 0
      for (const descriptor of tools) {
        const tool = toolOf(descriptor)
        if (tool === null || !isAccepted(tool, accept)) continue
        if (!entries.has(tool.name) && entries.size >= namesMax) continue
        accepted++
        register(entries, tool, page, ms)
      }
      for (const name of removed) {
        const entry = typeof name === 'string' ? entries.get(name) : undefined
        if (entry === undefined) continue
        accepted++
        unregister(entry, page, ms)
      }
      if (accepted > 0) schedule(gatherMs)
      return accepted
    },
    leave(page) {
      for (const { holders } of entries.values()) holders.delete(page)
    },
    flush,
  }
}

/** False when the appliance may accept the same later. */
async function push(due: Entry[], sync: ToolRegistryOptions['sync'], report: OnError): Promise<boolean> {
  const texts = due.map(({ wanted: wantedJson }) => wantedJson)
  try {
    await sync.pushTools(texts.map((text) => JSON.parse(text) as Tool))
  } catch (error) {
    const { status = null, issues = [] } = error instanceof IntelError ? error : {}
    if (issues.length > 0 && due.length > 1) {
      for (const entry of due) if (!(await push([entry], sync, report))) return false
      return true
    }
    const message = `The appliance did not accept tools: ${error instanceof Error ? error.message : 'unknown error'}.`
    report({ code: status === null ? 'unreachable' : 'rejected', message, cause: error, count: due.length })
    if (status !== 400 && status !== 413 && status !== 422) return false
    // Sent again when they change.
  }
  due.forEach((entry, index) => confirm(entry, texts[index]!))
  return true
}

function isAccepted(tool: Tool, accept: ToolRegistryOptions['accept']): boolean {
  try {
    return accept?.(tool) ?? true
  } catch {
    return false
  }
}

function register(entries: Map<string, Entry>, tool: Tool, page: string, ms: number): void {
  const empty = { sent: '', holders: new Map<string, number>(), changesLeft: changesMax, refilledMs: ms }
  const entry = entries.get(tool.name) ?? { tool, wanted: '', ...empty }
  entries.set(tool.name, entry)
  entry.tool = tool
  entry.wanted = JSON.stringify(tool)
  entry.holders.delete(page)
  entry.holders.set(page, ms)
  if (entry.holders.size > holdersMax) entry.holders.delete(entry.holders.keys().next().value ?? page)
}

/** A tool is disabled when no open page has it. */
function unregister(entry: Entry, page: string, ms: number): void {
  entry.holders.delete(page)
  for (const [holder, sinceMs] of entry.holders) if (ms - sinceMs > holderMs) entry.holders.delete(holder)
  if (entry.holders.size === 0) entry.wanted = JSON.stringify({ ...entry.tool, enabled: false })
}

/** Later changes wait, and only the newest of them is pushed. */
function mayChange(entry: Entry, ms: number): boolean {
  const refill = Math.floor((ms - entry.refilledMs) / changeMs)
  if (refill > 0) {
    entry.changesLeft = Math.min(changesMax, entry.changesLeft + refill)
    entry.refilledMs += refill * changeMs
  }
  return entry.changesLeft > 0
}

function confirm(entry: Entry, text: string): void {
  entry.sent = text
  entry.changesLeft--
}

const toolBytesMax = 64 * 1024
const depthMax = 24 // the appliance accepts 32 for the whole body

/** The known fields of a descriptor within the limits of the appliance, which rejects a push as a whole. */
function toolOf(value: unknown): Tool | null {
  if (!isObject(value)) return null
  const { name, title, description, inputSchema, annotations, declarative } = value
  if (typeof name !== 'string' || name === '' || [...name].length > 128) return null
  const tool = {
    name,
    ...(typeof title === 'string' ? { title: title.slice(0, 200) } : {}),
    ...(typeof description === 'string' ? { description: description.slice(0, 32_000) } : {}),
    ...(isObject(inputSchema) && depthOf(inputSchema) <= depthMax ? { inputSchema } : {}),
    ...(isObject(annotations) && depthOf(annotations) <= depthMax ? { annotations } : {}),
    ...(declarative === true ? { declarative } : {}),
  }
  // A pair is an escaped backslash. What else is escaped so cannot be stored: NUL and unpaired surrogates.
  const text = JSON.stringify(tool).replace(
    /(\\\\)|\\u(?:0000|d[89a-f][0-9a-f]{2})/g,
    (_, pair: string | undefined) => pair ?? '\ufffd',
  )
  return new TextEncoder().encode(text).length > toolBytesMax ? null : (JSON.parse(text) as Tool)
}

function depthOf(value: unknown): number {
  let depth = 0
  for (let level = [value]; level.length > 0 && depth <= depthMax; depth++)
    level = level.flatMap((node) => (typeof node === 'object' && node !== null ? Object.values(node) : []))
  return depth
}

function isObject(value: unknown): value is { [field: string]: unknown } {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
