/** The audit trail over HTTP: exports by key and by session, filters, formulas, other organizations, the proof. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import type { AuditEntry, Org } from '../../db/contract/store.ts'
import { auditEntry } from '../../server/audit/entry.ts'
import type { SignedHead } from '../../db/contract/audit.ts'
import { isSoundHead } from '../../server/audit/signing.ts'
import { makeOrg, person, type Person } from '../support/people.ts'
import { documentedVerifier } from '../support/proof-verifier.ts'
import { testServer, type TestServer } from '../support/server.ts'

let server: TestServer
let otherOrg: Org
let owner: Person

interface Export {
  entries: { id: string; orgId: string; actor: string; action: string; occurredAt: string }[]
  count: number
  head: SignedHead
}

beforeAll(async () => {
  server = await testServer()
  otherOrg = await makeOrg(server, 'other')
  owner = await person(server, server.org, 'owner')
}, 90_000)
afterAll(() => server[Symbol.asyncDispose]())

async function write(orgId: string, action: string, metadata: AuditEntry['metadata'] = {}): Promise<void> {
  const act = { action, target: 'thing_1', metadata }
  await server.store.audit.append(auditEntry({ orgId, actor: 'cli' }, act, server.clock.now()))
}

async function exported(key: string, body: unknown = {}): Promise<Export> {
  const answer = await server.call('/v1/audit/export', { key, body })
  expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/json'])
  return (await answer.json()) as Export
}

test('an export has every row of its organization, its own first, and a signed head', async () => {
  await write(otherOrg.id, 'other.done')
  const key = await server.key('secret')
  const { entries, count, head } = await exported(key)
  expect(count).toBe(entries.length)
  expect(entries[0]).toMatchObject({ action: 'audit.exported', actor: expect.stringMatching(/^key:key_/) })
  expect(new Set(entries.map(({ orgId }) => orgId))).toEqual(new Set([server.org.id]))
  expect([head.count, head.orgId, isSoundHead(head)]).toEqual([count, server.org.id, true])
  expect(isSoundHead({ ...head, count: head.count - 1 })).toBe(false)
  const again = await exported(key)
  expect(again.count).toBe(count + 1)
  expect(again.entries.slice(1)).toEqual(entries)
})

test('an empty body exports everything, filters narrow it, and misspelt fields are named', async () => {
  const key = await server.key('secret', { scopes: ['audit:read'] })
  const plain = await server.call('/v1/audit/export', { method: 'POST', key })
  expect(plain.status).toBe(200)
  const created = await exported(key, { action: ['secret_key.*', 'ingest_key.created'] })
  expect(created.count).toBeGreaterThan(1)
  expect(new Set(created.entries.map(({ action }) => action))).toEqual(new Set(['secret_key.created']))
  expect((await exported(key, { actor: `user:${owner.id}` })).entries.map(({ action }) => action)).toEqual([
    'session.created',
  ])
  expect((await exported(key, { since: '2200-01-01' })).count).toBe(0)
  expect((await exported(key, { until: '2000-01-01T00:00:00Z' })).count).toBe(0)
  const nulls = { format: null, since: null, until: null, actor: null, action: null, raw: null }
  expect((await exported(key, nulls)).count).toBeGreaterThan(created.count)
  for (const [body, path] of [
    [{ format: 'xml' }, 'format'],
    [{ since: 'yesterday' }, 'since'],
    [{ raw: 'yes' }, 'raw'],
    [{ orgId: otherOrg.id }, 'orgId'],
  ] as const) {
    const answer = await server.call('/v1/audit/export', { key, body })
    const problem = (await answer.json()) as { error: string; issues: { path: string }[] }
    expect([answer.status, problem.error, problem.issues[0]?.path]).toEqual([400, 'invalid_body', path])
  }
})

test('CSV has the documented columns and escapes formulas unless raw', async () => {
  const key = await server.key('secret')
  await server.key('ingest', { label: '=HYPERLINK("http://evil.example")' })
  const answer = await server.call('/v1/audit/export', { key, body: { format: 'csv' } })
  expect(answer.headers.get('content-type')).toBe('text/csv; charset=utf-8')
  expect(answer.headers.get('content-disposition')).toBe(`attachment; filename="audit-${server.org.id}.csv"`)
  expect(answer.headers.get('x-csv-formula-guard')).toBe('on')
  const lines = (await answer.text()).split('\n')
  expect(lines[0]).toBe('id,orgId,actor,action,target,metadata,occurredAt')
  expect(lines[1]).toContain(',audit.exported,')
  const now = server.clock.now()
  const act = { action: '=cmd()', target: '@SUM(A1)', metadata: {} }
  await server.store.audit.append(auditEntry({ orgId: server.org.id, actor: '+1' }, act, now))
  const guarded = await server.call('/v1/audit/export', { key, body: { format: 'csv', action: '=cmd()' } })
  expect((await guarded.text()).split('\n')[1]).toContain(`,'+1,'=cmd(),'@SUM(A1),{},`)
  const raw = await server.call('/v1/audit/export', {
    key,
    body: { format: 'csv', action: '=cmd()', raw: true },
  })
  expect(raw.headers.get('x-csv-formula-guard')).toBe('off')
  expect((await raw.text()).split('\n')[1]).toContain(',+1,=cmd(),@SUM(A1),{},')
})

test('only a secret key with the scope exports, and a rejected export leaves no row', async () => {
  const countBefore = (await server.store.audit.heads())[server.org.id]?.count
  const wrong = await server.key('secret', { scopes: ['traces:read'] })
  const ingest = await server.key('ingest')
  const reasons: unknown[] = []
  for (const key of [wrong, ingest, undefined]) {
    const answer = await server.call('/v1/audit/export', {
      method: 'POST',
      body: {},
      ...(key ? { key } : {}),
    })
    reasons.push([answer.status, ((await answer.json()) as { reason: string }).reason])
  }
  expect(reasons).toEqual([
    [403, 'wrong_scope'],
    [403, 'wrong_key_kind'],
    [401, 'missing_bearer'],
  ])
  expect((await server.store.audit.heads())[server.org.id]?.count).toBe((countBefore ?? 0) + 2) // the two keys
})

test('more than a page of entries is complete, newest first', async () => {
  await Promise.all(Array.from({ length: 520 }, (_, i) => write(otherOrg.id, 'many.done', { i })))
  const outsider = await person(server, otherOrg, 'analyst')
  const answer = await outsider.post('/api/audit/export', { action: 'many.done' })
  const { entries, count } = (await answer.json()) as {
    entries: { metadata: { i: number } }[]
    count: number
  }
  expect(count).toBe(520)
  expect(entries.map(({ metadata }) => metadata.i)).toEqual(Array.from({ length: 520 }, (_, i) => 519 - i))
}, 90_000)

test('the audit page pages, searches and filters its own organization', async () => {
  const outsider = await person(server, otherOrg, 'owner')
  interface Entry {
    action: string
    actorName: string | null
    targetName: string | null
    address: string | null
  }
  type Page = { entries: Entry[]; nextBefore: number | null }
  const page = async (query: string, reader = outsider) =>
    (await (await reader.call(`/api/audit?${query}`)).json()) as Page
  const first = await page('limit=2')
  expect(first.entries.map(({ action }) => action)).toEqual(['session.created', 'account.created'])
  // Names beside the ids, and the address; the command line has none.
  const { email } = outsider
  const names = first.entries.map(({ actorName, targetName, address }) => [actorName, targetName, address])
  expect(names).toEqual([
    [email, email, '127.0.0.1'],
    ['Command line', email, null],
  ])
  expect(first.nextBefore).toBeGreaterThan(1)
  const matches = await page('q=%22i%22%3A77%7D')
  expect(matches.entries.length).toBe(1)
  expect((await page('q=100%25')).entries).toEqual([]) // a sign of SQL's pattern is itself only
  expect((await page(`q=${otherOrg.id}`, owner)).entries).toEqual([])
  for (const wrong of ['limit=0', 'before=x', 'org=1', 'since=never'])
    expect((await outsider.call(`/api/audit?${wrong}`)).status).toBe(400)
})

test('a proof passes the documented verifier, which finds every kind of tampering', async () => {
  const key = await server.key('secret')
  const { head } = await exported(key)
  const rows = await server.store.audit.rows({ orgId: server.org.id, afterSeq: 0, limit: head.count })
  const lines = [{ format: 'sightglass-audit-proof-1', head }, ...rows]
  const text = (lineValues: unknown[]) => `${lineValues.map((line) => JSON.stringify(line)).join('\n')}\n`
  expect(await documentedVerifier(text(lines), head.key)).toStartWith(`sound: ${head.count} entries of`)
  const edited = lines.with(3, { ...rows[2]!, actor: 'user:usr_somebody' })
  expect(await documentedVerifier(text(edited))).toContain('entry 3')
  const rehashed = { ...rows[2]!, actor: 'user:usr_somebody' }
  const { prevHash, position, id, orgId, actor, action, target, metadata, occurredAt } = rehashed
  const fields = [
    'sightglass-audit-1',
    prevHash,
    position,
    id,
    orgId,
    actor,
    action,
    target,
    metadata,
    occurredAt,
  ]
  rehashed.hash = createHash('sha256').update(JSON.stringify(fields)).digest('hex')
  expect(await documentedVerifier(text(lines.with(3, rehashed)))).toContain('entry 4')
  expect(await documentedVerifier(text(lines.toSpliced(2, 1)))).toContain('not at its position')
  expect(await documentedVerifier(text(lines.slice(0, -1)))).toContain('not the signed one')
  const forged = { ...head, count: head.count - 1, hash: rows.at(-2)!.hash }
  expect(await documentedVerifier(text([{ ...lines[0], head: forged }, ...rows.slice(0, -1)]))).toContain(
    'signature',
  )
  expect(await documentedVerifier(text(lines), 'A'.repeat(43))).toContain('another key')
}, 90_000)
