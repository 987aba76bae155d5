/** Hostile input around people and keys: mass assignment, fixed and replayed sessions, used links, odd names. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { newToken } from '../../server/ids.ts'
import { auditCount, caller, cookieOf, makeOrg, password, person, type Person } from '../support/people.ts'
import { testServer, type TestServer } from '../support/server.ts'

let server: TestServer
let owner: Person
beforeAll(async () => {
  server = await testServer()
  owner = await person(server, server.org, 'owner', { operator: true })
}, 90_000)
afterAll(() => server[Symbol.asyncDispose]())

test('unknown fields are rejected by name, and change nothing', async () => {
  const countBefore = await auditCount(server)
  for (const [path, body, member] of [
    ['/api/orgs', { name: 'x', id: 'org_mine' }, 'id'],
    ['/api/invitations', { email: 'a@example.com', role: 'viewer', operator: true }, 'operator'],
    ['/api/invitations', { email: 'a@example.com', role: 'viewer', orgId: 'org_other' }, 'orgId'],
    ['/api/keys', { kind: 'ingest', label: 'x', orgId: 'org_other' }, 'orgId'],
    ['/api/keys', { kind: 'ingest', label: 'x', revokedAtMs: null }, 'revokedAtMs'],
    ['/api/sites', { siteId: 'a', seen: true }, 'seen'],
    [`/api/people/${owner.id}/role`, { role: 'owner', operator: true }, 'operator'],
    [
      '/api/account/password',
      { current: password, password: 'long enough', accountId: 'usr_x' },
      'accountId',
    ],
    [
      '/api/setup',
      { token: 'x', email: 'a@example.com', password: 'long enough', operator: true },
      'operator',
    ],
    ['/api/org/rename', { name: 'x', slug: 'default' }, 'slug'],
  ] as const) {
    const answer = await owner.post(path, body)
    const { error, issues } = (await answer.json()) as {
      error: string
      issues: { path: string; code: string }[]
    }
    expect([path, answer.status, error]).toEqual([path, 400, 'invalid_body'])
    expect(issues).toContainEqual(expect.objectContaining({ path: member, code: 'unknown' }))
  }
  const proto = await owner.call('/api/keys', {
    method: 'POST',
    body: '{"kind":"ingest","label":"x","__proto__":{"role":"owner"}}',
    headers: { 'content-type': 'application/json' },
  })
  expect(proto.status).toBe(400)
  expect(await auditCount(server)).toBe(countBefore)
})

test('signing in does not adopt a session token that the client sent', async () => {
  const victim = await person(server, server.org, 'viewer')
  const planted = `sightglass=${newToken()}`
  const answer = await server.call('/api/sign-in', {
    body: { email: victim.email, password },
    headers: { cookie: planted },
  })
  expect(answer.status).toBe(200)
  expect(cookieOf(answer)).not.toBe(planted)
  expect((await caller(server, planted).call('/api/session')).status).toBe(401)
})

test('a cookie stops working when its session, its role or its membership ends', async () => {
  const org = await makeOrg(server, 'leaving')
  const boss = await person(server, org, 'owner')
  const ways: ((member: Person) => Promise<unknown>)[] = [
    (member) => member.post('/api/sign-out'),
    (member) => boss.post(`/api/people/${member.id}/role`, { role: 'analyst' }),
    (member) => boss.post(`/api/people/${member.id}/remove`),
  ]
  for (const end of ways) {
    const member = await person(server, org, 'viewer')
    expect((await member.call('/api/events')).status).toBe(200)
    await end(member)
    expect((await member.call('/api/events')).status).toBe(401)
    expect((await member.post('/api/sign-out')).status).toBe(204)
    expect((await member.call('/api/session')).status).toBe(401)
  }
}, 90_000)

test('strange names are returned unchanged; too long or malformed ones are rejected', async () => {
  const strange = [
    '<script>alert(1)</script>',
    'Ωμέγα 🫖',
    '=1+1',
    "Robert'); DROP TABLE org;--",
    'a'.repeat(80),
  ]
  for (const name of strange) {
    const label = await owner.post('/api/keys', { kind: 'ingest', label: name })
    expect(((await label.json()) as { key: { label: string } }).key.label).toBe(name)
    expect((await owner.post('/api/org/rename', { name })).status).toBe(200)
    expect((await owner.post('/api/sites', { siteId: `s-${name}`, name })).status).toBe(200)
    const session = (await (await owner.call('/api/session')).json()) as { org: { name: string } }
    expect(session.org.name).toBe(name)
  }
  const { sites } = (await (await owner.call('/api/sites')).json()) as { sites: { name: string }[] }
  expect(sites.map(({ name }) => name).toSorted()).toEqual(strange.toSorted())
  const refused = ['', '   ', 'a'.repeat(81), 'two\nlines', 'nul\u0000', '\u202Egnp.exe', 'x'.repeat(50_000)]
  for (const name of refused) {
    for (const answer of [
      await owner.post('/api/keys', { kind: 'ingest', label: name }),
      await owner.post('/api/org/rename', { name }),
      await owner.post('/api/invitations', { email: `${name}@example.com`, role: 'viewer' }),
    ]) {
      // An email address may be longer than a name, but not as long as the longest of these.
      if (answer.url.endsWith('invitations') && name === 'a'.repeat(81)) continue
      expect([name.slice(0, 20), answer.url, answer.status]).toEqual([name.slice(0, 20), answer.url, 400])
    }
  }
  expect((await owner.post('/api/sites', { siteId: 'x'.repeat(201) })).status).toBe(400)
  expect((await server.store.audit.verify([])).faults).toEqual([])
})

test('exactly one of many concurrent requests accepts an invitation, and a revoked one admits nobody', async () => {
  const invitationResponse = await owner.post('/api/invitations', {
    email: 'race@example.com',
    role: 'viewer',
  })
  const { link } = (await invitationResponse.json()) as { link: string }
  const token = link.slice(link.indexOf('#') + 1)
  const accept = () =>
    server.call('/api/invitations/accept', { body: { token, password: 'a much better password' } })
  const statuses = (await Promise.all(Array.from({ length: 12 }, accept))).map(({ status }) => status)
  expect(statuses.filter((status) => status === 200).length).toBe(1)
  for (const status of statuses) expect([200, 403]).toContain(status)
  const members = (await server.store.accounts.list()).filter(({ email }) => email === 'race@example.com')
  expect(members.map(({ memberships }) => memberships.length)).toEqual([1])
}, 90_000)
