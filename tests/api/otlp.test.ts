/** POST /v1/traces, /v1/logs and /v1/metrics: what OpenTelemetry exporters receive, and what is stored. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { gzipSync } from 'node:zlib'
import { rawSql } from '../support/engine.ts'
import { event } from '../support/events.ts'
import { attributes, decoded, encoded, toolSpans, tracesRequest, type Json } from '../support/otlp.ts'
import { testServer, type TestServer } from '../support/server.ts'

let server: TestServer
let ingest: string
let secret: string

beforeAll(async () => {
  server = await testServer({ ingestListen: { host: '127.0.0.1', port: 0 } })
  ingest = await server.key('ingest')
  secret = await server.key('secret')
})
afterAll(() => server[Symbol.asyncDispose]())

const protobuf = 'application/x-protobuf'
const json = 'application/json'

interface Sent {
  path?: string
  key?: string
  headers?: Record<string, string>
}

function post(body: unknown, type: string, { path = '/v1/traces', key = ingest, headers = {} }: Sent = {}) {
  return server.call(path, { method: 'POST', key, body, headers: { 'content-type': type, ...headers } })
}

/** Status, media type and message of an answer. */
async function answer(response: Response, message = 'Answer'): Promise<[number, string | null, Json]> {
  const type = response.headers.get('content-type')
  const body = type === json ? await response.json() : decoded(message, await response.bytes())
  return [response.status, type, body as Json]
}

async function stored(id: string): Promise<Json | null> {
  const response = await server.call(`/v1/traces/${encodeURIComponent(id)}`, { key: secret })
  return response.status === 404 ? null : ((await response.json()) as Json)
}

async function countOf(siteId: string): Promise<number> {
  const response = await server.call(`/v1/traces?siteId=${siteId}&limit=200`, { key: secret })
  return ((await response.json()) as { events: unknown[] }).events.length
}

