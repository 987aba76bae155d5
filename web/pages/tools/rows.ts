/** Rows of the tool table: the registry joined with calls, token cost per page, and the page's filters. */
import type { Quantiles, ToolCalls } from '../../api/api.ts'
import type { JsonObject, Tool } from '../../api/registry-api.ts'
import { type Finding, lint } from './lint.ts'

export interface ToolRow {
  siteId: string
  name: string
  title: string | null
  page: string // '' if the tool has no page
  group: string
  enabled: boolean
  tokens: number
  estimated: boolean
  calls: number
  before: number // in the previous period
  errors: number
  blocked: number
  lastHour: string | null
  took: Quantiles | null // null: no call had a duration
  version: number
  changedAt: string
  findings: Finding[]
  registered: boolean // false: called, but not in any registry
  isRest?: true // calls without a tool name, or of a tool without counts of its own
}

export interface PageCost {
  siteId: string
  page: string
  tools: number
  tokens: number // of enabled tools, because only they reach an agent
  estimated: boolean // true if at least one value is estimated
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
const countOf = (outcomes: { [outcome: string]: number }, name: string): number =>
  Object.hasOwn(outcomes, name) ? (outcomes[name] ?? 0) : 0

const key = (siteId: string, name: string): string => JSON.stringify([siteId, name])

/** Registered tools, then called names that are not registered. */
export function toolRows(tools: Tool[], calls: ToolCalls | null): ToolRow[] {
  const callsByTool = new Map((calls?.rows ?? []).map((row) => [key(row.siteId, row.name ?? ''), row]))
  const rows = tools.map((tool) => {
    const call = callsByTool.get(key(tool.siteId, tool.name))
    callsByTool.delete(key(tool.siteId, tool.name))
    return rowOf(tool, call)
  })
  for (const call of callsByTool.values()) {
    if (call.name === null || call.count === 0) continue
    rows.push(rowOf(unregistered(call.siteId, call.name), call, false))
  }
  return calls === null ? rows : withRest(rows, calls)
}

/** A row for all other calls, so that the rows add up to the calls of the range. */
function withRest(rows: ToolRow[], { executed }: ToolCalls): ToolRow[] {
  const remainder = rows.reduce((total, row) => total - row.calls, executed.count)
  if (remainder <= 0) return rows
  const previousRemainder = Math.max(
    0,
    rows.reduce((total, row) => total - row.before, executed.before),
  )
  const row = rowOf(unregistered('', '(other or no tool)'), undefined, false)
  return [...rows, { ...row, calls: remainder, before: previousRemainder, isRest: true }]
}

type Call = ToolCalls['rows'][number]

function rowOf(tool: Tool, call: Call | undefined, registered = true): ToolRow {
  const descriptor: JsonObject = tool.tool
  return {
    siteId: tool.siteId,
    name: tool.name,
    title: textOf(descriptor['title']) || null,
    page: textOf(descriptor['page']),
    group: textOf(descriptor['group']),
    enabled: tool.enabled,
    tokens: tool.tokens,
    estimated: tool.tokensEstimated,
    calls: call?.count ?? 0,
    before: call?.before ?? 0,
    errors: countOf(call?.outcomes ?? {}, 'error'),
    blocked: countOf(call?.outcomes ?? {}, 'blocked'),
    lastHour: call?.lastHour ?? null,
    took: call?.took ?? null,
    version: tool.version,
    changedAt: tool.changedAt,
    findings: registered ? lint(tool.name, descriptor) : [],
    registered,
  }
}

function unregistered(siteId: string, name: string): Tool {
  return {
    siteId,
    name,
    enabled: true,
    tokens: 0,
    tokensEstimated: false,
    version: 0,
    firstSeenAt: '',
    changedAt: '',
    removedAt: null,
    tool: {},
  }
}

/** The tokens that an agent reads on each page, most first. */
export function pageCosts(rows: ToolRow[]): PageCost[] {
  const pages = new Map<string, PageCost>()
  for (const row of rows) {
    if (!row.registered || !row.enabled) continue
    const pageKey = key(row.siteId, row.page)
    const cost = pages.get(pageKey) ?? {
      siteId: row.siteId,
      page: row.page,
      tools: 0,
      tokens: 0,
      estimated: false,
    }
    pages.set(pageKey, {
      ...cost,
      tools: cost.tools + 1,
      tokens: cost.tokens + row.tokens,
      estimated: cost.estimated || row.estimated,
    })
  }
  return [...pages.values()].sort((a, b) => b.tokens - a.tokens || (a.page < b.page ? -1 : 1))
}

const isNeverCalled = (row: ToolRow): boolean => row.registered && row.enabled && row.calls === 0

interface ToolSummary {
  tools: number
  disabled: number
  tokens: number
  estimated: boolean
  never: number
  neverTokens: number
  findings: number // tools with at least one finding
}

export function summaryOf(rows: ToolRow[]): ToolSummary {
  const registered = rows.filter((row) => row.registered)
  const enabled = registered.filter((row) => row.enabled)
  const never = registered.filter(isNeverCalled)
  const sum = (summedRows: ToolRow[]): number => summedRows.reduce((total, row) => total + row.tokens, 0)
  return {
    tools: registered.length,
    disabled: registered.length - enabled.length,
    tokens: sum(enabled),
    estimated: enabled.some((row) => row.estimated),
    never: never.length,
    neverTokens: sum(never),
    findings: registered.filter((row) => row.findings.length > 0).length,
  }
}

export type Show = 'all' | 'never' | 'findings' | 'unregistered'

interface ToolFilter {
  show: Show
  page: string | null // null: all pages
  text: string
}

export function toolFilterOf(query: URLSearchParams): ToolFilter {
  const show = query.get('show')
  return {
    show: show === 'never' || show === 'findings' || show === 'unregistered' ? show : 'all',
    page: query.get('page'),
    text: query.get('find') ?? '',
  }
}

const shows: { [show in Show]: (row: ToolRow) => boolean } = {
  all: () => true,
  never: isNeverCalled,
  findings: (row) => row.findings.length > 0,
  unregistered: (row) => !row.registered && !row.isRest,
}

export function filterTools(rows: ToolRow[], { show, page, text }: ToolFilter): ToolRow[] {
  const part = text.trim().toLowerCase()
  return rows.filter(
    (row) =>
      shows[show](row) &&
      (!row.isRest || (page === null && part === '')) &&
      (page === null || row.page === page) &&
      (part === '' || `${row.name}\n${row.title ?? ''}\n${row.group}`.toLowerCase().includes(part)),
  )
}
