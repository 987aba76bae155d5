/** POST /v1/sdk/tools and /v1/sdk/memory: versions, differences, and reads. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { limits } from '../../server/limits.ts'
import { person } from '../support/people.ts'
import { testServer, type TestServer } from '../support/server.ts'

interface ToolView {
  siteId: string
  name: string
  enabled: boolean
  tokens: number
  tokensEstimated: boolean
  version: number
  firstSeenAt: string
  changedAt: string
  removedAt: string | null
  tool: { [member: string]: unknown }
}
interface History {
  tool: ToolView
  versions: {
    version: number
    change: string
    differences: { path: string; change: string; before?: unknown; after?: unknown }[]
    tool: unknown
  }[]
}

let server: TestServer
let ingest: string
let secret: string

beforeAll(async () => {
  server = await testServer()
  ingest = await server.key('ingest')
  secret = await server.key('secret')
})
afterAll(() => server[Symbol.asyncDispose]())

const push = (body: unknown, query = '', key = ingest) =>
  server.call(`/v1/sdk/tools${query}`, { key, body, method: 'POST' })
const pushMemory = (body: unknown, key = ingest) => server.call('/v1/sdk/memory', { key, body })
const read = async <T>(path: string): Promise<T> => {
  const response = await server.call(path, { key: secret })
  expect([path, response.status]).toEqual([path, 200])
  return (await response.json()) as T
}

/** Reads every page of a site's tools. */
async function toolsOf(siteId: string, extraQuery = ''): Promise<ToolView[]> {
  const tools: ToolView[] = []
  let address = `/v1/tools?limit=50&siteId=${encodeURIComponent(siteId)}${extraQuery}`
  for (;;) {
    const page = await read<{ tools: ToolView[]; nextCursor: string | null }>(address)
    tools.push(...page.tools)
    if (page.nextCursor === null) return tools
    address = `/v1/tools?limit=50&cursor=${page.nextCursor}`
  }
}
const history = (siteId: string, name: string) =>
  read<History>(`/v1/tools/${encodeURIComponent(siteId)}/${encodeURIComponent(name)}`)

test('a real registry of 117 tools is returned as sent, once however often it is pushed', async () => {
  const registry = (await Bun.file(join(import.meta.dir, '../../server/demo/tools.github.json')).json()) as {
    siteId: string
    tools: { name: string; description: string; inputSchema: unknown; outputSchema?: unknown }[]
  }
  for (let round = 0; round < 3; round++) {
    const response = await push(registry)
    expect([response.status, await response.json()]).toEqual([202, { ok: true, tools: 117 }])
  }
  const tools = await toolsOf('github')
  expect(tools.map((view) => view.tool)).toEqual(
    registry.tools.toSorted((a, b) => (a.name < b.name ? -1 : 1)) as ToolView['tool'][],
  )
  for (const view of tools) {
    const { name, description, inputSchema, outputSchema } = view.tool
    const chars = JSON.stringify({ name, description, inputSchema, outputSchema }).length
    expect(view).toMatchObject({
      version: 1,
      tokens: Math.ceil(chars / 4),
      tokensEstimated: true,
      enabled: true,
    })
  }
})

test('an equal value is no change; a change makes a version with its differences', async () => {
  const pushSchema = (schema: unknown, overrides = {}) =>
    push({ siteId: 'v', tools: [{ name: 'a', inputSchema: schema, ...overrides }] })
  await pushSchema({ type: 'object', properties: { x: 1.0, y: [1, 2] } })
  await pushSchema({ properties: { y: [1, 2], x: 1 }, type: 'object' })
  expect((await history('v', 'a')).versions.length).toBe(1)
  await pushSchema(
    { type: 'object', properties: { x: 2, y: [1, 3], 'z/~': null } },
    { tokens: 7, enabled: false },
  )
  const { tool, versions } = await history('v', 'a')
  expect(tool).toMatchObject({ version: 2, tokens: 7, tokensEstimated: false, enabled: false })
  expect(versions.map((version) => [version.version, version.change])).toEqual([
    [2, 'changed'],
    [1, 'added'],
  ])
  expect(versions[0]!.differences).toEqual([
    { path: '/enabled', change: 'added', after: false },
    { path: '/inputSchema/properties/x', change: 'changed', before: 1, after: 2 },
    { path: '/inputSchema/properties/y/1', change: 'changed', before: 2, after: 3 },
    { path: '/inputSchema/properties/z~1~0', change: 'added', after: null },
    { path: '/tokens', change: 'added', after: 7 },
  ])
})

