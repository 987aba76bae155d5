/** `createNodeRelay`: the relay endpoint for the http server of Node.js and for Express. */
import { eventReceiver, type RelayOptions, type RelayRequest } from './receive-events.ts'

/** The parts of Node's `IncomingMessage` in use, so that no Node.js types are needed. */
export interface NodeRequest extends AsyncIterable<Uint8Array | string> {
  method?: string | undefined
  url?: string | undefined
  /** Express: the URL before a router changed it. */
  originalUrl?: string | undefined
  headers: { [name: string]: string | string[] | undefined }
  socket: { remoteAddress?: string | undefined }
  /** The result of a body parser such as express.json(). */
  body?: unknown
}

export interface NodeResponse {
  writeHead(status: number, headers: { [name: string]: string }): unknown
  end(body: string): unknown
}

/** Throws on invalid options. Works with and without a body parser. */
export function createNodeRelay<Raw extends NodeRequest>(
  options: RelayOptions<Raw>,
): (request: Raw, response: NodeResponse) => Promise<void> {
  const receive = eventReceiver<Raw>(options)
  return async (request, response) => {
    const { status, headers, body } = await receive(relayRequest(request))
    response.writeHead(status, headers)
    response.end(body)
  }
}

function relayRequest<Raw extends NodeRequest>(request: Raw): RelayRequest<Raw> {
  return {
    method: request.method ?? 'GET',
    url: request.originalUrl ?? request.url ?? '/',
    header(name) {
      const value = request.headers[name] ?? (name === 'host' ? request.headers[':authority'] : undefined) // HTTP/2
      return typeof value === 'string' ? value : null
    },
    address: request.socket.remoteAddress ?? null,
    readText: (bytesMax) => readText(request, bytesMax),
    raw: request,
  }
}

async function readText(request: NodeRequest, bytesMax: number): Promise<string | null> {
  if (request.body !== undefined) return parsedText(request.body, bytesMax)
  const decoder = new TextDecoder()
  let text = ''
  let bytes = 0
  for await (const part of request) {
    bytes += part.length
    if (bytes > bytesMax) return null
    text += typeof part === 'string' ? part : decoder.decode(part, { stream: true })
  }
  return text + decoder.decode()
}

/** The body parser has its own limit; ours applies, too. */
function parsedText(body: unknown, bytesMax: number): string | null {
  const text =
    typeof body === 'string' ? body : body instanceof Uint8Array ? new TextDecoder().decode(body) : null
  const json = text ?? JSON.stringify(body ?? null)
  return json.length > bytesMax ? null : json
}