describe('spans', () => {
  test('a tool call in protobuf becomes an event, and the answer is empty', async () => {
    const call = {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': 'search',
      'gen_ai.tool.call.id': 'call_1',
      'gen_ai.conversation.id': 'conv_1',
      'gen_ai.provider.name': 'openai',
      'gen_ai.agent.name': 'Shopper',
      'gen_ai.tool.call.arguments': '{"secret":1}',
      retries: 3,
      ratio: 0.5,
    }
    const span = {
      traceId: '5b8efff798038103d269b633813fc60c',
      parentSpanId: 'aaaaaaaaaaaaaaaa',
      attributes: call,
      endTimeUnixNano: '1795420800250000001',
    }
    const response = await post(encoded('Traces', tracesRequest([span])), protobuf)
    expect(await answer(response)).toEqual([200, protobuf, {}])
    const stays = Object.fromEntries(Object.entries(call).filter(([name]) => !name.endsWith('arguments')))
    expect(await stored('5b8efff798038103d269b633813fc60c:eee19b7ec3c1b174')).toEqual({
      id: '5b8efff798038103d269b633813fc60c:eee19b7ec3c1b174',
      siteId: 'shop',
      sessionId: 'conv_1',
      occurredAt: '2026-11-23T08:00:00.000Z',
      type: 'tool.executed',
      outcome: 'success',
      tool: 'search',
      durationMs: 250.000001,
      agent: { vendor: 'OpenAI', name: 'Shopper', trust: 'declared' },
      metadata: {
        traceId: '5b8efff798038103d269b633813fc60c',
        spanId: 'eee19b7ec3c1b174',
        parentSpanId: 'aaaaaaaaaaaaaaaa',
        span: 'execute_tool search',
        spanKind: 'internal',
        service: 'shop',
        scope: 'test',
        callId: 'call_1',
        attributes: stays,
      },
    })
  })

  test('the same batch sent five times, in both forms and compressed, counts once', async () => {
    const request = tracesRequest(toolSpans(300), 'five')
    const bytes = encoded('Traces', request)
    const gzip = { headers: { 'content-encoding': 'gzip' } }
    for (const send of [
      () => post(bytes, protobuf),
      () => post(gzipSync(bytes), protobuf, gzip),
      () => post(request, json),
      () => post(gzipSync(JSON.stringify(request)), `${json}; charset=utf-8`, gzip),
      () => post(bytes, protobuf),
    ]) {
      const [status, , body] = await answer(await send())
      expect([status, body]).toEqual([200, {}])
    }
    const metrics = await server.call('/v1/metrics?siteId=five', { key: secret })
    expect(((await metrics.json()) as Json)['total']).toBe(300)
  })

  test('some refused: 200 with a count and one sentence, in the form of the request', async () => {
    const spans = [...toolSpans(2), { ...toolSpans(1)[0]!, traceId: 'abcd' }, { spanId: '0'.repeat(16) }]
    const request = tracesRequest(spans, 'partial')
    const errorMessage = '2 of 4 spans were rejected: traceId must have 16 bytes that are not all zero.'
    const inJson = { partialSuccess: { rejectedSpans: '2', errorMessage } }
    expect(await answer(await post(request, json))).toEqual([200, json, inJson])
    const response = await post(encoded('Traces', request), protobuf)
    const inProtobuf = { partialSuccess: { rejected: '2', errorMessage } }
    expect(await answer(response)).toEqual([200, protobuf, inProtobuf])
    expect(await countOf('partial')).toBe(2)
    const health = await server.call('/api/ingest/health', {
      headers: { cookie: await server.signIn('owner') },
    })
    const { rejected } = (await health.json()) as { rejected: { path: string; message: string }[] }
    expect(rejected[0]).toMatchObject({ path: 'spanId', message: 'must have 8 bytes that are not all zero' })
  })

  test('an empty request is a success', async () => {
    expect(await answer(await post(new Uint8Array(), protobuf))).toEqual([200, protobuf, {}])
    expect(await answer(await post('{}', json))).toEqual([200, json, {}])
  })

  test('the site is the attribute sightglass.site.id, else the service; a limited key writes to its sites only', async () => {
    const limited = await server.key('ingest', { siteIds: ['mine'] })
    const [ownSpan, otherSpan] = toolSpans(2)
    const spans = [
      { ...ownSpan, attributes: { ...ownSpan!.attributes, 'sightglass.site.id': 'mine' } },
      otherSpan!,
    ]
    const response = await post(tracesRequest(spans, 'theirs'), json, { key: limited })
    const errorMessage = '1 of 2 spans were rejected: siteId is not allowed for this ingest key.'
    expect((await answer(response))[2]).toEqual({ partialSuccess: { rejectedSpans: '1', errorMessage } })
    expect([await countOf('mine'), await countOf('theirs')]).toEqual([1, 0])
    // A restricted site rejects keys for all sites.
    const owner = { cookie: await server.signIn('owner'), origin: server.url }
    await server.call('/api/sites', { headers: owner, body: { siteId: 'mine', restricted: true } })
    await post(tracesRequest(toolSpans(1, { 'sightglass.site.id': 'mine', again: 1 })), json)
    expect(await countOf('mine')).toBe(1)
  })

  test('model calls and other spans are not stored, and counted by scope', async () => {
    const spans = [
      { attributes: { 'gen_ai.operation.name': 'chat' } },
      { spanId: '1111111111111111', attributes: { 'http.request.method': 'GET' } },
    ]
    expect(await answer(await post(tracesRequest(spans, 'quiet'), json))).toEqual([200, json, {}])
    expect(await countOf('quiet')).toBe(0)
    const refused = [...toolSpans(3), { spanId: 'ab' }]
    await post(tracesRequest(refused, 'counted', 'library'), json)
    await post(tracesRequest(spans, 'counted', 'library'), json)
    const health = await server.call('/api/ingest/health', {
      headers: { cookie: await server.signIn('owner') },
    })
    const { otlp } = (await health.json()) as { otlp: { scopes: Json[] } }
    expect(otlp.scopes.find(({ scope }) => scope === 'library')).toEqual({
      scope: 'library',
      mapped: 3,
      modelCalls: 1,
      leftOut: 1,
      refused: 1,
    })
    // On disk, so a restart loses none of them.
    const sums =
      'sum(mapped) AS mapped, sum(model_calls) AS calls, sum(left_out) AS other, sum(refused) AS refused'
    const [row] = await rawSql(server.dataDir, `SELECT ${sums} FROM ingest_scope WHERE scope = 'library'`)
    expect(row).toEqual({ mapped: 3, calls: 1, other: 1, refused: 1 })
  })

  test('spans from the future, without times, and out of range', async () => {
    const [future, untimedSpan, late] = toolSpans(3)
    const spans = [
      { ...future, startTimeUnixNano: '2795420800000000000', endTimeUnixNano: '2795420801000000000' },
      { ...untimedSpan, startTimeUnixNano: '0', endTimeUnixNano: '0' },
      { ...late, startTimeUnixNano: '18446744073709551615' },
    ]
    const response = await post(encoded('Traces', tracesRequest(spans, 'times')), protobuf)
    expect(JSON.stringify((await answer(response))[2])).toContain(
      '1 of 3 spans were rejected: occurredAt must be',
    )
    expect(await countOf('times')).toBe(2)
  })

  test('an attribute of 1 MiB is dropped and counted, the rest of the span is stored', async () => {
    const span = {
      traceId: 'd'.repeat(32),
      ...toolSpans(1, { huge: 'x'.repeat(1024 * 1024), small: 'y' })[0],
    }
    expect((await post(encoded('Traces', tracesRequest([span], 'huge')), protobuf)).status).toBe(200)
    const { metadata } = (await stored(`${'d'.repeat(32)}:0000000000000001`)) as { metadata: Json }
    expect(metadata['droppedAttributes']).toBe(1)
    expect(metadata['attributes']).toMatchObject({ small: 'y', 'gen_ai.tool.name': 'search' })
  })

  test('hostile names are stored as they are', async () => {
    const odd = { ...toolSpans(1)[0]!, traceId: 'e'.repeat(32), name: '<img src=x>' }
    const name = { __proto__: 'p', constructor: 'c', '\u202e\0': 'v' }
    odd.attributes = { 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': '"><script>', ...name }
    expect((await post(tracesRequest([odd], 'odd'), json)).status).toBe(200)
    const event = await stored(`${'e'.repeat(32)}:0000000000000001`)
    expect(event).toMatchObject({ tool: '"><script>', metadata: { span: '<img src=x>' } })
  })
})

describe('errors are google.rpc.Status in the form of the request', () => {
  test.each([
    ['malformed', () => post(Uint8Array.from([10, 200]), protobuf), 400, 3, /not a valid OTLP request/],
    [
      'no key',
      () => server.call('/v1/traces', { method: 'POST', body: '', headers: { 'content-type': protobuf } }),
      401,
      16,
      /Bearer/,
    ],
    ['a secret key', () => post('', protobuf, { key: secret }), 403, 7, /kind ingest/],
    [
      'corrupt gzip',
      () => post('x', protobuf, { headers: { 'content-encoding': 'gzip' } }),
      400,
      3,
      /corrupt/,
    ],
    ['gRPC', () => post('', 'application/grpc'), 415, 3, /OTEL_EXPORTER_OTLP_PROTOCOL=http\/protobuf/],
    [
      'a gzip bomb',
      () => post(gzipSync(Buffer.alloc(40_000_000)), protobuf, { headers: { 'content-encoding': 'gzip' } }),
      413,
      8,
      /decompressed/,
    ],
  ] as const)('%s', async (_, send, status, code, message) => {
    const response = await (send as () => Promise<Response>)()
    const [got, type, body] = await answer(response, 'RpcStatus')
    expect([got, type, body['code']]).toEqual([status, protobuf, code])
    expect(body['message']).toMatch(message)
  })

  test('in JSON', async () => {
    const [status, type, body] = await answer(await post('{', json))
    expect([status, type, body]).toEqual([
      400,
      json,
      { code: 3, message: expect.stringContaining('not a valid') },
    ])
    expect((await post('', 'text/plain')).status).toBe(415)
  })

  test('a full disk and too many queued events are 503 with Retry-After', async () => {
    await using full = await testServer({ diskFloorBytes: 2 ** 60 })
    const key = await full.key('ingest')
    const response = await full.call('/v1/traces', { key, body: '{}' })
    expect([response.status, ((await response.json()) as Json)['code']]).toEqual([503, 14])
    expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0)
  })

  test('an encoded space in the header with the key counts as a space', async () => {
    const headers = { authorization: `Bearer%20${ingest}`, 'content-type': json }
    expect((await server.call('/v1/traces', { method: 'POST', body: '{}', headers })).status).toBe(200)
    const twice = { ...headers, authorization: `Bearer%2520${ingest}` }
    expect((await server.call('/v1/traces', { method: 'POST', body: '{}', headers: twice })).status).toBe(401)
  })

  test('another path says which variable to set', async () => {
    for (const path of [
      '/v1/traces/v1/traces',
      '/opentelemetry.proto.collector.trace.v1.TraceService/Export',
    ]) {
      const response = await server.call(path, { method: 'POST', key: ingest, body: '' })
      expect([response.status, ((await response.json()) as Json)['hint']]).toEqual([
        404,
        expect.stringContaining('OTEL_EXPORTER_OTLP_ENDPOINT'),
      ])
    }
  })

  test('reading /v1/traces is unchanged, and the ingest listener only receives', async () => {
    expect((await server.call('/v1/traces', { key: secret })).headers.get('content-type')).toBe(json)
    const body = JSON.stringify(tracesRequest(toolSpans(1), 'by-listener'))
    const headers = { authorization: `Bearer ${ingest}`, 'content-type': json }
    const url = `${server.ingestUrl}/v1/traces`
    expect((await fetch(url, { method: 'POST', headers, body })).status).toBe(200)
    expect((await fetch(url, { headers: { authorization: `Bearer ${secret}` } })).status).toBe(404)
  })
})

