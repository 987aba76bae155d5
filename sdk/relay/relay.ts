/** `createRelayHandler`: the endpoint browsers send to, for servers in the Fetch style (Bun, Hono, Elysia, Next.js). */
import type { RelayOptions } from './relay-options.ts'
import { createTakeEvents, type RelayRequest } from './receive-events.ts'

/** What the server hands over beside the request. Bun's server will do, as the second argument of its `fetch`. */
export interface RelayContext {
  address?: string | null
  requestIP?(request: Request): { address: string } | null
}

/** Throws on wrong options. The handler always resolves with an answer. */
export function createRelayHandler(
  options: RelayOptions<Request>,
): (request: Request, context?: RelayContext) => Promise<Response> {
  const takeEvents = createTakeEvents(options)
  return async (request, context) => {
    const { status, headers, body } = await takeEvents(relayRequest(request, context))
    return new Response(status === 204 ? null : body, { status, headers })
  }
}

function relayRequest(request: Request, context: RelayContext | undefined): RelayRequest<Request> {
  return {
    method: request.method,
    header: (name) => request.headers.get(name) ?? (name === 'host' ? new URL(request.url).host : null),
    address: context?.address ?? context?.requestIP?.(request)?.address ?? null,
    readText: (bytesMax) => readText(request, bytesMax),
    raw: request,
  }
}

/** Stops reading at the limit: a body that says nothing about its length must not fill the memory. */
async function readText(request: Request, bytesMax: number): Promise<string | null> {
  if (Number(request.headers.get('content-length') ?? 0) > bytesMax) return null
  if (request.body === null) return ''
  const decoder = new TextDecoder()
  const reader = request.body.getReader()
  let text = ''
  let bytes = 0
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    bytes += part.value.length
    if (bytes > bytesMax) {
      await reader.cancel()
      return null
    }
    text += decoder.decode(part.value, { stream: true })
  }
  return text + decoder.decode()
}
