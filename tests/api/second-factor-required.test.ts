/** "Second factor required" of an organization: the access of members without one, and how they get it back. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { Secret, TOTP } from 'otpauth'
import type { Org } from '../../db/contract/store.ts'
import { auditEntry } from '../../server/audit/entry.ts'
import { newId, newToken, sha256Hex } from '../../server/ids.ts'
import { caller, makeOrg, password, person, type Person } from '../support/people.ts'
import { allRoutes, nameOf } from '../support/routes.ts'
import { testServer, type TestServer } from '../support/server.ts'

setDefaultTimeout(60_000)
let server: TestServer
let strict: Org
let owner: Person
let viewer: Person

beforeAll(async () => {
  server = await testServer()
  strict = await makeOrg(server, 'strict')
  owner = await person(server, strict, 'owner')
  viewer = await person(server, strict, 'viewer')
})
afterAll(() => server[Symbol.asyncDispose]())

async function refusalOf(answer: Response): Promise<[number, string | undefined]> {
  const text = await answer.text()
  return [answer.status, text === '' ? undefined : (JSON.parse(text) as { reason?: string }).reason]
}

async function setFactor(member: Person): Promise<number> {
  const enrolment = (await (await member.post('/api/account/second-factor/begin')).json()) as {
    seed: string
    token: string
  }
  const totp = new TOTP({ secret: Secret.fromBase32(enrolment.seed) })
  const code = totp.generate({ timestamp: server.clock.now() })
  return (await member.post('/api/account/second-factor', { token: enrolment.token, code, password })).status
}

const require = (member: Person, secondFactorRequired: boolean) =>
  member.post('/api/org/sign-in-rule', { secondFactorRequired })

test('only owners and admins turn it on, and only with a second factor of their own', async () => {
  expect(await refusalOf(await require(viewer, true))).toEqual([403, 'wrong_role'])
  const alone = await require(owner, true)
  expect([alone.status, ((await alone.json()) as { hint: string }).hint]).toEqual([
    409,
    expect.stringContaining('lock you out'),
  ])
  expect((await viewer.call('/api/overview')).status).toBe(200)
  expect(await setFactor(owner)).toBe(200)
  const ruleAnswer = (await (await require(owner, true)).json()) as { lacking: { email: string }[] }
  expect(ruleAnswer as unknown).toEqual({
    secondFactorRequired: true,
    lacking: [{ id: viewer.id, email: viewer.email }],
  })
  const { entries } = await server.store.audit.list({ orgId: strict.id, limit: 1, beforeSeq: null })
  expect(entries[0]).toMatchObject({
    action: 'org.sign_in_rule_changed',
    actor: `user:${owner.id}`,
    metadata: { before: { secondFactorRequired: false }, after: { secondFactorRequired: true } },
  })
  expect((await owner.call('/api/overview')).status).toBe(200)
})

// Routes of the person, not of the organization. All others, also future ones, are closed.
const open = [
  /^\S+ \/api\/(?:setup|sign-in|sign-in\/code|sign-out|reset-password|invitations\/look|invitations\/accept)$/,
  /^\S+ \/api\/(?:oidc\/\S+|session|session\/org|account|account\/\S+)$/,
  /^GET \/api\/orgs$/,
]

test('a member without one sees their account and no data, on every route of the dashboard', async () => {
  const session = await (await viewer.call('/api/session')).json()
  expect(session).toMatchObject({ lacksSecondFactor: true, org: { slug: 'strict' } })
  const closed = allRoutes()
    .filter(({ path }) => path.startsWith('/api/'))
    .filter((route) => !open.some((pattern) => pattern.test(nameOf(route))))
  expect(closed.length).toBeGreaterThan(60)
  for (const route of closed) {
    const path = route.path.replaceAll(/:\w+/g, 'x')
    const body = route.method === 'GET' || route.method === 'DELETE' ? {} : { body: {} }
    const answer = await viewer.call(path, { method: route.method, ...body })
    expect([nameOf(route), ...(await refusalOf(answer))]).toEqual([
      nameOf(route),
      403,
      'second_factor_required',
    ])
  }
  expect((await viewer.call('/api/account')).status).toBe(200)
  expect((await viewer.call('/api/orgs')).status).toBe(200)
})

test('their other organization stays open', async () => {
  const account = (await server.store.accounts.find(viewer.id))!
  const hash = sha256Hex(newToken())
  const now = server.clock.now()
  const invitation = {
    id: newId('inv'),
    hash,
    orgId: server.org.id,
    email: viewer.email,
    role: 'viewer' as const,
  }
  const audit = auditEntry({ orgId: server.org.id, actor: 'cli' }, { action: 'x.y', target: 'z' }, now)
  await server.store.invitations.create({
    invitation: { ...invitation, invitedBy: 'cli', createdAtMs: now, expiresAtMs: now + 60_000 },
    audit,
  })
  await server.store.invitations.accept({ hash, now, account, auditId: newId('aud') })
  const switchResponse = await viewer.post('/api/session/org', { orgId: server.org.id })
  const open = caller(server, switchResponse.headers.get('set-cookie')!.split(';')[0]!)
  expect((await open.call('/api/overview')).status).toBe(200)
  const back = await open.post('/api/session/org', { orgId: strict.id })
  viewer = { ...viewer, ...caller(server, back.headers.get('set-cookie')!.split(';')[0]!) }
  expect(await refusalOf(await viewer.call('/api/overview'))).toEqual([403, 'second_factor_required'])
})

test('a second factor opens everything; it cannot be removed while it is required', async () => {
  expect(await setFactor(viewer)).toBe(200)
  expect((await viewer.call('/api/overview')).status).toBe(200)
  expect(await (await viewer.call('/api/session')).json()).toMatchObject({ lacksSecondFactor: false })
  const off = await viewer.post('/api/account/second-factor/remove', { password })
  expect([off.status, ((await off.json()) as { message: string }).message]).toEqual([
    409,
    'The organization strict requires a second factor.',
  ])
  expect((await require(owner, false)).status).toBe(200)
  expect((await viewer.post('/api/account/second-factor/remove', { password })).status).toBe(204)
  expect((await viewer.call('/api/overview')).status).toBe(200)
})

test('a sign-in through the identity provider counts as one with a second factor', async () => {
  const guest = await person(server, strict, 'analyst')
  const byProvider = async (hasProvider: boolean) => {
    const token = newToken()
    const now = server.clock.now()
    const signIn = {
      id: newId('ses'),
      tokenHash: sha256Hex(token),
      accountId: guest.id,
      orgId: strict.id,
      createdAtMs: now,
      lastSeenAtMs: now,
      expiresAtMs: now + 3_600_000,
      address: '127.0.0.1',
      userAgent: 'test',
      byProvider: hasProvider,
    }
    const act = { action: 'session.created', target: signIn.id }
    const audit = auditEntry({ orgId: strict.id, actor: 'cli' }, act, now)
    await server.store.signIns.create({ signIn, audit })
    return caller(server, `sightglass=${token}`)
  }
  expect((await require(owner, true)).status).toBe(200)
  expect((await (await byProvider(true)).call('/api/overview')).status).toBe(200)
  expect(await refusalOf(await (await byProvider(false)).call('/api/overview'))).toEqual([
    403,
    'second_factor_required',
  ])
})