describe('logs and metrics', () => {
  const record = (name: string, values: { [name: string]: unknown }, time = '1795420801000000000') => ({
    timeUnixNano: time,
    body: { stringValue: name },
    attributes: attributes({ 'event.name': name.split('.')[1], 'session.id': 'sess_cc', ...values }),
  })

  function logs(records: Json[]): Json {
    const resource = { attributes: attributes({ 'service.name': 'claude-code' }) }
    const scope = { name: 'com.anthropic.claude_code.events' }
    return { resourceLogs: [{ resource, scopeLogs: [{ scope, logRecords: records }] }] }
  }

  test('records of Claude Code become events once, in both forms', async () => {
    const request = logs([
      record('claude_code.tool_result', {
        tool_name: 'Bash',
        success: 'false',
        duration_ms: '12',
        error: 'exit 1',
      }),
      record('claude_code.tool_decision', { tool_name: 'Bash', decision: 'reject', source: 'user_reject' }),
      record('claude_code.api_request', { model: 'm', input_tokens: 10 }),
      record('claude_code.user_prompt', { prompt: 'hello' }),
    ])
    expect((await answer(await post(encoded('Logs', request), protobuf, { path: '/v1/logs' })))[2]).toEqual(
      {},
    )
    expect((await answer(await post(request, json, { path: '/v1/logs' })))[2]).toEqual({})
    const response = await server.call('/v1/traces?sessionId=sess_cc', { key: secret })
    const { events } = (await response.json()) as { events: Json[] }
    expect(events.map(({ type, outcome, tool }) => [type, outcome, tool]).toSorted()).toEqual([
      ['authz.evaluated', 'blocked', 'Bash'],
      ['tool.executed', 'error', 'Bash'],
    ])
    expect(JSON.stringify(events)).not.toContain('hello')
  })

  test('metrics are refused with a count, so that an SDK stays quiet', async () => {
    const metrics = [{ name: 'a', gauge: { dataPoints: [{ asDouble: 1 }, { asDouble: 2 }] } }]
    const request = { resourceMetrics: [{ scopeMetrics: [{ metrics }] }] }
    const [status, , body] = await answer(await post(request, json, { path: '/v1/metrics' }))
    expect([status, body]).toMatchObject([200, { partialSuccess: { rejectedDataPoints: '2' } }])
    const bytes = encoded('Metrics', request)
    const inProtobuf = await answer(await post(bytes, protobuf, { path: '/v1/metrics' }))
    expect(inProtobuf[2]).toMatchObject({ partialSuccess: { rejected: '2' } })
  })
})

