/** The OpenAPI document is valid and names every route; each operation answers as documented, errors too. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { Validator } from '@seriousme/openapi-schema-validator'
import { createApp } from '../../server/app.ts'
import type { Issue } from '../../server/errors.ts'
import { checkSchema, type Schema } from '../../server/http/validate.ts'
import { mintKey } from '../../server/identity/keys/keys.ts'
import type { Services } from '../../server/services.ts'
import { testServer, type TestServer } from '../support/server.ts'
import { makeAudit } from '../store/make.ts'
import { openFiring } from '../store/webhook-make.ts'

interface Parameter {
  name: string
  in: 'path' | 'query'
  schema: Schema & { items?: Schema; default?: unknown }
  required?: boolean
  example?: string | string[]
}
interface Content {
  [type: string]: { schema: Schema; example?: unknown }
}
interface Operation {
  operationId: string
  tags: string[]
  security: { [scheme: string]: string[] }[]
  'x-scope'?: string
  parameters?: Parameter[]
  requestBody?: { required: boolean; content: Content }
  responses: { [status: string]: { content: Content } }
}
interface Document {
  paths: { [path: string]: { [method: string]: Operation } }
  components: { schemas: { [name: string]: Schema } & { Error: Schema } }
}
interface Call extends Operation {
  method: string
  path: string
}

let server: TestServer
let written: Document // as it is sent
let api: Document // with references replaced by their schemas
let calls: Call[]
let usual: Call[] // with errors in the common form; otlp.test.ts and mcp.test.ts cover the others
let keys: { ingest: string; secret: string }

beforeAll(async () => {
  const never = {
    cron: '0 0 29 2 *',
    backoffMs: [1, 1, 1],
    allow: [],
    sinkDir: null,
    caFile: null,
    proxy: null,
  }
  server = await testServer({ webhooks: never }) // nothing is sent anywhere
  keys = { ingest: await server.key('ingest'), secret: await server.key('secret') }
  written = (await (await server.call('/openapi.json')).json()) as Document
  api = resolved(written, written.components.schemas)
  calls = Object.entries(api.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      ...operation,
      method: method.toUpperCase(),
      path,
    })),
  )
  usual = calls.filter(({ tags }) => !tags.includes('OpenTelemetry') && !tags.includes('Assistants'))
})
afterAll(() => server[Symbol.asyncDispose]())

const keyKind = ({ security }: Call) => Object.keys(security[0] ?? {})[0] as 'ingest' | 'secret' | undefined
const keyFor = (call: Call) => keys[keyKind(call) ?? 'secret']
const bodyOf = ({ requestBody }: Call) => requestBody?.content['application/json']
const textOf = ({ requestBody }: Call) => requestBody?.content['text/plain']
const typeOf = (call: Call) => (textOf(call) === undefined ? 'application/json' : 'text/plain')
const statusOf = ({ responses }: Call) => Number(Object.keys(responses).find((status) => status < '300'))

/** Ids that earlier calls created; they replace those of the examples. */
const createdValues: { [example: string]: string } = {}
const real = (text: string) => createdValues[text] ?? text

function address({ path, parameters = [] }: Call, query: [string, string][] = []): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const example = parameters.find(
      (parameter) => parameter.in === 'path' && parameter.name === name,
    )?.example
    return encodeURIComponent(real(String(example)))
  })
  const required = parameters.filter((parameter) => parameter.required && parameter.in === 'query')
  const missing = required.filter(({ name }) => !query.some(([queryName]) => queryName === name))
  const whole = [...missing.map(({ name, example }): [string, string] => [name, String(example)]), ...query]
  return whole.length === 0 ? filled : `${filled}?${new URLSearchParams(whole)}`
}

async function send(call: Call, { query, key, body, headers }: Sending = {}): Promise<Response> {
  const payload = body === undefined ? (bodyOf(call) ?? textOf(call))?.example : body
  return server.call(address(call, query), {
    method: call.method,
    ...(key === null ? {} : { key: key ?? keyFor(call) }),
    ...(payload === undefined ? {} : { body: typeof payload === 'string' ? payload : withReal(payload) }),
    headers: { ...(payload === undefined ? {} : { 'content-type': typeOf(call) }), ...headers },
  })
}
interface Sending {
  query?: [string, string][]
  key?: string | null
  body?: unknown
  headers?: Record<string, string>
}
const withReal = (body: unknown): unknown =>
  JSON.parse(JSON.stringify(body), (_, value: unknown) => (typeof value === 'string' ? real(value) : value))

function issuesOf(schema: Schema, value: unknown): Issue[] {
  const issues: Issue[] = []
  checkSchema(schema, value, issues)
  return issues
}

