/** Settings → keys over HTTP: shown once, valid at once, revoked at once, never stored in clear. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { newId } from '../../server/ids.ts'
import { event } from '../support/events.ts'
import { testServer, type TestServer } from '../support/server.ts'

let server: TestServer
let cookie: string

interface KeyView {
  id: string
  kind: string
  label: string
  prefix: string
  lastUsedAt: string | null
  revokedAt: string | null
}

beforeAll(async () => {
  server = await testServer()
  cookie = await server.signIn('admin')
})
afterAll(() => server[Symbol.asyncDispose]())

const api = (path: string, body?: unknown) => server.call(path, { headers: { cookie }, body })
const send = (key: string, id: string) =>
  server.call('/v1/sdk/events', { key, body: { events: [event(id)] } })

test('a key works from creation to revocation, and each leaves one audit row', async () => {
  const created = await api('/api/keys', { kind: 'ingest', label: '  shop backend  ' })
  const { key, secret } = (await created.json()) as { key: KeyView; secret: string }
  expect(created.status).toBe(201)
  expect(secret).toMatch(/^agtx_ik_[A-Za-z0-9_-]{32}$/)
  expect(key).toMatchObject({
    kind: 'ingest',
    label: 'shop backend',
    prefix: secret.slice(0, 16),
    revokedAt: null,
  })
  expect(JSON.stringify(key)).not.toContain(secret)
  expect((await send(secret, 'k1')).status).toBe(202)
  const revoked = await api(`/api/keys/${key.id}/revoke`, {})
  expect([revoked.status, ((await revoked.json()) as { key: KeyView }).key.revokedAt]).toEqual([
    200,
    expect.any(String),
  ])
  const refused = await send(secret, 'k2')
  expect([refused.status, ((await refused.json()) as { reason: string }).reason]).toEqual([
    401,
    'revoked_key',
  ])
  expect((await api(`/api/keys/${key.id}/revoke`, {})).status).toBe(200)
  const { entries } = await server.store.audit.list({ orgId: server.org.id, limit: 100, beforeSeq: null })
  const keyActions = entries.filter((entry) => entry.target === key.id).map((entry) => entry.action)
  expect(keyActions).toEqual(['ingest_key.revoked', 'ingest_key.created'])
  expect(entries[0]!.actor).toStartWith('user:')
})

test('lists by kind, with the newest use', async () => {
  for (const kind of ['secret', 'publishable']) {
    const { secret } = (await (await api('/api/keys', { kind, label: kind })).json()) as { secret: string }
    expect(secret).toStartWith(kind === 'secret' ? 'agtx_sk_' : 'agtx_pk_')
    const { keys } = (await (await api(`/api/keys?kind=${kind}`)).json()) as { keys: KeyView[] }
    expect(keys.map((key) => [key.kind, key.label])).toEqual([[kind, kind]])
  }
})

test('invalid fields are named', async () => {
  const cases: [unknown, string][] = [
    [{ kind: 'root', label: 'x' }, 'kind'],
    [{ label: 'x' }, 'kind'],
    [{ kind: 'ingest' }, 'label'],
    [{ kind: 'ingest', label: '   ' }, 'label'],
    [{ kind: 'ingest', label: 'x'.repeat(81) }, 'label'],
    [{ kind: 'ingest', label: 'a\nb' }, 'label'],
  ]
  for (const [body, path] of cases) {
    const response = await api('/api/keys', body)
    const answer = (await response.json()) as { issues: { path: string }[] }
    expect([response.status, answer.issues[0]?.path]).toEqual([400, path])
  }
  expect((await api('/api/keys', { kind: 'ingest', label: '𝒳'.repeat(80) })).status).toBe(201)
  expect((await api('/api/keys?kind=root')).status).toBe(400)
  expect((await api('/api/keys/key_nobody/revoke', {})).status).toBe(404)
})

test('a key of another organization answers like an unknown one', async () => {
  const org = { id: newId('org'), slug: 'other', name: 'Other', createdAtMs: 0 }
  const audit = {
    id: newId('aud'),
    orgId: org.id,
    actor: 'cli',
    action: 'org.created',
    target: org.id,
    metadata: {},
    occurredAtMs: 0,
  }
  await server.store.orgs.create({ org, audit })
  await server.key('ingest', { label: 'mine' })
  const ownKey = (await server.store.keys.list({ orgId: server.org.id })).find((key) => key.label === 'mine')!
  await server.store.keys.create({
    key: { ...ownKey, id: newId('key'), orgId: org.id, hash: 'f'.repeat(64) },
    audit: { ...audit, id: newId('aud') },
  })
  const foreign = (await server.store.keys.list({ orgId: org.id }))[0]!
  const absent = await api('/api/keys/key_nobody/revoke', {})
  const other = await api(`/api/keys/${foreign.id}/revoke`, {})
  const text = async (response: Response) => (await response.text()).replace(/"req_[^"]+"/, '')
  expect([other.status, await text(other)]).toEqual([absent.status, await text(absent)])
  expect((await server.store.keys.list({ orgId: org.id }))[0]!.revokedAtMs).toBeNull()
})

test('no file of the data folder has a key or password in clear', async () => {
  const secret = await server.key('secret', { label: 'canary' })
  await server.call('/v1/traces', { key: secret })
  const folder = server.dataDir
  for (const name of readdirSync(folder)) {
    if (name === 'control.sock') continue
    const bytes = readFileSync(join(folder, name))
    expect([name, bytes.includes(secret.slice(16))]).toEqual([name, false])
    expect([name, bytes.includes('an open window')]).toEqual([name, false])
  }
})
