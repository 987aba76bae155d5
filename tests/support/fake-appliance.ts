/** A small appliance for unit tests: responds as contract §3 to §5, records requests, and fails on demand. */
import { gunzipSync } from 'node:zlib'

export interface ReceivedRequest {
  method: string
  path: string
  headers: { [name: string]: string }
  body: { [field: string]: unknown }
}

/** A response to send instead, or null for the normal one. */
export type Fault = (request: ReceivedRequest) => Response | null | Promise<Response | null>

export interface FakeAppliance extends AsyncDisposable {
  url: string
  requests: ReceivedRequest[]
  /** Unique events in order of arrival. */
  events: { id: string; [field: string]: unknown }[]
  fault: Fault
  /** Overrides of GET /v1/limits. */
  limits: { [name: string]: number | boolean }
  stop(): Promise<void>
}

export const ingestKey = `agtx_ik_${'i'.repeat(32)}`
export const publishableKey = `agtx_pk_${'p'.repeat(32)}`
export const secretKey = `agtx_sk_${'s'.repeat(32)}`

export function startFakeAppliance(port = 0): FakeAppliance {
  const ids = new Set<string>()
  const appliance: FakeAppliance = {
    url: '',
    requests: [],
    events: [],
    fault: () => null,
    limits: {},
    stop: () => server.stop(true),
    [Symbol.asyncDispose]: () => server.stop(true),
  }
  const server = Bun.serve({
    port,
    hostname: '127.0.0.1',
    async fetch(raw) {
      const request = await received(raw)
      appliance.requests.push(request)
      return (await appliance.fault(request)) ?? answer(appliance, ids, request)
    },
  })
  appliance.url = `http://127.0.0.1:${server.port}`
  return appliance
}

async function received(raw: Request): Promise<ReceivedRequest> {
  const bytes = new Uint8Array(await raw.arrayBuffer())
  const text =
    raw.headers.get('content-encoding') === 'gzip'
      ? gunzipSync(bytes)
      : Buffer.from(bytes.buffer as ArrayBuffer)
  const { pathname, search } = new URL(raw.url)
  return {
    method: raw.method,
    path: `${pathname}${search}`,
    headers: Object.fromEntries(raw.headers),
    body: text.length === 0 ? {} : JSON.parse(text.toString()),
  }
}

const limits = { eventsPerRequestMax: 1_000, bodyBytesMax: 8 * 1024 * 1024, eventBytesMax: 64 * 1024 }

function answer(appliance: FakeAppliance, ids: Set<string>, request: ReceivedRequest): Response {
  const { path, body, headers } = request
  if (path === '/v1/limits') return Response.json({ ...limits, ...appliance.limits })
  if (headers['authorization'] !== `Bearer ${ingestKey}`) return problem(401, 'unauthorized', 'invalid_key')
  if (path === '/v1/sdk/events') return storeEvents(appliance, ids, body['events'])
  if (path.startsWith('/v1/sdk/tools')) {
    return Response.json({ ok: true, tools: (body['tools'] as unknown[]).length }, { status: 202 })
  }
  if (path === '/v1/sdk/memory') return Response.json({ ok: true, siteId: body['siteId'] }, { status: 202 })
  return problem(404, 'not_found')
}

function storeEvents(appliance: FakeAppliance, ids: Set<string>, body: unknown): Response {
  const events = body as FakeAppliance['events']
  const maxEvents = Number(appliance.limits['eventsPerRequestMax'] ?? limits.eventsPerRequestMax)
  if (events.length > maxEvents) return problem(413, 'payload_too_large')
  const bad = events.flatMap((event, index) =>
    typeof event.id === 'string'
      ? []
      : [{ path: `events[${index}].id`, code: 'required', message: 'is required', index }],
  )
  if (bad.length === events.length) return problem(400, 'invalid_body', undefined, bad)
  const fresh = events.filter((event) => typeof event.id === 'string' && !ids.has(event.id))
  for (const event of fresh) ids.add(event.id)
  appliance.events.push(...fresh)
  const counts = { accepted: fresh.length, deduped: events.length - fresh.length - bad.length }
  const result =
    bad.length === 0 ? { ok: true, ...counts } : { ok: false, ...counts, rejected: bad.length, errors: bad }
  return Response.json(result, { status: 202 })
}

/** An error response of contract §3. */
export function problem(
  status: number,
  error: string,
  reason?: string,
  issues?: unknown[],
  headers: { [name: string]: string } = {},
): Response {
  const body = { error, message: `This is ${error}.`, reason, issues, requestId: 'req_test' }
  return Response.json(body, { status, headers })
}