test('mode=replace marks the absent ones removed, and a later push restores them', async () => {
  const tools = ['a', 'b', 'c'].map((name) => ({ name }))
  await push({ siteId: 'r', tools })
  expect((await push({ siteId: 'r', tools: tools.slice(0, 1) })).status).toBe(202)
  expect((await toolsOf('r')).map((tool) => tool.name)).toEqual(['a', 'b', 'c'])
  expect((await push({ siteId: 'r', tools: tools.slice(0, 1) }, '?mode=replace')).status).toBe(202)
  expect((await toolsOf('r')).map((tool) => tool.name)).toEqual(['a'])
  const allTools = await toolsOf('r', '&removed=true')
  expect(allTools.map((tool) => [tool.name, tool.removedAt !== null])).toEqual([
    ['a', false],
    ['b', true],
    ['c', true],
  ])
  await push({ siteId: 'r', tools: [{ name: 'b' }] })
  expect((await history('r', 'b')).versions.map((version) => version.change)).toEqual([
    'restored',
    'removed',
    'added',
  ])
  await push({ siteId: 'r', tools: [] }, '?mode=replace')
  expect(await toolsOf('r')).toEqual([])
})

test('unknown fields, long numbers and odd names are stored; the last of two equal names wins', async () => {
  const name = 'päth/with ?&#% space'
  const text = `{"siteId":"o/ö","tools":[{"name":${JSON.stringify(name)}},{"name":${JSON.stringify(name)},"x-cost":
    12345678901234567890.10,"title":null}]}`
  const response = await push(text)
  expect([response.status, await response.json()]).toEqual([202, { ok: true, tools: 2 }])
  const raw = await (
    await server.call(`/v1/tools/${encodeURIComponent('o/ö')}/${encodeURIComponent(name)}`, { key: secret })
  ).text()
  expect(raw).toContain('"x-cost":12345678901234567890.10,"title":null')
  expect((JSON.parse(raw) as History).versions.length).toBe(1)
})

test('a push is all or nothing, and its error names each invalid field', async () => {
  const good = { name: 'good' }
  const cases: [unknown, string, string][] = [
    [{ siteId: 'n' }, 'tools', 'required'],
    [{ tools: [] }, 'siteId', 'required'],
    [{ siteId: '', tools: [] }, 'siteId', 'wrong_format'],
    [{ siteId: 'n', tools: {} }, 'tools', 'wrong_type'],
    [{ siteId: 'n', tools: [good, { name: '' }] }, 'tools.1.name', 'wrong_format'],
    [{ siteId: 'n', tools: [good, {}] }, 'tools.1.name', 'required'],
    [{ siteId: 'n', tools: [good, { name: 'x'.repeat(129) }] }, 'tools.1.name', 'too_long'],
    [{ siteId: 'n', tools: [good, { name: 'x', tokens: -1 }] }, 'tools.1.tokens', 'wrong_format'],
    [{ siteId: 'n', tools: [good, { name: 'x', tokens: 1.5 }] }, 'tools.1.tokens', 'wrong_type'],
    [{ siteId: 'n', tools: [good, { name: 'x', enabled: 'yes' }] }, 'tools.1.enabled', 'wrong_type'],
    [{ siteId: 'n', tools: [good, { name: 'x', inputSchema: [] }] }, 'tools.1.inputSchema', 'wrong_type'],
    [{ siteId: 'n', tools: [good, { name: 'x', note: 'y'.repeat(65_536) }] }, 'tools.1', 'too_large'],
    [{ siteId: 'n', tools: [good, { name: 'a\u0000b' }] }, 'tools', 'wrong_format'],
    [{ siteId: 'n', tools: Array(1_001).fill(good) }, 'tools', 'too_many'],
    [[], '', 'wrong_type'],
    ['{"siteId":"n","tools":' + '['.repeat(200_000) + ']'.repeat(200_000) + '}', '', 'too_deep'],
  ]
  for (const [body, path, code] of cases) {
    const response = await push(body)
    const answer = (await response.json()) as { error: string; issues: { path: string; code: string }[] }
    expect([path, response.status, answer.error, answer.issues[0]?.path, answer.issues[0]?.code]).toEqual([
      path,
      400,
      'invalid_body',
      path,
      code,
    ])
  }
  expect(await toolsOf('n')).toEqual([])
  expect((await push('{"siteId"')).status).toBe(400)
  expect((await push({ siteId: 'n', tools: [] }, '?mode=merge')).status).toBe(400)
  expect((await push({ siteId: 'n', tools: [] }, '?x=1')).status).toBe(400)
  expect((await push({ siteId: 'n', tools: [], pad: 'x'.repeat(8 * 1024 * 1024) })).status).toBe(413)
  const form = await server.call('/v1/sdk/tools', {
    key: ingest,
    body: 'a=b',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  })
  expect(form.status).toBe(415)
})