/** An error must be one that the document lists for this operation, in the common shape. */
async function expectError(call: Call, response: Response, status: number, codes: string[]): Promise<void> {
  const body = (await response.json()) as { error: string }
  const description = `${call.operationId}: ${JSON.stringify(body).slice(0, 300)}`
  expect([description, response.status, codes.includes(body.error)]).toEqual([description, status, true])
  expect([description, Object.keys(call.responses).includes(String(status))]).toEqual([description, true])
  expect([description, issuesOf(api.components.schemas.Error, body)]).toEqual([description, []])
  expect(response.headers.get('x-request-id')).toStartWith('req_')
}

test('the document is valid OpenAPI 3.1', async () => {
  const { valid, errors } = await new Validator().validate(JSON.parse(JSON.stringify(written)))
  expect([valid, errors]).toEqual([true, undefined])
  expect(JSON.stringify(written).startsWith('{"openapi":"3.1.0"')).toBe(true)
})

test('it names the schemas that clients generate types from, and operations refer to them', () => {
  const names = ['Event', 'Session', 'Tool', 'Delivery', 'Endpoint', 'AuditEntry']
  expect(Object.keys(written.components.schemas)).toEqual(expect.arrayContaining(names))
  const references = JSON.stringify(written.paths).match(/#\/components\/schemas\/\w+/g) ?? []
  for (const name of names) expect(references).toContain(`#/components/schemas/${name}`)
  // No named schema is repeated inline.
  for (const name of Object.keys(written.components.schemas)) {
    const whole = JSON.stringify(written.components.schemas[name])
    expect([name, JSON.stringify(written.paths).includes(whole)]).toEqual([name, false])
  }
})

/** The document with each reference replaced by its schema, as a client's generator reads it. */
function resolved<V>(value: V, schemas: Document['components']['schemas']): V {
  return JSON.parse(JSON.stringify(value), (_, inner: { $ref?: string } | null) => {
    const name = inner?.$ref?.replace('#/components/schemas/', '')
    if (name === undefined) return inner as unknown
    expect(Object.keys(schemas)).toContain(name)
    return resolved(schemas[name], schemas)
  }) as V
}

test('it names exactly the routes of the public API', () => {
  const anyProxy: unknown = new Proxy(() => anyProxy, { get: () => anyProxy, apply: () => anyProxy })
  const routes = createApp(anyProxy as Services)
    .routes.filter(({ path }) => /^\/(v1\/|mcp$|healthz|readyz)/.test(path))
    .map(({ method, path }) => `${method} ${path}`)
  const routeNames = calls.map(({ method, path }) => `${method} ${path.replace(/\{(\w+)\}/g, ':$1')}`)
  expect(routeNames.toSorted()).toEqual(routes.toSorted())
})

describe('every operation', () => {
  test('answers its example with the documented status and schema; example responses fit the schemas too', async () => {
    const order = ({ method, operationId }: Call) =>
      method === 'GET' ? 2 : operationId === 'replayDelivery' ? 3 : 1
    const otherCalls = calls.filter(({ method }) => method !== 'DELETE')
    for (const call of otherCalls.toSorted((a, b) => order(a) - order(b))) await expectExample(call)
  })

  test('rejects invalid query parameters by name', async () => {
    for (const call of usual) {
      if (ignoresQuery.has(call.path)) continue
      await expectWrongQuery(call, [['nosuchparameter', '1']], 'nosuchparameter')
      for (const parameter of (call.parameters ?? []).filter((candidate) => candidate.in === 'query')) {
        const { name, schema } = parameter
        const since: [string, string][] = name === 'q' ? [['since', '2026-01-01']] : []
        // An empty value is an absent one, except in lists.
        const values = wrongValues(name, schema.items ?? schema)
        for (const value of values.filter((candidate) => candidate !== '' || schema.items !== undefined))
          await expectWrongQuery(call, [...since, [name, value]], name)
        const right = String(parameter.example ?? 'true')
        if (schema.items === undefined)
          await expectWrongQuery(call, [...since, [name, right], [name, right]], name)
      }
    }
  })

  test('rejects invalid bodies, types and sizes', async () => {
    for (const call of usual.filter((candidate) => candidate.requestBody !== undefined)) {
      const check = async (sending: Sending, status: number, ...codes: string[]) =>
        expectError(call, await send(call, sending), status, codes)
      await check({ headers: { 'content-type': 'text/html' } }, 415, 'unsupported_media_type')
      await check({ headers: { 'content-encoding': 'rot13' } }, 415, 'unsupported_encoding')
      await check({ body: JSON.stringify({ pad: 'x'.repeat(9 * 1024 * 1024) }) }, 413, 'payload_too_large')
      if (textOf(call) !== undefined) continue
      const { schema, example } = bodyOf(call)!
      await check({ body: '{' }, 400, 'invalid_json')
      await check({ body: '[1]' }, 400, 'invalid_body')
      await check({ body: '"text"' }, 400, 'invalid_body')
      await check({ body: `${'['.repeat(50_000)}` }, 400, 'invalid_json', 'invalid_body')
      if (call.requestBody!.required) await check({ body: '' }, 400, 'invalid_json')
      for (const [name, member] of Object.entries(schema.properties ?? {})) {
        // An observation that cannot be used never loses its events.
        if (name === 'observed') continue
        for (const value of wrongMembers(member)) {
          if (issuesOf(member, value).length === 0) continue
          await check({ body: { ...(withReal(example) as object), [name]: value } }, 400, 'invalid_body')
        }
        if (schema.required?.includes(name)) {
          const { [name]: _, ...otherMembers } = withReal(example) as { [member: string]: unknown }
          await check({ body: otherMembers }, 400, 'invalid_body')
        }
      }
    }
  })

  test('answers 404 for unknown ids, 405 with Allow for other methods', async () => {
    for (const call of calls) {
      const parameters = call.parameters?.map((parameter) =>
        parameter.in === 'path' ? { ...parameter, example: 'nobody' } : parameter,
      )
      if (call.path.includes('{'))
        await expectError(call, await send({ ...call, parameters: parameters ?? [] }), 404, ['not_found'])
      const response = await server.call(address(call), { method: 'PUT', key: keyFor(call) })
      expect([call.path, response.status]).toEqual([call.path, 405])
      expect(response.headers.get('allow')!.split(', ')).toContain(call.method)
    }
  })
})

async function expectExample(call: Call): Promise<void> {
  const examples = (call.parameters ?? []).filter(
    (parameter) => parameter.in === 'query' && parameter.example !== undefined,
  )
  const query = examples.map((parameter): [string, string] => [parameter.name, String(parameter.example)])
  const response = await send(call, { query })
  const text = await response.text()
  const description = `${call.operationId}: ${text.slice(0, 300)}`
  const isPending = call.operationId === 'replayDelivery' // nothing has been sent yet
  expect([description, response.status]).toEqual([description, isPending ? 409 : statusOf(call)])
  if (isPending) return
  const { schema, example } = call.responses[String(response.status)]!.content['application/json']!
  const answer = JSON.parse(text) as unknown
  expect([description, issuesOf(schema, answer)]).toEqual([description, []])
  expect([description, issuesOf(schema, example)]).toEqual([description, []])
  await remember(call, answer)
}

async function remember({ operationId }: Call, answer: unknown): Promise<void> {
  const { deliveryId, endpoint, rule } = answer as {
    deliveryId?: string
    endpoint?: { id: string }
    rule?: { id: string }
  }
  if (operationId === 'testWebhook') createdValues['wh_example'] = deliveryId!
  if (operationId === 'createEndpoint') createdValues['ep_example'] = endpoint!.id
  if (operationId !== 'createRule') return
  createdValues['rul_example'] = rule!.id
  createdValues['inc_example'] = 'inc_opened'
  await openAlert(rule!.id)
}

/** Stores an incident directly, because a rule opens one only in a run. */
async function openAlert(ruleId: string): Promise<void> {
  const { id: orgId } = server.org
  const lane = createdValues['ep_example']!
  const times = { ...openFiring, openedAtMs: server.clock.now() }
  const incident = {
    id: createdValues['inc_example']!,
    orgId,
    ruleId,
    subject: 'v',
    ...times,
    data: { vendor: 'v' },
  }
  const delivery = { id: 'wh_opened', orgId, endpointId: lane, url: 'https://hooks.invalid/', lane }
  await server.store.webhooks.openIncident({
    incident,
    delivery: { ...delivery, body: '{}', scheduledAtMs: 1 },
    once: false,
    audit: makeAudit(orgId),
  })
}

async function expectWrongQuery(call: Call, query: [string, string][], name: string): Promise<void> {
  const response = await send(call, { query })
  const body = (await response.clone().json()) as { issues?: { path: string }[] }
  const description = `${call.operationId} ${JSON.stringify(query).slice(0, 100)}`
  expect([description, response.status, body.issues?.[0]?.path]).toEqual([description, 400, name])
  await expectError(call, response, 400, ['invalid_query'])
}

/** Values that the parameter's schema rejects, and invalid times and cursors, which are strings in the schema. */
/** Supervisors add a time or a name to their address. */
const ignoresQuery = new Set(['/healthz', '/readyz'])

function wrongValues(name: string, schema: Schema): string[] {
  const values = ['x'.repeat(7_000)]
  if (name === 'since' || name === 'until') return ['soon', '2026-02-30', ...values]
  if (name === 'cursor') return ['abc', 'A'.repeat(80), ...values]
  if (schema.type === 'integer') return ['0', '-1', '1.5', 'ten', '', '1e3', ...values]
  if (schema.anyOf !== undefined || schema.const !== undefined) return ['nosuchword', '', ...values]
  if (schema.pattern !== undefined) values.push('NOT THIS', '..')
  if (schema.minLength === 1) values.push('')
  return values
}

/** Values of every other type; the caller omits those that the schema accepts. */
function wrongMembers(_schema: Schema): unknown[] {
  return [true, 7.5, -1, 'x'.repeat(3_000), ['x'.repeat(3_000)], { a: [1] }, [{ a: 1 }]]
}

describe('keys', () => {
  test('every operation x {no key, unknown, wrong kind, wrong scope, expired, revoked, other organization}', async () => {
    const org = { id: 'org_other', slug: 'other', name: 'Other', createdAtMs: 0 }
    const audit = {
      id: 'aud_other',
      orgId: 'org_system',
      actor: 'cli',
      action: 'org.created',
      target: org.id,
    }
    await server.store.orgs.create({ org, audit: { ...audit, metadata: {}, occurredAtMs: 0 } })
    const secretScopes = ['traces:read', 'metrics:read', 'audit:read', 'webhooks:read', 'webhooks:write']
    const soon = () => ({ expiresAtMs: server.clock.now() + 100 })
    const revokedOf = async (kind: 'ingest' | 'secret') => {
      const key = await server.key(kind, { label: 'to revoke' })
      const { id } = (await server.store.keys.list({ orgId: server.org.id })).find(
        (apiKey) => apiKey.prefix === key.slice(0, 16),
      )!
      const entry = { ...audit, id: `aud_${kind}`, orgId: server.org.id, metadata: {}, occurredAtMs: 0 }
      await server.store.keys.revoke({ orgId: server.org.id, keyId: id, now: Date.now(), audit: entry })
      return key
    }
    const bad = {
      ingest: {
        wrongKinds: [keys.secret, await server.key('publishable')],
        expired: await server.key('ingest', soon()),
        revoked: await revokedOf('ingest'),
      },
      secret: {
        wrongKinds: [keys.ingest, await server.key('publishable')],
        expired: await server.key('secret', soon()),
        revoked: await revokedOf('secret'),
      },
    }
    const clock = server.clock
    const request = { orgId: org.id, kind: 'secret', label: 'foreign', actor: 'cli' } as const
    const foreign = (await mintKey(server.store, request, clock)).secret
    server.clock.move(200)
    for (const call of usual) {
      const kind = keyKind(call)
      if (kind === undefined) {
        expect([call.path, (await send(call, { key: null })).status]).toEqual([call.path, 200])
        continue
      }
      const expectReason = async (key: string | null, status: number, reason: string) => {
        const response = await send(call, { key })
        const body = (await response.clone().json()) as { reason?: string }
        expect([call.operationId, reason, body.reason]).toEqual([call.operationId, reason, reason])
        await expectError(call, response, status, ['unauthorized', 'forbidden'])
        if (status === 401) expect(response.headers.get('www-authenticate')).toStartWith('Bearer')
      }
      await expectReason(null, 401, 'missing_bearer')
      await expectReason(`agtx_${kind === 'ingest' ? 'ik' : 'sk'}_${'x'.repeat(32)}`, 401, 'invalid_key')
      await expectReason(bad[kind].expired, 401, 'expired_key')
      await expectReason(bad[kind].revoked, 401, 'revoked_key')
      for (const key of bad[kind].wrongKinds) await expectReason(key, 403, 'wrong_key_kind')
      const scope = call['x-scope']
      if (scope !== undefined) {
        const scopes = secretScopes.filter((otherScope) => otherScope !== scope)
        await expectReason(await server.key('secret', { scopes }), 403, 'wrong_scope')
      }
      if (kind === 'secret' && call.path.includes('{'))
        await expectError(call, await send(call, { key: foreign }), 404, ['not_found'])
    }
  })
})

test('what was created can be deleted, once', async () => {
  for (const operationId of ['deleteRule', 'deleteEndpoint']) {
    const call = calls.find((candidate) => candidate.operationId === operationId)!
    await expectExample(call)
    await expectError(call, await send(call), 404, ['not_found'])
  }
  expect(calls.filter(({ method }) => method === 'DELETE').length).toBe(2)
})
