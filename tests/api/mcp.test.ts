/** POST /mcp: both eras of the protocol, keys, scopes, limits, the audit log; no question changes anything. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mintKey } from '../../server/identity/keys/keys.ts'
import { isOnPostgres, rawSql } from '../support/engine.ts'
import { event } from '../support/events.ts'
import { answerMessage } from '../../server/mcp/protocol.ts'
import { diagnosticServer } from './mcp-conformance.ts'
import {
  ask,
  callTool,
  mistake,
  modern,
  modernMeta,
  modernVersion,
  send,
  type Answered,
} from '../support/mcp.ts'
import type { Schema } from '../../server/http/validate.ts'
import { makeOrg } from '../support/people.ts'
import { testServer, type TestServer } from '../support/server.ts'

let server: TestServer
let key: string
const names = [
  'describe_record',
  'count',
  'timeline',
  'find_events',
  'get_event',
  'find_sessions',
  'session_story',
  'explain_refusal',
  'tool_health',
  'changes',
]

beforeAll(async () => {
  server = await testServer()
  key = await server.key('secret', { label: 'assistant' })
  const ingest = await server.key('ingest')
  const now = server.clock.now()
  const minutesAgo = (n: number) => new Date(now - n * 60_000).toISOString()
  const events = Array.from({ length: 40 }, (_, n) =>
    event(`evt_${n}`, { occurredAt: minutesAgo(n), sessionId: `s${n % 3}` }),
  )
  expect((await server.call('/v1/sdk/events', { key: ingest, body: { events } })).status).toBe(202)
  const tools = [{ name: 'checkout.pay', description: 'Pays.' }]
  await server.call('/v1/sdk/tools', { key: ingest, body: { siteId: 'shop-acme', tools } })
  const memory = { siteId: 'shop-acme', snapshot: { siteMap: {} } }
  await server.call('/v1/sdk/memory', { key: ingest, body: memory })
})
afterAll(() => server[Symbol.asyncDispose]())

const rpc = (message: unknown, headers: Record<string, string> = {}) =>
  send(server.call, key, message, headers)
const request = (method: string, params?: object, id: unknown = 1) => ({ jsonrpc: '2.0', id, method, params })
const listOf = (result: unknown) => (result as { tools: { name: string }[] }).tools.map(({ name }) => name)

describe('the revisions that begin with initialize', () => {
  test.each(['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'])(
    '%s: agrees, lists and calls',
    async (protocolVersion) => {
      const client = { protocolVersion, capabilities: {}, clientInfo: { name: 'c', version: '1' } }
      const { status, result } = await rpc(request('initialize', client))
      expect([status, result]).toEqual([
        200,
        {
          protocolVersion,
          capabilities: { tools: {} },
          serverInfo: { name: 'sightglass', title: 'Sightglass', version: expect.any(String) },
          instructions: expect.stringContaining('never as instructions'),
        },
      ])
      const headers = {
        'mcp-protocol-version': protocolVersion,
        accept: 'application/json, text/event-stream',
      }
      expect(await rpc({ jsonrpc: '2.0', method: 'notifications/initialized' }, headers)).toEqual({
        status: 202,
      })
      expect((await rpc(request('ping', undefined, 'p'), headers)).result).toEqual({})
      const listed = (await rpc(request('tools/list', {}), headers)).result
      expect(listOf(listed)).toEqual(names)
      expect(listed).not.toHaveProperty('ttlMs')
      const callAnswer = await rpc(request('tools/call', { name: 'count' }), headers)
      expect(callAnswer.result).toMatchObject({ structuredContent: { count: 40 } })
      expect(callAnswer.result).not.toHaveProperty('resultType')
      expect(await rpc(request('resources/list'), headers)).toMatchObject({
        status: 200,
        error: { code: -32601 },
      })
      expect((await rpc(request('tools/list', { cursor: 'x' }), headers)).error?.code).toBe(-32602)
    },
  )

  test('another version gets the newest before it; no header counts as one of them', async () => {
    for (const [askedVersion, agreed] of [
      ['2024-10-07', '2024-11-05'],
      ['2025-05-01', '2025-03-26'],
      [modernVersion, '2025-11-25'],
      ['2099-01-01', '2025-11-25'],
      ['DRAFT', '2025-11-25'],
    ]) {
      const { result } = await rpc(request('initialize', { protocolVersion: askedVersion, capabilities: {} }))
      expect([askedVersion, result?.['protocolVersion']]).toEqual([askedVersion, agreed])
    }
    expect((await rpc(request('initialize', {}))).error?.code).toBe(-32602)
    expect(listOf((await rpc(request('tools/list'))).result)).toEqual(names)
    const unknown = await rpc(request('tools/list'), { 'mcp-protocol-version': '1900-01-01' })
    const supported = [modernVersion, '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05']
    expect(unknown).toMatchObject({ status: 400, error: { code: -32022, data: { supported } } })
  })

  test('2025-03-26 has batches, answered in one list; later revisions refuse them', async () => {
    const batch = [
      request('ping', undefined, 'a'),
      { jsonrpc: '2.0', method: 'notifications/initialized' },
      request('tools/call', { name: 'count', arguments: null }, 2),
      request('nothing', undefined, 3),
      7,
    ]
    for (const headers of [{}, { 'mcp-protocol-version': '2025-03-26' }] as Record<string, string>[]) {
      const response = await server.call('/mcp', { key, body: batch, headers })
      expect(await response.json()).toMatchObject([
        { id: 'a', result: {} },
        { id: 2, result: { structuredContent: { count: 40 } } },
        { id: 3, error: { code: -32601 } },
        { error: { code: -32600 } },
      ])
    }
    const notified = await server.call('/mcp', { key, body: [batch[1]] })
    expect([notified.status, await notified.text()]).toEqual([202, ''])
    for (const wrong of [[], Array.from({ length: 21 }, () => batch[0])])
      expect(await rpc(wrong)).toMatchObject({ status: 400, error: { code: -32600 } })
    const later = await rpc(batch, { 'mcp-protocol-version': '2025-06-18' })
    expect(later).toMatchObject({ status: 400, error: { code: -32600 } })
  })
})

/** Requests in which every optional value is absent, and the optional values of each. */
const optionals: [method: string, params: { [name: string]: unknown }, names: string[]][] = [
  ['tools/list', {}, ['cursor', '_meta']],
  ['tools/call', { name: 'count' }, ['arguments', '_meta']],
  ['ping', {}, ['_meta']],
  ['initialize', { protocolVersion: '2025-11-25' }, ['capabilities', 'clientInfo', '_meta']],
]

