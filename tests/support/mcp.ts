/** Asks an appliance over MCP in tests: messages of both eras, and questions with their structured answers. */
import type { ExploreAnswer } from '../../server/api/explore/routes.ts'
import type { TestServer } from './server.ts'

export const modernVersion = '2026-07-28'

export interface RpcAnswer {
  status: number
  id?: unknown
  result?: { [field: string]: unknown }
  error?: { code: number; message: string; data?: { [field: string]: unknown } }
}

export interface Answered {
  filter: { [name: string]: unknown }
  range: { since: string; until: string | null }
  count: number | null
  complete: boolean
  link: string
  [field: string]: unknown
}

type Call = TestServer['call']

/** Sends one message; `headers` are added. A status without a JSON body has neither result nor error. */
export async function send(
  call: Call,
  key: string,
  message: unknown,
  headers: Record<string, string> = {},
): Promise<RpcAnswer> {
  const response = await call('/mcp', { key, body: message, headers })
  const text = await response.text()
  return { ...(text === '' ? {} : (JSON.parse(text) as object)), status: response.status }
}

export const modernMeta = {
  'io.modelcontextprotocol/protocolVersion': modernVersion,
  'io.modelcontextprotocol/clientInfo': { name: 'test-client', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
}

/** A request of the stateless revision with the headers that it needs. */
export function modern(call: Call, key: string, method: string, params: { [name: string]: unknown } = {}) {
  const name = params['name']
  return send(
    call,
    key,
    { jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: modernMeta } },
    {
      'mcp-protocol-version': modernVersion,
      'mcp-method': method,
      ...(typeof name === 'string' ? { 'mcp-name': name } : {}),
    },
  )
}

/** The result of a tool, whatever it is. */
export async function callTool(call: Call, key: string, name: string, args: object = {}) {
  const params = { name, arguments: args }
  return send(call, key, { jsonrpc: '2.0', id: 7, method: 'tools/call', params })
}

/** The structured answer of a tool; throws for any other. */
export async function ask(call: Call, key: string, name: string, args: object = {}): Promise<Answered> {
  const { result, error } = await callTool(call, key, name, args)
  if (result === undefined || result['isError'] === true)
    throw new Error(`${name}: ${JSON.stringify(result ?? error)}`)
  return result['structuredContent'] as Answered
}

/** The text of an answer that names a mistake. */
export async function mistake(call: Call, key: string, name: string, args: object = {}): Promise<string> {
  const { result } = await callTool(call, key, name, args)
  if (result?.['isError'] !== true) throw new Error(`${name} found no mistake: ${JSON.stringify(result)}`)
  return (result['content'] as { text: string }[])[0]!.text
}

const hourMs = 3_600_000

/** The events that GET /v1/explore counts in the whole hours to which the other counts round a range. */
export async function explored(
  call: Call,
  key: string,
  { since, until }: { since: string; until?: string },
  filter: { [name: string]: string[] | undefined },
): Promise<number> {
  const hour = (time: string) => new Date(Math.floor(Date.parse(time) / hourMs) * hourMs).toISOString()
  const times = { since: hour(since), ...(until !== undefined && { until: hour(until) }) }
  if (times.since === times.until) return 0 // Explore refuses empty ranges
  const filters = Object.entries(filter).flatMap(([name, values]) =>
    (values ?? []).map((value) => ['filter', `${name}:${value}`]),
  )
  const query = new URLSearchParams([...Object.entries(times), ...filters])
  const answer = await call(`/v1/explore?${query}`, { key })
  if (answer.status !== 200) throw new Error(`${query}: ${answer.status} ${await answer.text()}`)
  return ((await answer.json()) as ExploreAnswer).all.total!
}
