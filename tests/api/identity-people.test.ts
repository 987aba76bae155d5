/** Organizations, people, invitations, second factors and sign-ins, over HTTP with real cookies. */
import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { TOTP, Secret } from 'otpauth'
import { deleteDueOrgs } from '../../server/identity/organizations/organizations.ts'
import { startLog } from '../../server/log.ts'
import { caller, cookieOf, makeOrg, password, person, type Person } from '../support/people.ts'
import { testServer, type TestServer } from '../support/server.ts'
import { unending } from '../support/unending.ts'
import { rawSql, tablesWith } from '../support/engine.ts'

let server: TestServer
let owner: Person

beforeAll(async () => {
  server = await testServer()
  owner = await person(server, server.org, 'owner', { operator: true })
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

test('an operator creates an organization and owns it; others cannot; switching requires membership', async () => {
  const admin = await person(server, server.org, 'admin')
  expect(await errorOf(await admin.post('/api/orgs', { name: 'Mine' }))).toEqual([
    403,
    'forbidden',
    'wrong_role',
  ])
  const orgResponse = await owner.post('/api/orgs', { name: 'Acme Zürich' })
  expect(orgResponse.status).toBe(201)
  const { org } = (await orgResponse.json()) as { org: { id: string; slug: string } }
  expect(org.slug).toBe('acme-zurich')
  expect(await errorOf(await owner.post('/api/orgs', { name: 'x', slug: 'acme-zurich' }))).toEqual([
    409,
    'conflict',
    undefined,
  ])
  expect(await errorOf(await owner.post('/api/orgs', { name: 'x', slug: 'A B' }))).toEqual([
    400,
    'invalid_body',
    'slug',
  ])
  expect(await errorOf(await owner.post('/api/orgs', { name: ' ' }))).toEqual([400, 'invalid_body', 'name'])
  expect((await admin.post('/api/session/org', { orgId: org.id })).status).toBe(404)
  const switched = await owner.post('/api/session/org', { orgId: org.id })
  expect(await switched.json()).toMatchObject({ org: { id: org.id }, role: 'owner' })
  // The old cookie must not open the other organization, nor work at all.
  expect((await owner.call('/api/session')).status).toBe(401)
  owner = { ...owner, ...caller(server, cookieOf(switched)) }
  const { orgs } = (await (await owner.call('/api/orgs')).json()) as {
    orgs: { slug: string; role: string }[]
  }
  expect(orgs.map(({ slug, role }) => [slug, role])).toEqual([
    ['default', 'owner'],
    ['acme-zurich', 'owner'],
  ])
  const back = await owner.post('/api/session/org', { orgId: server.org.id })
  owner = { ...owner, ...caller(server, cookieOf(back)) }
})

/** The tables with rows of an organization. */
async function rowsOf(dataDir: string, orgId: string): Promise<string[]> {
  const tables = await tablesWith(dataDir, 'org_id')
  expect(tables.length).toBeGreaterThan(12)
  const selectFrom = (table: string) =>
    `SELECT DISTINCT '${table}' AS name FROM "${table}" WHERE org_id = '${orgId}'`
  const tableRows = await rawSql<{ name: string }>(dataDir, tables.map(selectFrom).join(' UNION ALL '))
  return tableRows.map(({ name }) => name)
}

test('an organization is renamed, and deleted after a grace period: restored, requested again, then gone except for its chain', async () => {
  const org = await makeOrg(server, 'doomed')
  const boss = await person(server, org, 'owner')
  const key = await server.store.keys.list({ orgId: org.id })
  expect(key).toEqual([])
  const ingestKey = (await (await boss.post('/api/keys', { kind: 'ingest', label: 'x' })).json()) as {
    secret: string
  }
  const event = {
    id: 'e1',
    siteId: 's',
    sessionId: 's',
    occurredAt: '2026-06-23T12:00:00Z',
    type: 'a.b',
    outcome: 'success',
  }
  const send = () => server.call('/v1/sdk/events', { key: ingestKey.secret, body: { events: [event] } })
  expect((await send()).status).toBe(202)
  await boss.post('/api/sites', { siteId: 's', name: 'Shop', restricted: true })
  await boss.post('/api/invitations', { email: 'new@example.com', role: 'viewer' })
  expect((await boss.post('/api/org/rename', { name: 'Doom' })).status).toBe(200)
  expect(await errorOf(await boss.post('/api/org/delete', { confirm: 'Doom' }))).toEqual([
    400,
    'invalid_body',
    'confirm',
  ])
  expect(await errorOf(await boss.post('/api/org/keep'))).toEqual([409, 'conflict', undefined])
  const requested = (await (await boss.post('/api/org/delete', { confirm: 'doomed' })).json()) as {
    org: { deletesAt: string }
  }
  expect(Date.parse(requested.org.deletesAt) - server.clock.now()).toBeGreaterThan(6 * 86_400_000)
  expect((await boss.post('/api/org/delete', { confirm: 'doomed' })).status).toBe(409)
  expect((await boss.post('/api/org/keep')).status).toBe(200)
  await boss.post('/api/org/delete', { confirm: 'doomed' })
  const log = startLog({ level: 'error', clock: server.clock })
  const { store } = server
  await deleteDueOrgs({ store }, log, server.clock.now(), unending)
  expect(await store.orgs.find('doomed')).not.toBeNull()
  await deleteDueOrgs({ store }, log, server.clock.now() + 7 * 86_400_000 + 1_000, unending)
  await log.close()
  expect(await store.orgs.find('doomed')).toBeNull()
  expect(await store.keys.list({ orgId: org.id })).toEqual([])
  expect(await store.events.overview(org.id)).toMatchObject({ total: 0 })
  expect((await send()).status).toBe(401)
  expect((await boss.call('/api/session')).status).toBe(401)
  const { entries } = await store.audit.list({ orgId: org.id, limit: 3, beforeSeq: null })
  expect(entries[0]?.action).toBe('org.deletion_asked')
  const system = await store.audit.list({ orgId: 'org_system', limit: 1, beforeSeq: null })
  expect(system.entries[0]).toMatchObject({
    action: 'org.deleted',
    target: org.id,
    metadata: { slug: 'doomed' },
  })
  expect((await store.audit.verify([])).faults).toEqual([])
  expect(await rowsOf(server.dataDir, org.id)).toEqual(['audit_head', 'event_org'])
})

test('an invitation creates a member once; a used, revoked, replaced or expired link does not', async () => {
  const invite = async (email: string, role = 'analyst') =>
    (await (await owner.post('/api/invitations', { email, role })).json()) as {
      link: string
      invitation: { id: string }
    }
  const tokenOf = ({ link }: { link: string }) => link.slice(link.indexOf('#') + 1)
  const first = await invite('Ann@Example.com')
  expect(first.link).toStartWith(`${server.url}/invitation#`)
  const second = await invite('ann@example.com')
  const accept = (token: string, secret = 'another long password') =>
    server.call('/api/invitations/accept', { body: { token, password: secret } })
  const look = (token: string) => server.call('/api/invitations/look', { body: { token } })
  expect((await look(tokenOf(first))).status).toBe(403) // replaced
  expect(await (await look(tokenOf(second))).json()).toEqual({
    email: 'ann@example.com',
    role: 'analyst',
    orgName: 'Default',
    hasAccount: false,
  })
  expect(await errorOf(await accept(tokenOf(second), 'short'))).toEqual([400, 'invalid_body', 'password'])
  const joined = await accept(tokenOf(second))
  expect(await joined.json()).toMatchObject({
    account: { email: 'ann@example.com' },
    org: { id: server.org.id },
    role: 'analyst',
  })
  // The link signs in at once.
  expect((await server.call('/api/session', { headers: { cookie: cookieOf(joined) } })).status).toBe(200)
  expect((await accept(tokenOf(second))).status).toBe(403)
  const signIn = await server.call('/api/sign-in', {
    body: { email: 'ann@example.com', password: 'another long password' },
  })
  expect(await signIn.json()).toMatchObject({ role: 'analyst' })
  expect((await owner.post('/api/invitations', { email: 'ann@example.com', role: 'viewer' })).status).toBe(
    409,
  )
  const third = await invite('bob@example.com')
  expect((await owner.post(`/api/invitations/${third.invitation.id}/revoke`)).status).toBe(204)
  expect((await accept(tokenOf(third))).status).toBe(403)
  // A person with an account elsewhere proves with the password that the invitation is theirs.
  const elsewhere = await makeOrg(server, 'elsewhere')
  const guest = await person(server, elsewhere, 'viewer')
  const fifth = await invite(guest.email, 'admin')
  expect(await errorOf(await accept(tokenOf(fifth), 'not the password'))).toEqual([
    403,
    'forbidden',
    'wrong_password',
  ])
  const came = await accept(tokenOf(fifth), password)
  expect(await came.json()).toMatchObject({
    account: { email: guest.email },
    org: { id: server.org.id },
    role: 'admin',
  })
  expect((await server.call('/api/people', { headers: { cookie: cookieOf(came) } })).status).toBe(200)
  expect((await guest.post('/api/session/org', { orgId: server.org.id })).status).toBe(200)
}, 90_000)

test('an invitation expires after seven days', async () => {
  await using late = await testServer() // with its own clock, because time never runs back
  const host = await person(late, late.org, 'owner')
  const invited = await host.post('/api/invitations', { email: 'cyd@example.com', role: 'viewer' })
  const { link } = (await invited.json()) as { link: string }
  const token = link.slice(link.indexOf('#') + 1)
  const status = async () => (await late.call('/api/invitations/look', { body: { token } })).status
  expect(await status()).toBe(200)
  late.clock.move(7 * 86_400_000 + 1)
  expect(await status()).toBe(403)
  const body = { token, password: 'another long password' }
  expect((await late.call('/api/invitations/accept', { body })).status).toBe(403)
})

test('the last owner stays, admins cannot change owners, and a new role ends older sessions', async () => {
  const org = await makeOrg(server, 'roles')
  const boss = await person(server, org, 'owner')
  const admin = await person(server, org, 'admin')
  const viewer = await person(server, org, 'viewer')
  expect(await errorOf(await boss.post(`/api/people/${boss.id}/role`, { role: 'admin' }))).toEqual([
    409,
    'conflict',
    undefined,
  ])
  expect(await errorOf(await boss.post(`/api/people/${boss.id}/remove`))).toEqual([
    409,
    'conflict',
    undefined,
  ])
  for (const [path, body] of [
    [`/api/people/${boss.id}/role`, { role: 'viewer' }],
    [`/api/people/${boss.id}/remove`, {}],
    [`/api/people/${viewer.id}/role`, { role: 'owner' }],
    ['/api/invitations', { email: 'o@example.com', role: 'owner' }],
  ] as const)
    expect(await errorOf(await admin.post(path, body))).toEqual([403, 'forbidden', 'wrong_role'])
  expect((await boss.post(`/api/people/${viewer.id}/role`, { role: 'root' })).status).toBe(400)
  expect((await owner.post(`/api/people/${viewer.id}/role`, { role: 'admin' })).status).toBe(404)
  expect((await admin.post(`/api/people/${viewer.id}/role`, { role: 'analyst' })).status).toBe(200)
  expect((await viewer.call('/api/session')).status).toBe(401)
  expect((await boss.post(`/api/people/${admin.id}/role`, { role: 'owner' })).status).toBe(200)
  expect((await boss.post(`/api/people/${boss.id}/role`, { role: 'viewer' })).status).toBe(200)
  const people = await (await server.call('/api/sign-in', { body: { email: admin.email, password } })).json()
  expect(people).toMatchObject({ role: 'owner' })
})

test('sessions are listed and revoked, and a new password ends the others', async () => {
  const me = await person(server, server.org, 'viewer')
  const again = async () =>
    caller(server, cookieOf(await server.call('/api/sign-in', { body: { email: me.email, password } })))
  const phone = await again()
  const laptop = await again()
  type Account = { signIns: { id: string; current: boolean }[] }
  const list = async () => ((await (await me.call('/api/account')).json()) as Account).signIns
  expect((await list()).filter(({ current }) => current).length).toBe(1)
  const accountView = (await (await phone.call('/api/account')).json()) as Account
  const phoneId = accountView.signIns.find(({ current }) => current)?.id
  expect((await owner.post(`/api/account/sign-ins/${phoneId}/end`)).status).toBe(404)
  expect((await me.post(`/api/account/sign-ins/${phoneId}/end`)).status).toBe(204)
  expect((await phone.call('/api/session')).status).toBe(401)
  const next = 'a much better password'
  expect(
    await errorOf(await me.post('/api/account/password', { current: 'wrong one', password: next })),
  ).toEqual([403, 'forbidden', 'wrong_password'])
  expect((await me.post('/api/account/password', { current: password, password: next })).status).toBe(204)
  expect([(await me.call('/api/session')).status, (await laptop.call('/api/session')).status]).toEqual([
    200, 401,
  ])
  expect(await (await me.post('/api/account/sign-ins/end-others')).json()).toEqual({ ended: 0 })
}, 90_000)

test('a second factor: set, required, each code once, each recovery code once, removed', async () => {
  const me = await person(server, server.org, 'admin')
  const enrolment = (await (await me.post('/api/account/second-factor/begin')).json()) as {
    seed: string
    token: string
  }
  const totp = new TOTP({ secret: Secret.fromBase32(enrolment.seed) })
  const codeAt = (ms: number) => totp.generate({ timestamp: ms })
  const set = (code: string, secret = password) =>
    me.post('/api/account/second-factor', { token: enrolment.token, code, password: secret })
  expect(await errorOf(await set(codeAt(0)))).toEqual([400, 'invalid_body', 'code'])
  expect(await errorOf(await set(codeAt(server.clock.now()), 'wrong'))).toEqual([
    403,
    'forbidden',
    'wrong_password',
  ])
  const usedCode = codeAt(server.clock.now())
  const { recoveryCodes } = (await (await set(usedCode)).json()) as { recoveryCodes: string[] }
  expect(recoveryCodes.length).toBe(10)
  const half = async () => {
    const answer = await server.call('/api/sign-in', { body: { email: me.email, password } })
    expect(answer.headers.get('set-cookie')).toBeNull()
    return (await answer.json()) as { secondFactor: boolean; token: string }
  }
  const { token, secondFactor } = await half()
  expect(secondFactor).toBe(true)
  const withCode = (code: string, signInToken = token) =>
    server.call('/api/sign-in/code', { body: { token: signInToken, code } })
  expect((await withCode(usedCode)).status).toBe(401) // used when it was set
  server.clock.move(60_000)
  const good = codeAt(server.clock.now())
  const bothResponses = await Promise.all([withCode(good), withCode(good)])
  expect(bothResponses.map(({ status }) => status).sort()).toEqual([200, 401])
  server.clock.move(20 * 60_000)
  expect((await withCode(codeAt(server.clock.now()))).status).toBe(401) // the password was checked too long ago
  const later = await half()
  const [first = '', second = ''] = recoveryCodes
  expect((await withCode(first.toLowerCase(), later.token)).status).toBe(200)
  expect((await withCode(first, later.token)).status).toBe(401)
  server.clock.move(60_000)
  expect((await withCode(second, later.token)).status).toBe(401) // a token works for one sign-in
  const recovered = await withCode(second, (await half()).token)
  const signedIn = caller(server, cookieOf(recovered))
  expect(await (await signedIn.call('/api/account')).json()).toMatchObject({
    secondFactor: { recoveryLeft: 8 },
  })
  expect((await signedIn.post('/api/account/second-factor/remove', { password: 'wrong' })).status).toBe(403)
  expect((await signedIn.post('/api/account/second-factor/remove', { password })).status).toBe(204)
  expect(
    (await server.call('/api/sign-in', { body: { email: me.email, password } })).headers.get('set-cookie'),
  ).not.toBeNull()
}, 90_000)

test('wrong codes are throttled', async () => {
  const me = await person(server, server.org, 'viewer')
  const enrolment = (await (await me.post('/api/account/second-factor/begin')).json()) as {
    seed: string
    token: string
  }
  const code = new TOTP({ secret: Secret.fromBase32(enrolment.seed) }).generate({
    timestamp: server.clock.now(),
  })
  await me.post('/api/account/second-factor', { token: enrolment.token, code, password })
  const { token } = (await (
    await server.call('/api/sign-in', { body: { email: me.email, password } })
  ).json()) as { token: string }
  const statuses: number[] = []
  for (let i = 0; i < 4; i++)
    statuses.push((await server.call('/api/sign-in/code', { body: { token, code: '000000' } })).status)
  expect(statuses).toEqual([401, 401, 401, 429])
  server.clock.move(20 * 60_000)
})

test('share links end when their creator is removed or may no longer share; the dialog knows how many', async () => {
  const org = server.org
  const fields = { name: 'Week', page: 'overview', search: '', days: 7 }
  const leaver = await person(server, org, 'admin')
  const demoted = await person(server, org, 'admin')
  const other = await person(server, org, 'owner')
  const make = async (creator: Person) =>
    ((await (await creator.post('/api/share-links', fields)).json()) as { token: string }).token
  const tokens = [await make(leaver), await make(leaver), await make(demoted), await make(other)]
  const states = () => Promise.all(tokens.map(async (token) => (await server.call(`/share/${token}`)).status))
  expect(await states()).toEqual([200, 200, 200, 200])
  const members = async () => {
    const answer = (await (await other.call('/api/people')).json()) as {
      members: { id: string; shareLinks: number }[]
    }
    return [leaver, demoted, other].map(
      ({ id }) => answer.members.find((member) => member.id === id)?.shareLinks,
    )
  }
  expect(await members()).toEqual([2, 1, 1])
  expect((await other.post(`/api/people/${demoted.id}/role`, { role: 'owner' })).status).toBe(200)
  expect(await states()).toEqual([200, 200, 200, 200])
  expect((await other.post(`/api/people/${leaver.id}/remove`)).status).toBe(200)
  expect((await other.post(`/api/people/${demoted.id}/role`, { role: 'analyst' })).status).toBe(200)
  expect(await states()).toEqual([404, 404, 404, 200])
  expect(await members()).toEqual([undefined, 0, 1])
  const filter = { actions: ['member.removed', 'member.role_changed'] }
  const { entries } = await server.store.audit.list({ orgId: org.id, filter, limit: 3, beforeSeq: null })
  expect(entries.map(({ action, metadata }) => [action, metadata['shareLinksEnded']])).toEqual([
    ['member.role_changed', 1],
    ['member.removed', 2],
    ['member.role_changed', undefined],
  ])
})