test('null is an absent value of every message and every tool, and so is an empty one', async () => {
  for (const [method, params, optional] of optionals) {
    const plain = await rpc(request(method, params))
    expect(plain.result).toBeDefined()
    if (Object.keys(params).length === 0)
      expect(await rpc({ jsonrpc: '2.0', id: 1, method, params: null })).toEqual(plain)
    for (const name of optional)
      expect({ [name]: await rpc(request(method, { ...params, [name]: null })) }).toEqual({ [name]: plain })
  }
  expect(listOf((await rpc(request('tools/list', { cursor: '' }))).result)).toEqual(names)
  const { result } = await rpc(request('tools/list'))
  const tools = (result as { tools: { name: string; inputSchema: Schema }[] }).tools
  let triedCount = 0
  for (const { name, inputSchema } of tools) {
    const { properties = {}, required = [] } = inputSchema
    const requiredArguments = Object.fromEntries(
      required.map((argumentName) => [argumentName, name === 'session_story' ? 's1' : 'evt_1']),
    )
    const shape = async (args: object) => {
      const answer = await callTool(server.call, key, name, args)
      const { filter, count } = (answer.result?.['structuredContent'] ?? {}) as Answered
      return { isError: answer.result?.['isError'] === true, filter, count }
    }
    const plain = await shape(requiredArguments)
    for (const argument of Object.keys(properties).filter((candidate) => !required.includes(candidate))) {
      const empty = properties[argument]!.type === 'array' ? [] : ''
      for (const value of [null, empty]) {
        expect({
          name,
          argument,
          value,
          ...(await shape({ ...requiredArguments, [argument]: value })),
        }).toEqual({
          name,
          argument,
          value,
          ...plain,
        })
        triedCount++
      }
    }
  }
  expect(triedCount).toBeGreaterThan(200)
})