test('a key limited to sites pushes nothing elsewhere', async () => {
  const limited = await server.key('ingest', { siteIds: ['mine'] })
  expect((await push({ siteId: 'mine', tools: [{ name: 'a' }] }, '', limited)).status).toBe(202)
  for (const response of [
    await push({ siteId: 'other', tools: [{ name: 'a' }] }, '', limited),
    await pushMemory({ siteId: 'other', snapshot: {} }, limited),
  ]) {
    const body = (await response.json()) as { error: string; reason: string }
    expect([response.status, body.error, body.reason]).toEqual([403, 'forbidden', 'wrong_site'])
  }
})

test('a restricted site accepts pushes only from keys that name it', async () => {
  const owner = await person(server, server.org, 'owner')
  await owner.post('/api/sites', { siteId: 'vault', restricted: true })
  const siteKey = await server.key('ingest', { siteIds: ['vault'] })
  const pushBoth = async (key: string) => [
    (await push({ siteId: 'vault', tools: [] }, '', key)).status,
    (await pushMemory({ siteId: 'vault', snapshot: {} }, key)).status,
  ]
  expect([await pushBoth(ingest), await pushBoth(siteKey)]).toEqual([
    [403, 403],
    [202, 202],
  ])
})

interface Memory {
  siteId: string
  version: number
  score: number
  scoreComputed: boolean
  snapshot: unknown
}

test('memory: the score is as sent or computed, and only a change makes a version', async () => {
  const snapshot = {
    siteMap: { pages: [{ path: '/' }], navigation: {} },
    policies: { refunds: 'none' },
    workflows: [],
    uiGuidance: ' ',
    pageContexts: { '/': 'home' },
    extra: 1e2,
  }
  for (let round = 0; round < 2; round++) {
    const response = await pushMemory({ siteId: 'm', snapshot })
    expect([response.status, await response.json()]).toEqual([202, { ok: true, siteId: 'm' }])
  }
  const first = await read<{ memory: Memory; versions: Memory[] }>('/v1/memory/m')
  expect(first.memory).toMatchObject({ version: 1, score: 50, scoreComputed: true, snapshot })
  expect(first.versions.length).toBe(1)
  await pushMemory({ siteId: 'm', snapshot, score: 87.5 })
  await pushMemory({
    siteId: 'm',
    snapshot: { ...snapshot, policies: { refunds: ['30 days'] } },
    score: 87.5,
  })
  const last = await read<{ memory: Memory; versions: Memory[] }>('/v1/memory/m')
  expect(last.versions.map((version) => [version.version, version.score, version.scoreComputed])).toEqual([
    [3, 87.5, false],
    [2, 87.5, false],
    [1, 50, true],
  ])
  expect(await read<unknown>('/v1/memory/m/versions/3')).toMatchObject({
    differences: [{ path: '/policies/refunds', change: 'changed', before: 'none', after: ['30 days'] }],
  })
  expect(await read<unknown>('/v1/memory/m/versions/1')).toMatchObject({
    memory: { score: 50 },
    differences: [],
  })
  for (const path of [
    '/v1/memory/nobody',
    '/v1/memory/m/versions/4',
    '/v1/memory/m/versions/x',
    '/v1/tools/m/x',
  ])
    expect([path, (await server.call(path, { key: secret })).status]).toEqual([path, 404])
})

