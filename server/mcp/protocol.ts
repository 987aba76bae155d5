/**
 * Answers messages of the Model Context Protocol (JSON-RPC 2.0): revision 2026-07-28, in which each request says its
 * version, and 2025-11-25 to 2024-11-05, which begin with `initialize`. Every answer depends on its request alone. Null
 * is an absent parameter, because many clients write every field of their types.
 */
import { nestsDeeperThan } from '../text/json-scan.ts'
import { limits } from '../limits.ts'
import type { Schema } from '../http/validate.ts'

const modernVersion = '2026-07-28'
/** The newest first. */
const legacyVersions = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] as const
/** Its clients may send several messages in one body. Those of later revisions name theirs in a header. */
const batchVersion = '2025-03-26'
const batchMax = 20

const metaName = (name: string): string => `io.modelcontextprotocol/${name}`

export interface ToolListing {
  name: string
  title: string
  description: string
  inputSchema: Schema
  outputSchema?: Schema
  annotations?: {
    readOnlyHint: boolean
    destructiveHint: boolean
    idempotentHint: boolean
    openWorldHint: boolean
  }
}

export interface ToolResult {
  content: { type: string; [field: string]: unknown }[]
  structuredContent?: unknown
  isError?: boolean
}

/** What answers: identity, and the tools that this caller may use, in a fixed order. */
export interface McpServer {
  info: { name: string; title: string; version: string }
  instructions: string
  tools: readonly ToolListing[]
  /** `client` is the name that the caller gives itself; null when it gives none. */
  call(tool: string, args: { [name: string]: unknown }, client: string | null): Promise<ToolResult>
}

export interface Reply {
  status: number // of HTTP; another transport ignores it
  body: Fields | Fields[] | null // null: nothing is sent
}

/** Codes of JSON-RPC and of the protocol. */
export const rpcCodes = {
  parse: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internal: -32603,
  headerMismatch: -32020,
  unsupportedVersion: -32022,
} as const

export class RpcError extends Error {
  readonly code: number
  readonly status: number
  readonly data: unknown
  constructor(
    code: number,
    message: string,
    { status = 200, data }: { status?: number; data?: unknown } = {},
  ) {
    super(message)
    this.name = 'RpcError'
    this.code = code
    this.status = status
    this.data = data
  }
}

interface Fields {
  [name: string]: unknown
}

type Id = string | number

interface Request {
  method: string
  params: Fields
  meta: Fields
}

type Headers = Pick<globalThis.Headers, 'get'>

/**
 * Answers one message, or a batch of them. `headers` are those of the HTTP request; null over stdio, which has none.
 * Other errors than `RpcError` pass.
 */
export async function answerMessage(
  server: McpServer,
  message: unknown,
  headers: Headers | null,
): Promise<Reply> {
  if (!Array.isArray(message)) return answerOne(server, message, headers)
  const version = headers?.get('mcp-protocol-version') ?? batchVersion
  if (version !== batchVersion || message.length === 0 || message.length > batchMax) {
    const text = `Send one message per request. Only ${batchVersion} has batches, of 1 to ${batchMax} messages.`
    return errorReply(new RpcError(rpcCodes.invalidRequest, text, { status: 400 }), null)
  }
  const answers: Fields[] = []
  for (const item of message) {
    const { body } = await answerOne(server, item, headers)
    if (body !== null) answers.push(body)
  }
  return answers.length === 0 ? { status: 202, body: null } : { status: 200, body: answers }
}

interface OneReply extends Reply {
  body: Fields | null
}

async function answerOne(server: McpServer, message: unknown, headers: Headers | null): Promise<OneReply> {
  const id = idOf(message)
  try {
    const request = readRequest(message)
    if (id === null) return { status: 202, body: null } // a notification
    const isModern = readEra(request, headers)
    const result = isModern ? await modernResult(server, request) : await legacyResult(server, request)
    return { status: 200, body: { jsonrpc: '2.0', id, result } }
  } catch (thrown) {
    if (thrown instanceof RpcError) return errorReply(thrown, id)
    throw thrown
  }
}

