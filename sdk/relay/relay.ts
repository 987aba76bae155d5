/** `createRelayHandler`: the relay endpoint for servers with Fetch requests (Bun, Hono, Elysia, Next.js). */
import { eventReceiver, type RelayOptions, type RelayRequest } from './receive-events.ts'

/** The client's address. Bun's server, the second argument of its `fetch`, works as it is. */
export interface RelayContext {
  address?: string | null
  requestIP?(request: Request): { address: string } | null
}

/** Throws on invalid options. The handler never rejects. */
export function createRelayHandler(
  options: RelayOptions<Request>,
): (request: Request, context?: RelayContext) => Promise<Response> {
  const receive = eventReceiver(options)
  return async (request, context) => {
    const { status, headers, body } = await receive(relayRequest(request, context))
    return new Response(status === 204 ? null : body, { status, headers })
  }
}

function relayRequest(request: Request, context: RelayContext | undefined): RelayRequest<Request> {
  return {
    method: request.method,
    url: request.url,
    header: (name) => request.headers.get(name) ?? (name === 'host' ? new URL(request.url).host : null),
    address: context?.address ?? context?.requestIP?.(request)?.address ?? null,
    readText: (bytesMax) => readText(request, bytesMax),
    raw: request,
  }
}

/** Stops reading at the limit, because a body may have no content-length. */
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
