/** The stdio transport of the protocol: one message per line, each passed to an appliance and answered on a line. */
import { limits } from '../limits.ts'
import { rpcCodes } from './protocol.ts'

/** Passes a message on; null when there is nothing to answer. A failure becomes an error of the protocol. */
export type Exchange = (message: unknown) => Promise<unknown>

interface Lines {
  exchange: Exchange
  input: ReadableStream<Uint8Array>
  write(line: string): void
}

/** Messages that are passed on at the same time. */
const exchangesMax = 16

/** Until the input ends and every message is answered. */
export async function serveLines({ exchange, input, write }: Lines): Promise<void> {
  const running = new Set<Promise<void>>()
  for await (const line of linesOf(input)) {
    if (line?.trim() === '') continue
    const work = answerLine(exchange, line).then((reply) => {
      if (reply !== null) write(JSON.stringify(reply))
    })
    running.add(work)
    void work.finally(() => running.delete(work))
    if (running.size >= exchangesMax) await Promise.race(running)
  }
  await Promise.all(running)
}

/** Null for a line that is too long. */
async function* linesOf(input: ReadableStream<Uint8Array>): AsyncGenerator<string | null> {
  const decoder = new TextDecoder()
  let remainder = ''
  let isSkipping = false
  for await (const bytes of input) {
    const lines = (remainder + decoder.decode(bytes, { stream: true })).split('\n')
    remainder = lines.pop() ?? ''
    for (const line of lines) {
      if (!isSkipping) yield line.length > limits.jsonBodyBytesMax ? null : line
      isSkipping = false
    }
    if (remainder.length <= limits.jsonBodyBytesMax) continue
    if (!isSkipping) yield null
    isSkipping = true
    remainder = ''
  }
  if (remainder !== '' && !isSkipping) yield remainder
}

async function answerLine(exchange: Exchange, line: string | null): Promise<unknown> {
  if (line === null) return failure(null, rpcCodes.invalidRequest, 'The message is too long.')
  let message: unknown
  try {
    message = JSON.parse(line)
  } catch {
    return failure(null, rpcCodes.parse, 'The line is not valid JSON.')
  }
  try {
    return await exchange(message)
  } catch (error) {
    const id = idOf(message)
    const text = error instanceof Error ? error.message : String(error)
    return id === null ? null : failure(id, rpcCodes.internal, text)
  }
}

function idOf(message: unknown): unknown {
  return fieldOf(message, 'id') ?? null
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null
    ? (value as { [name: string]: unknown })[name]
    : undefined
}

function failure(id: unknown, code: number, message: string) {
  return { jsonrpc: '2.0', ...(id === null ? {} : { id }), error: { code, message } }
}

const timeoutMs = 60_000

/** To an appliance over HTTP, with the headers that repeat parts of the message. */
export function httpExchange(url: string, key: string): Exchange {
  let negotiated: string | null = null // by `initialize`, for the requests after it
  return async (message) => {
    const method = fieldOf(message, 'method')
    const params = fieldOf(message, 'params')
    const metaVersion = fieldOf(fieldOf(params, '_meta'), 'io.modelcontextprotocol/protocolVersion')
    const version =
      typeof metaVersion === 'string' ? metaVersion : method === 'initialize' ? null : negotiated
    const name = fieldOf(params, 'name')
    const response = await fetch(`${url}/mcp`, {
      method: 'POST',
      body: JSON.stringify(message),
      signal: AbortSignal.timeout(timeoutMs),
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...(version === null ? {} : { 'mcp-protocol-version': headerText(version) }),
        ...(typeof method === 'string' ? { 'mcp-method': headerText(method) } : {}),
        ...(typeof name === 'string' ? { 'mcp-name': headerText(name) } : {}),
      },
    })
    if (response.status === 202) return null
    const answer: unknown = await response.json().catch(() => null)
    if (fieldOf(answer, 'jsonrpc') !== '2.0') throw new Error(refusalText(response.status, answer))
    const agreed = fieldOf(fieldOf(answer, 'result'), 'protocolVersion')
    if (method === 'initialize' && typeof agreed === 'string') negotiated = agreed
    return answer
  }
}

function headerText(text: string): string {
  const isPlain = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !/^=\?base64\?.*\?=$/.test(text)
  return isPlain ? text : `=?base64?${Buffer.from(text).toString('base64')}?=`
}

function refusalText(status: number, answer: unknown): string {
  const message = fieldOf(answer, 'message')
  return typeof message === 'string' && typeof fieldOf(answer, 'error') === 'string'
    ? message
    : `The address answered with status ${status}, so it is not a Sightglass appliance.`
}