export function errorReply({ code, message, data, status }: RpcError, id: Id | null): OneReply {
  const error = { code, message, ...(data === undefined ? {} : { data }) }
  return { status, body: { jsonrpc: '2.0', ...(id === null ? {} : { id }), error } }
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Null for a notification, and for a message whose id cannot be read. */
function idOf(message: unknown): Id | null {
  const id = isFields(message) ? message['id'] : undefined
  return typeof id === 'string' || Number.isInteger(id) ? (id as Id) : null
}

/** The message of a text, for `answerMessage`. Throws an `RpcError` when it is not JSON, or nests too deeply. */
export function parseMessage(text: string): unknown {
  // Before it is parsed, because the parser needs 80 ms for a body of brackets.
  if (nestsDeeperThan(text, limits.jsonDepthMax)) {
    const message = `The message is nested deeper than ${limits.jsonDepthMax} levels.`
    throw new RpcError(rpcCodes.invalidRequest, message, { status: 400 })
  }
  try {
    return JSON.parse(text) as unknown
  } catch {
    throw new RpcError(rpcCodes.parse, 'The body is not valid JSON.', { status: 400 })
  }
}

function readRequest(message: unknown): Request {
  const invalid = (text: string) => new RpcError(rpcCodes.invalidRequest, text, { status: 400 })
  if (!isFields(message) || message['jsonrpc'] !== '2.0')
    throw invalid('The body must be one JSON-RPC 2.0 message.')
  const { method } = message
  const params = message['params'] ?? {}
  if (typeof method !== 'string') throw invalid('The message has no method. The server sends no requests.')
  if (Object.hasOwn(message, 'id') && idOf(message) === null)
    throw invalid('id must be a string or an integer.')
  if (!isFields(params))
    throw new RpcError(rpcCodes.invalidParams, 'params must be an object.', { status: 400 })
  return { method, params, meta: isFields(params['_meta']) ? params['_meta'] : {} }
}

/** Whether the request is of the stateless revision. Throws for a request that is of none. */
function readEra(request: Request, headers: Headers | null): boolean {
  const { meta } = request
  const inMeta = meta[metaName('protocolVersion')] ?? undefined
  const inHeader = headers?.get('mcp-protocol-version') ?? null
  if (inMeta === undefined && inHeader !== modernVersion) {
    if (inHeader === null || legacyVersions.some((version) => version === inHeader)) return false
    throw unsupported(inHeader)
  }
  if (typeof inMeta !== 'string') throw missingMeta('protocolVersion')
  if (headers !== null) requireHeader('MCP-Protocol-Version', inHeader, inMeta)
  if (inMeta !== modernVersion) throw unsupported(inMeta)
  if (!isFields(meta[metaName('clientCapabilities')])) throw missingMeta('clientCapabilities')
  if (headers !== null) requireNames(request, headers)
  return true
}

function unsupported(requested: string): RpcError {
  return new RpcError(rpcCodes.unsupportedVersion, 'Unsupported protocol version', {
    status: 400,
    data: { supported: [modernVersion, ...legacyVersions], requested: requested.slice(0, 100) },
  })
}

function missingMeta(name: string): RpcError {
  const message = `params._meta must have "${metaName(name)}".`
  return new RpcError(rpcCodes.invalidParams, message, { status: 400 })
}

function requireNames({ method, params }: Request, headers: Headers): void {
  requireHeader('Mcp-Method', headers.get('mcp-method'), method)
  if (method !== 'tools/call') return
  const name = params['name']
  if (typeof name === 'string') requireHeader('Mcp-Name', decoded(headers.get('mcp-name')), name)
}

function requireHeader(name: string, value: string | null, expected: string): void {
  if (value === expected) return
  const problem =
    value === null ? `The header ${name} is missing` : `The header ${name} differs from the body`
  throw new RpcError(rpcCodes.headerMismatch, `Header mismatch: ${problem}.`, { status: 400 })
}

/** Values that a header cannot hold are sent as base64. */
function decoded(value: string | null): string | null {
  const encoded = value === null ? undefined : /^=\?base64\?([A-Za-z0-9+/]*={0,2})\?=$/.exec(value)?.[1]
  return encoded === undefined ? value : Buffer.from(encoded, 'base64').toString('utf8')
}

const capabilities = { tools: {} }
/** The tools of a key change only with its scopes and with a release. */
const listTtlMs = 300_000

async function modernResult(server: McpServer, request: Request): Promise<Fields> {
  const cached = { ttlMs: listTtlMs, cacheScope: 'private' }
  const common = { resultType: 'complete', _meta: { [metaName('serverInfo')]: server.info } }
  switch (request.method) {
    case 'server/discover': {
      const { info: serverInfo, instructions } = server
      return {
        ...common,
        supportedVersions: [modernVersion],
        capabilities,
        serverInfo,
        instructions,
        ...cached,
      }
    }
    case 'tools/list':
      return { ...common, tools: listed(server, request), ...cached }
    case 'tools/call':
      return {
        ...common,
        ...(await callTool(server, request, clientName(request.meta[metaName('clientInfo')]))),
      }
    default:
      throw unknownMethod(404)
  }
}

async function legacyResult(server: McpServer, request: Request): Promise<Fields> {
  switch (request.method) {
    case 'initialize': {
      const requestedVersion = request.params['protocolVersion']
      if (typeof requestedVersion !== 'string')
        throw new RpcError(rpcCodes.invalidParams, 'params.protocolVersion must be a string.')
      const protocolVersion = agreedVersion(requestedVersion)
      return { protocolVersion, capabilities, serverInfo: server.info, instructions: server.instructions }
    }
    case 'ping':
      return {}
    case 'tools/list':
      return { tools: listed(server, request) }
    case 'tools/call':
      return { ...(await callTool(server, request, null)) }
    default:
      throw unknownMethod(200)
  }
}

/** The version asked for, else the newest before it: a client knows those before its own. */
function agreedVersion(requestedVersion: string): string {
  return legacyVersions.find((version) => version <= requestedVersion) ?? legacyVersions.at(-1)!
}

function unknownMethod(status: number): RpcError {
  return new RpcError(rpcCodes.methodNotFound, 'Method not found', { status })
}

/** All tools fit on one page, so no cursor is ever valid. */
function listed({ tools }: McpServer, { params }: Request): readonly ToolListing[] {
  if ((params['cursor'] ?? '') !== '') throw new RpcError(rpcCodes.invalidParams, 'Invalid cursor.')
  return tools
}

async function callTool(server: McpServer, { params }: Request, client: string | null): Promise<ToolResult> {
  const { name } = params
  const args = params['arguments'] ?? {}
  if (typeof name !== 'string') throw new RpcError(rpcCodes.invalidParams, 'params.name must be a string.')
  if (!isFields(args)) throw new RpcError(rpcCodes.invalidParams, 'params.arguments must be an object.')
  return server.call(name, args, client)
}

function clientName(info: unknown): string | null {
  const name = isFields(info) ? info['name'] : undefined
  return typeof name === 'string' && name !== '' ? name : null
}