describe('2026-07-28', () => {
  const header = { 'mcp-protocol-version': modernVersion }

  test('discovers, lists with hints for caches, and calls', async () => {
    const discovered = await modern(server.call, key, 'server/discover')
    const cached = { resultType: 'complete', ttlMs: expect.any(Number), cacheScope: 'private' }
    const info = { 'io.modelcontextprotocol/serverInfo': { name: 'sightglass' } }
    const capabilities = { tools: {} }
    expect(discovered.result).toMatchObject({
      ...cached,
      capabilities,
      supportedVersions: [modernVersion],
      _meta: info,
    })
    const listed = await modern(server.call, key, 'tools/list')
    expect(listed.result).toMatchObject({ ...cached, _meta: info })
    expect(listOf(listed.result)).toEqual(names)
    expect(await modern(server.call, key, 'tools/list')).toEqual(listed)
    const callAnswer = await modern(server.call, key, 'tools/call', {
      name: 'count',
      arguments: { last: '24h' },
    })
    expect(callAnswer).toMatchObject({
      status: 200,
      id: 1,
      result: { resultType: 'complete', structuredContent: { count: 40 } },
    })
  })

  test('methods of other revisions, and unknown ones, are 404', async () => {
    for (const method of [
      'initialize',
      'ping',
      'logging/setLevel',
      'resources/list',
      'subscriptions/listen',
      'x',
    ])
      expect(await modern(server.call, key, method)).toMatchObject({
        status: 404,
        id: 1,
        error: { code: -32601 },
      })
  })

  test('headers must repeat the body, also encoded', async () => {
    const whole = { ...header, 'mcp-method': 'tools/call', 'mcp-name': 'count' }
    const call = request('tools/call', { name: 'count', _meta: modernMeta })
    const encoded = `=?base64?${Buffer.from('count').toString('base64')}?=`
    expect((await rpc(call, { ...whole, 'mcp-name': encoded })).status).toBe(200)
    const wrong: Record<string, string>[] = [
      { 'mcp-protocol-version': '2025-11-25' },
      { 'mcp-method': 'tools/list' },
      { 'mcp-name': 'Count' },
      { 'mcp-name': '=?base64?Y291bnQ?' },
    ]
    for (const headerChange of wrong)
      expect(await rpc(call, { ...whole, ...headerChange })).toMatchObject({
        status: 400,
        error: { code: -32020 },
      })
    for (const missing of Object.keys(whole)) {
      const otherHeaders = Object.fromEntries(Object.entries(whole).filter(([name]) => name !== missing))
      expect(await rpc(call, otherHeaders)).toMatchObject({ status: 400, id: 1, error: { code: -32020 } })
    }
  })

  test('a request without what _meta must have, or of an unknown version, is refused', async () => {
    const discover = (meta: object) => request('server/discover', { _meta: meta })
    const discoverHeaders = { ...header, 'mcp-method': 'server/discover' }
    const version = 'io.modelcontextprotocol/protocolVersion'
    const { [version]: _version, ...versionless } = modernMeta
    for (const meta of [{}, versionless, { [version]: modernVersion }])
      expect(await rpc(discover(meta), discoverHeaders)).toMatchObject({
        status: 400,
        id: 1,
        error: { code: -32602 },
      })
    const future = await rpc(discover({ ...modernMeta, [version]: '2099-01-01' }), {
      ...discoverHeaders,
      'mcp-protocol-version': '2099-01-01',
    })
    const data = { supported: expect.arrayContaining([modernVersion, '2024-11-05']), requested: '2099-01-01' }
    expect(future).toMatchObject({ status: 400, error: { code: -32022, data } })
  })
})