describe('bodies of another form', () => {
  const events = (id: string, siteId = 'moved') => [
    event(id, { siteId }),
    event(`${id}-2`, { siteId, durationMs: 'slow' as never }),
  ]
  const health = async () => {
    const cookie = await server.signIn('owner')
    const response = await server.call('/api/ingest/health', { headers: { cookie } })
    return (await response.json()) as { rejected: Json[]; keys: Json[] }
  }

  test('{ publishableKey, events } is answered as /v1/sdk/events answers it, refusals included', async () => {
    const bodies: [string, unknown][] = [
      ['some', { publishableKey: 'pk_1', events: events('moved-a') }],
      ['all', { publishableKey: 'pk_1', events: [events('moved-b')[1]] }],
      ['none', { publishableKey: 'pk_1', events: [] }],
      ['no list', { publishableKey: 'pk_1', events: 7 }],
      ['spaced', ` { "events" : ${JSON.stringify(events('moved-c'))} } `],
      ['many', { events: Array.from({ length: 1_001 }, (_, n) => event(`moved-${n}`)) }],
    ]
    for (const [caseName, body] of bodies) {
      const here = await server.key('ingest', { label: caseName })
      const there = await server.key('ingest')
      const answers = []
      for (const [path, key] of [
        ['/v1/traces', here],
        ['/v1/sdk/events', there],
      ] as const) {
        const text = typeof body === 'string' ? body : JSON.stringify(body)
        const response = await post(text.replaceAll('moved-', `${path}-`), json, { path, key })
        const { requestId, ...errorBody } = (await response.json()) as Json
        answers.push({
          status: response.status,
          said: JSON.parse(JSON.stringify(errorBody).replaceAll(`${path}-`, '')),
        })
      }
      expect({ what: caseName, answer: answers[0] }).toEqual({ what: caseName, answer: answers[1]! })
      const counted = (await health()).keys.find(({ label }) => label === caseName)
      expect(counted).toMatchObject({ requests: 1, refused: answers[0]!.status >= 400 ? 1 : 0 })
    }
    expect(await stored('/v1/traces-a')).toMatchObject({ siteId: 'moved' })
  })

  test('any other body is answered with a warning, and counted with a sample; an empty request is neither', async () => {
    for (const [path, byResource, body] of [
      ['/v1/traces', 'resourceSpans', '{"resource_spans":[]}'],
      ['/v1/traces', 'resourceSpans', '{"resourceLogs":[]}'],
      ['/v1/traces', 'resourceSpans', '{ "spans" : [{}] }'],
      ['/v1/logs', 'resourceLogs', '{"events":[]}'],
      ['/v1/metrics', 'resourceMetrics', '{"a":1}'],
    ] as const) {
      const label = `other ${path} ${body}`
      const key = await server.key('ingest', { label })
      const errorMessage = `The body has no "${byResource}". Nothing in it was stored.`
      const response = await post(body, json, { path, key })
      expect(await answer(response)).toEqual([200, json, { partialSuccess: { errorMessage } }])
      const { rejected, keys } = await health()
      expect(keys.find((apiKey) => apiKey['label'] === label)).toMatchObject({ requests: 1, refused: 1 })
      expect(rejected[0]).toMatchObject({ path: byResource, message: errorMessage, excerpt: body })
    }
    const key = await server.key('ingest', { label: 'empty' })
    for (const body of ['{}', ' { } ', '{"resourceSpans":[]}', '{"x":1,"resourceSpans":[]}'])
      expect(await answer(await post(body, json, { key }))).toEqual([200, json, {}])
    expect((await health()).keys.find(({ label }) => label === 'empty')).toMatchObject({
      requests: 4,
      refused: 0,
    })
  })

  test('one bad span refuses itself, and children have the agent of a parent that comes later', async () => {
    const request = tracesRequest(
      [
        {
          spanId: '00000000000000a1',
          parentSpanId: '00000000000000a2',
          attributes: toolSpans(1)[0]!.attributes!,
        },
        { spanId: '00000000000000a3', name: 7 as never },
        {
          spanId: '00000000000000a2',
          attributes: { 'gen_ai.operation.name': 'invoke_agent', 'gen_ai.agent.name': 'Shopper' },
        },
      ],
      'lineage',
    )
    const errorMessage = '1 of 3 spans were rejected: name must be a string.'
    expect((await answer(await post(request, json)))[2]).toEqual({
      partialSuccess: { rejectedSpans: '1', errorMessage },
    })
    const traceId = Bun.SHA256.hash('lineage', 'hex').slice(0, 32)
    expect(await stored(`${traceId}:00000000000000a1`)).toMatchObject({
      agent: { name: 'Shopper', trust: 'declared' },
    })
  })
})
