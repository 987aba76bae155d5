/** Restricted sites, and the settings, changes and rotation of keys in use, over HTTP. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { auditCount, makeOrg, person, type Person } from '../support/people.ts'
import { testServer, type TestServer } from '../support/server.ts'

let server: TestServer
let owner: Person
beforeAll(async () => {
  server = await testServer()
  owner = await person(server, server.org, 'owner')
}, 90_000)
afterAll(() => server[Symbol.asyncDispose]())

interface Told {
  error?: string
  reason?: string
  issues?: { path: string }[]
}

async function errorOf(answer: Response): Promise<[number, string | undefined, string | undefined]> {
  const { error, reason, issues } = (await answer.json()) as Told
  return [answer.status, error, reason ?? issues?.[0]?.path]
}

test('a restricted site accepts only keys that name it', async () => {
  const org = server.org
  await owner.post('/api/sites', { siteId: 'vault', name: 'The vault', restricted: true })
  const open = await server.key('ingest')
  const siteKey = await server.key('ingest', { siteIds: ['vault'] })
  const event = (siteId: string, id: string) => ({
    id,
    siteId,
    sessionId: 's',
    occurredAt: '2026-06-23T12:00:00Z',
    type: 'agent.detected',
    outcome: 'success',
  })
  const send = (key: string, ...events: unknown[]) => server.call('/v1/sdk/events', { key, body: { events } })
  const mixed = await send(open, event('vault', 'v1'), event('shop', 'v2'))
  expect(await mixed.json()).toMatchObject({
    ok: false,
    accepted: 1,
    rejected: 1,
    errors: [{ code: 'wrong_site', index: 0 }],
  })
  expect(await errorOf(await send(open, event('vault', 'v3')))).toEqual([403, 'forbidden', 'wrong_site'])
  expect(await (await send(siteKey, event('vault', 'v4'))).json()).toEqual({
    ok: true,
    accepted: 1,
    deduped: 0,
  })
  await owner.post('/api/sites', { siteId: 'vault', restricted: false, hidden: true })
  expect((await send(open, event('vault', 'v5'))).status).toBe(202)
  const { sites } = (await (await owner.call('/api/sites')).json()) as { sites: unknown[] }
  expect(sites).toEqual([
    { siteId: 'shop', name: null, hidden: false, restricted: false, hosts: [], seen: true },
    { siteId: 'vault', name: 'The vault', hidden: true, restricted: false, hosts: [], seen: true },
  ])
  expect(await server.store.sites.restricted(org.id)).toEqual(new Set())
})

test('keys: settings that fit their kind, changes in use, rotation with overlap, one audit row each', async () => {
  const make = (body: unknown) => owner.post('/api/keys', body)
  for (const [body, path] of [
    [{ kind: 'ingest', label: 'x', scopes: ['traces:read'] }, 'scopes'],
    [{ kind: 'secret', label: 'x', scopes: ['everything'] }, 'scopes'],
    [{ kind: 'secret', label: 'x', siteIds: ['a'] }, 'siteIds'],
    [{ kind: 'secret', label: 'x', behindProxy: true }, 'behindProxy'],
    [{ kind: 'ingest', label: 'x', expiresAt: '2020-01-01T00:00:00Z' }, 'expiresAt'],
    [{ kind: 'ingest', label: 'x', hash: 'a'.repeat(64) }, 'hash'],
  ] as const)
    expect(await errorOf(await make(body))).toEqual([400, 'invalid_body', path])
  const keyResponse = await make({ kind: 'secret', label: 'export', scopes: ['traces:read'] })
  const { key, secret } = (await keyResponse.json()) as { key: { id: string }; secret: string }
  const reads = async (token: string) => (await server.call('/v1/traces?limit=1', { key: token })).status
  const metrics = async (token: string) =>
    (await server.call('/v1/audit/export', { key: token, body: { until: '2000-01-01' } })).status
  expect([await reads(secret), await metrics(secret)]).toEqual([200, 403])
  const countBefore = await auditCount(server)
  expect(
    (await owner.post(`/api/keys/${key.id}/change`, { scopes: ['audit:read'], label: 'auditor' })).status,
  ).toBe(200)
  expect(await auditCount(server)).toBe(countBefore + 1)
  expect([await reads(secret), await metrics(secret)]).toEqual([403, 200])
  expect(await errorOf(await owner.post(`/api/keys/${key.id}/rotate`, { overlapHours: -1 }))).toEqual([
    400,
    'invalid_body',
    'overlapHours',
  ])
  const rotated = (await (await owner.post(`/api/keys/${key.id}/rotate`, { overlapHours: 1 })).json()) as {
    key: { label: string; scopes: string[] }
    secret: string
  }
  expect(rotated.key).toMatchObject({ label: 'auditor', scopes: ['audit:read'], expiresAt: null })
  expect([await metrics(secret), await metrics(rotated.secret)]).toEqual([200, 200])
  server.clock.move(3_600_001)
  expect([await metrics(secret), await metrics(rotated.secret)]).toEqual([401, 200])
  const foreign = await makeOrg(server, 'foreign-keys')
  const stranger = await person(server, foreign, 'owner')
  for (const act of ['change', 'rotate', 'revoke'])
    expect(
      (await stranger.post(`/api/keys/${key.id}/${act}`, act === 'rotate' ? { overlapHours: 0 } : {})).status,
    ).toBe(404)
})

test('the expiry of a key in use can be set, moved and removed; the audit row has both values', async () => {
  const keyResponse = await owner.post('/api/keys', { kind: 'publishable', label: 'page' })
  const { id } = ((await keyResponse.json()) as { key: { id: string } }).key
  const change = async (body: unknown) => {
    const answer = await owner.post(`/api/keys/${id}/change`, body)
    return answer.ok
      ? ((await answer.json()) as { key: { expiresAt: string | null } }).key.expiresAt
      : await errorOf(answer)
  }
  const first = '2096-01-31T23:59:59.000Z'
  const second = '2097-02-28T00:00:00.000Z'
  expect(await change({ expiresAt: first })).toBe(first)
  expect(await change({ label: 'the page' })).toBe(first) // omitted: unchanged
  expect(await change({ expiresAt: second })).toBe(second)
  expect(await change({ expiresAt: null })).toBeNull()
  for (const expiresAt of ['2020-01-01T00:00:00Z', 'tomorrow', 7, ''])
    expect(await change({ expiresAt })).toEqual([400, 'invalid_body', 'expiresAt'])
  const { entries } = await server.store.audit.list({ orgId: server.org.id, limit: 4, beforeSeq: null })
  expect(entries.map(({ action, target }) => [action, target])).toEqual(
    Array.from({ length: 4 }, () => ['publishable_key.changed', id]),
  )
  const terms = { label: 'the page', scopes: [], siteIds: [], behindProxy: false }
  expect(entries[0]!.metadata).toEqual({
    actorLabel: owner.email,
    address: '127.0.0.1',
    before: { ...terms, expiresAt: second },
    after: { ...terms, expiresAt: null },
  })
})