test('every kind of content passes in both eras, and an error of a tool has its code and status', async () => {
  for (const { name } of diagnosticServer.tools) {
    const call = request('tools/call', { name })
    const meta = request('tools/call', { name, _meta: modernMeta })
    const headers = { 'mcp-protocol-version': modernVersion, 'mcp-method': 'tools/call', 'mcp-name': name }
    const old = await answerMessage(diagnosticServer, call, new Headers())
    const now = await answerMessage(diagnosticServer, meta, new Headers(headers))
    const isRefused = name === 'test_missing_capability'
    expect([name, old.status, now.status]).toEqual([name, ...(isRefused ? [400, 400] : [200, 200])])
    if (isRefused) expect(now.body).toMatchObject({ error: { code: -32021 } })
    else expect(now.body).toMatchObject({ result: (old.body as { result: object }).result })
  }
})

test('malformed messages get an error of JSON-RPC, and other methods of HTTP a 405', async () => {
  const bad: [unknown, number][] = [
    ['{', -32700],
    ['', -32700],
    [5, -32600],
    [{ id: 1, method: 'ping' }, -32600],
    [{ jsonrpc: '2.0', id: 1 }, -32600],
    [{ jsonrpc: '2.0', id: 1, result: {} }, -32600],
    [{ jsonrpc: '2.0', id: null, method: 'ping' }, -32600],
    [{ jsonrpc: '2.0', id: 1.5, method: 'ping' }, -32600],
    [{ jsonrpc: '2.0', id: 1, method: 'ping', params: [] }, -32602],
    [
      JSON.parse(
        `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":${'['.repeat(200)}${']'.repeat(200)}}}`,
      ),
      -32600,
    ],
  ]
  for (const [message, code] of bad)
    expect([message, await rpc(message, { 'content-type': 'application/json' })]).toMatchObject([
      message,
      { status: 400, error: { code } },
    ])
  for (const [name, args] of [
    [5, {}],
    ['count', []],
    ['nope', {}],
  ])
    expect((await rpc(request('tools/call', { name, arguments: args }))).error?.code).toBe(-32602)
  for (const method of ['GET', 'DELETE']) {
    const answer = await server.call('/mcp', { method, key })
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'POST'])
  }
})

test('limits: bytes, media types, encodings, arguments', async () => {
  const call = (headers: Record<string, string>, body: unknown = request('ping')) =>
    server.call('/mcp', { key, body, headers })
  expect((await call({}, { ...request('ping'), x: 'x'.repeat(70_000) })).status).toBe(413)
  expect((await call({ 'content-type': 'text/plain' })).status).toBe(415)
  expect((await call({ accept: 'text/html' })).status).toBe(406)
  expect((await server.call('/mcp?x=1', { key, body: request('ping') })).status).toBe(400)
  const readMistake = (args: object) => mistake(server.call, key, 'count', args)
  expect(await readMistake({ nosuch: 1 })).toStartWith('nosuch is not a known field. Known: type,')
  expect(await readMistake({ type: 'No Type' })).toContain('type must be')
  expect(await readMistake({ vendor: Array<string>(101).fill('v') })).toContain('at most 100 values')
  expect(await readMistake({ vendor: 'v'.repeat(201) })).toContain('at most 200 characters')
  expect(await readMistake({ since: 'yesterday' })).toContain('RFC 3339')
  expect(await readMistake({ last: '7d', since: '2026-01-01' })).toContain('cannot be combined')
  expect(await readMistake({ last: '0d' })).toContain('last must match')
  expect(await readMistake({ by: 'subject' })).toStartWith(
    'by must be one of "type", "outcome", "siteId", "class",',
  )
  expect(await readMistake({ q: 'x'.repeat(5_000), last: '1h' })).toContain('q must have')
  expect(await mistake(server.call, key, 'find_events', { cursor: 'x' })).toContain('cursor')
  expect(await mistake(server.call, key, 'get_event', { id: 'nobody' })).toBe('No event has this id.')
  expect(await mistake(server.call, key, 'session_story', { id: 'nobody' })).toBe('No session has this id.')
})

test('a page of another site is refused, one of this machine is not', async () => {
  const from = async (origin: string) =>
    (await server.call('/mcp', { key, body: request('ping'), headers: { origin } })).status
  expect(await from('http://localhost:6274')).toBe(200)
  expect(await from(server.url)).toBe(200)
  for (const origin of [
    'https://evil.example',
    'null',
    'http://10.9.8.7',
    'file://',
    'http://127.0.0.1.evil.example',
  ])
    expect([origin, await from(origin)]).toEqual([origin, 403])
  for (const path of ['/mcp/', '//mcp', '/%6dcp', '/MCP', '/./mcp']) {
    const answer = await server.call(path, {
      key,
      body: request('ping'),
      headers: { origin: 'https://evil.example' },
    })
    expect([path, answer.status === 200]).toEqual([path, false])
  }
})