test('memory: invalid pushes are rejected', async () => {
  const cases: [unknown, string, string][] = [
    [{ siteId: 'm' }, 'snapshot', 'required'],
    [{ siteId: 'm', snapshot: [] }, 'snapshot', 'wrong_type'],
    [{ siteId: 'm', snapshot: null }, 'snapshot', 'wrong_type'],
    [{ siteId: 'm', snapshot: {}, score: 101 }, 'score', 'wrong_format'],
    [{ siteId: 'm', snapshot: {}, score: -1 }, 'score', 'wrong_format'],
    [{ siteId: 'm', snapshot: {}, score: '9' }, 'score', 'wrong_type'],
    [{ siteId: 'm', snapshot: { a: '\ud800' } }, 'snapshot', 'wrong_format'],
    [{ siteId: 7, snapshot: {} }, 'siteId', 'wrong_type'],
  ]
  for (const [body, path, code] of cases) {
    const response = await pushMemory(body)
    const answer = (await response.json()) as { issues: { path: string; code: string }[] }
    expect([path, response.status, answer.issues[0]?.path, answer.issues[0]?.code]).toEqual([
      path,
      400,
      path,
      code,
    ])
  }
})

test('memory pages by site, and a cursor belongs to its own list and filter', async () => {
  for (const siteId of ['p1', 'p2', 'p3']) await pushMemory({ siteId, snapshot: { siteId } })
  const page = await read<{ memory: Memory[]; nextCursor: string }>(
    '/v1/memory?limit=2&siteId=p1&siteId=p2&siteId=p3',
  )
  expect(page.memory.map((memoryRow) => memoryRow.siteId)).toEqual(['p1', 'p2'])
  const nextPage = await read<{ memory: Memory[]; nextCursor: null }>(`/v1/memory?cursor=${page.nextCursor}`)
  expect([nextPage.memory.map((memoryRow) => memoryRow.siteId), nextPage.nextCursor]).toEqual([['p3'], null])
  for (const path of [
    `/v1/memory?cursor=${page.nextCursor}&siteId=p1`,
    `/v1/tools?cursor=${page.nextCursor}`,
    '/v1/memory?limit=0',
    '/v1/tools?removed=perhaps',
  ])
    expect([path, (await server.call(path, { key: secret })).status]).toEqual([path, 400])
})

test('the tools of a site are limited; a push beyond the limit stores nothing', async () => {
  for (let offset = 0; offset < limits.toolsPerSiteMax; offset += 1_000) {
    const tools = Array.from({ length: 1_000 }, (_, n) => ({ name: `t${offset + n}` }))
    expect((await push({ siteId: 'many', tools })).status).toBe(202)
  }
  const overResponse = await push({
    siteId: 'many',
    tools: [{ name: 't1', title: 'new' }, { name: 'one too many' }],
  })
  expect([
    overResponse.status,
    ((await overResponse.json()) as { issues: { code: string }[] }).issues[0]?.code,
  ]).toEqual([400, 'too_many'])
  expect((await history('many', 't1')).versions.length).toBe(1)
})

test('only a secret key reads; an ingest key only writes', async () => {
  for (const path of [
    '/v1/tools',
    '/v1/tools/v/a',
    '/v1/memory',
    '/v1/memory/m',
    '/v1/memory/m/versions/1',
  ]) {
    expect([path, (await server.call(path, { key: ingest })).status]).toEqual([path, 403])
    expect([path, (await server.call(path)).status]).toEqual([path, 401])
    const metricsOnly = await server.key('secret', { scopes: ['metrics:read'] })
    expect([path, (await server.call(path, { key: metricsOnly })).status]).toEqual([path, 403])
  }
  expect((await push({ siteId: 'v', tools: [] }, '', secret)).status).toBe(403)
  expect((await pushMemory({ siteId: 'v', snapshot: {} }, secret)).status).toBe(403)
})