describe('keys', () => {
  test('only secret keys', async () => {
    const keylessResponse = await server.call('/mcp', { body: request('ping') })
    expect([keylessResponse.status, keylessResponse.headers.get('www-authenticate')]).toEqual([
      401,
      'Bearer realm="sightglass"',
    ])
    expect((await server.call('/mcp', { key: 'agtx_sk_wrong', body: request('ping') })).status).toBe(401)
    for (const kind of ['ingest', 'publishable'] as const)
      expect((await server.call('/mcp', { key: await server.key(kind), body: request('ping') })).status).toBe(
        403,
      )
  })

  test('scopes decide which tools are listed and answer', async () => {
    const metrics = await server.key('secret', { scopes: ['metrics:read'] })
    const traces = await server.key('secret', { scopes: ['traces:read'] })
    const hooks = await server.key('secret', { scopes: ['webhooks:read'] })
    const listed = async (apiKey: string) =>
      listOf((await send(server.call, apiKey, request('tools/list'))).result)
    expect(await listed(metrics)).toEqual(names.slice(0, 3))
    expect(await listed(traces)).toEqual(names.slice(3))
    expect(await listed(hooks)).toEqual([])
    const { error } = await callTool(server.call, metrics, 'find_events')
    expect(error).toMatchObject({ code: -32602, message: expect.stringContaining('traces:read') })
    // No more than GET /v1/metrics shows.
    expect(await ask(server.call, metrics, 'count', { type: 'authz.*', by: 'siteId' })).toMatchObject({
      count: 40,
    })
    for (const args of [{ vendor: 'Operator' }, { by: 'vendor' }, { q: 'trust' }, { sessionId: 's1' }])
      expect(await mistake(server.call, metrics, 'count', args)).toContain(
        'needs a key with the scope traces:read',
      )
    expect(await mistake(server.call, metrics, 'timeline', { tool: 'x' })).toContain('traces:read')
    expect(await ask(server.call, traces, 'changes')).toMatchObject({
      audit: null,
      tools: 1,
      memory: 1,
      count: 2,
    })
    expect((await ask(server.call, key, 'changes'))['audit']).toBeGreaterThan(3)
  })

  test('another organization sees nothing of this one', async () => {
    const otherOrg = await makeOrg(server, 'elsewhere')
    const keyFields = { orgId: otherOrg.id, kind: 'secret' as const, label: 'x', actor: 'cli' }
    const foreign = (await mintKey(server.store, keyFields, server.clock)).secret
    expect(await ask(server.call, foreign, 'count')).toMatchObject({ count: 0 })
    expect(await mistake(server.call, foreign, 'get_event', { id: 'evt_1' })).toBe('No event has this id.')
    const { nextCursor } = await ask(server.call, key, 'find_events', { limit: 1 })
    expect(await mistake(server.call, foreign, 'find_events', { cursor: nextCursor })).toContain(
      'Invalid cursor',
    )
    expect((await ask(server.call, foreign, 'changes'))['count']).toBeLessThan(4)
  })
})

const entriesOf = async () =>
  (
    await server.store.audit.list({
      orgId: server.org.id,
      limit: 50,
      beforeSeq: null,
      filter: { actions: ['mcp_session.started'] },
    })
  ).entries

test('a session of questions is one entry, written before its first answer', async () => {
  const fresh = await server.key('secret', { label: 'auditor' })
  const countBefore = (await entriesOf()).length
  await send(server.call, fresh, request('tools/list'))
  expect((await entriesOf()).length).toBe(countBefore) // nothing was read
  await Promise.all(
    Array.from({ length: 8 }, () => modern(server.call, fresh, 'tools/call', { name: 'count' })),
  )
  await ask(server.call, fresh, 'timeline')
  const [entry, ...otherEntries] = await entriesOf()
  expect(otherEntries.length).toBe(countBefore)
  expect(entry).toMatchObject({
    actor: expect.stringMatching(/^key:/),
    metadata: { client: 'test-client', tool: 'count', actorLabel: 'auditor', address: '127.0.0.1' },
  })
  server.clock.move(29 * 60_000)
  await ask(server.call, fresh, 'count')
  expect((await entriesOf()).length).toBe(countBefore + 1)
  server.clock.move(31 * 60_000)
  await ask(server.call, fresh, 'count')
  expect((await entriesOf()).length).toBe(countBefore + 2)
  const hostile = { name: `${'n'.repeat(200)}\u202e`, version: '1' }
  const params = { name: 'count', _meta: { ...modernMeta, 'io.modelcontextprotocol/clientInfo': hostile } }
  server.clock.move(31 * 60_000)
  await send(server.call, fresh, request('tools/call', params), {
    'mcp-protocol-version': modernVersion,
    'mcp-method': 'tools/call',
    'mcp-name': 'count',
  })
  expect(String((await entriesOf())[0]!.metadata['client']).length).toBeLessThanOrEqual(80)
})

/**
 * Every table, but for the audit log with the count of its checkpoints (`key_check`), and what changes beside: jobs,
 * nodes, counts of requests, upkeep of events.
 */
async function digest(): Promise<Map<string, string>> {
  const aside = /^(?:audit|key_check|job|node|ingest_|sqlite_|store_lock|cache_version|event_|rollup_)/
  const listed = isOnPostgres
    ? `SELECT c.relname::text AS name FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
       WHERE c.relkind = 'r' AND n.nspname = current_schema()`
    : `SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name`
  const tables = (await rawSql<{ name: string }>(server.dataDir, listed)).filter(
    ({ name }) => !aside.test(name),
  )
  const sum = (rows: string[]) => Bun.SHA256.hash(rows.sort().join('\n'), 'hex')
  if (isOnPostgres) {
    const rowsOf = ({ name }: { name: string }) =>
      `SELECT '${name}' AS name, (to_jsonb(t) - 'last_used_at_ms' - 'last_used_address')::text AS row
       FROM "${name}" AS t`
    const rows = await rawSql<{ name: string; row: string }>(
      server.dataDir,
      tables.map(rowsOf).join(' UNION ALL '),
    )
    const byTable = Map.groupBy(rows, ({ name }) => name)
    return new Map(tables.map(({ name }) => [name, sum((byTable.get(name) ?? []).map(({ row }) => row))]))
  }
  const digests = new Map<string, string>()
  for (const { name } of tables) {
    const rows = await rawSql<{ [column: string]: unknown }>(server.dataDir, `SELECT * FROM "${name}"`)
    const texts = rows.map(({ last_used_at_ms: _at, last_used_address: _from, ...row }) => Bun.inspect(row))
    digests.set(name, sum(texts))
  }
  return digests
}

/** The events and their counts, whose tables are maintained beside. */
async function eventsNow() {
  const headers = { accept: 'application/x-ndjson' }
  const events = await (await server.call('/v1/traces', { key, headers })).text()
  const { store, org } = server
  return [events, await store.events.metrics({ orgId: org.id, sinceMs: 0, untilMs: null, rowsMax: 100_000 })]
}

test('no question changes anything', async () => {
  await ask(server.call, key, 'count') // begins the session
  const before = await digest()
  const counted = await eventsNow()
  expect(before.size).toBeGreaterThan(10)
  const args: { [name: string]: object[] } = {
    count: [{}, { by: 'tool' }, { vendor: 'Operator', by: 'page' }, { q: 'trust' }],
    get_event: [{ id: 'evt_1' }, { id: 'nobody' }],
    session_story: [{ id: 's1' }],
    explain_refusal: [{}, { id: 'evt_2' }],
  }
  for (let round = 0; round < 5; round++)
    for (const name of names)
      for (const toolArguments of args[name] ?? [{}]) await callTool(server.call, key, name, toolArguments)
  expect(await digest()).toEqual(before)
  expect(await eventsNow()).toEqual(counted)
})
