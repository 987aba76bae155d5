/** The first owner, signing in and out, and rejected requests of the dashboard's API, over HTTP with real cookies. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { auditEntry } from '../../server/audit/entry.ts'
import { hashPassword } from '../../server/identity/sign-in/password.ts'
import { newId, sha256Hex } from '../../server/ids.ts'
import { quickPasswords } from '../support/quick-passwords.ts'
import { testServer, type TestServer } from '../support/server.ts'

const email = 'owner@example.com'
const password = 'a window in a vessel'

let server: TestServer

beforeAll(async () => {
  server = await testServer({ allowedHosts: ['box.lan'] }, 'argon2id')
})
afterAll(() => server[Symbol.asyncDispose]())

const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
  server.call(path, { method: 'POST', body, headers })

async function link(expiresInMs = 60_000): Promise<string> {
  const token = newId('req')
  const expiresAtMs = server.clock.now() + expiresInMs
  const link = { hash: sha256Hex(token), purpose: 'setup' as const, accountId: null, expiresAtMs }
  await server.store.accounts.createLink({ link, audit: null })
  return token
}

const cookieOf = (response: Response) => response.headers.get('set-cookie')!.split(';')[0]!

async function signIn(): Promise<string> {
  const response = await post('/api/sign-in', { email, password })
  expect(response.status).toBe(200)
  return cookieOf(response)
}

async function actions(): Promise<string[]> {
  const { entries } = await server.store.audit.list({ orgId: server.org.id, limit: 200, beforeSeq: null })
  return entries.map((entry) => entry.action)
}

test('fifty uses of one setup link create exactly one owner', async () => {
  // Quick hashes let more of them reach the store at the same time.
  const endQuickPasswords = quickPasswords()
  expect(await (await server.call('/api/setup')).json()).toEqual({
    needsOwner: true,
    signedIn: false,
    provider: null,
  })
  expect((await post('/api/setup', { token: 'wrong', email, password })).status).toBe(403)
  expect((await post('/api/setup', { token: await link(-1), email, password })).status).toBe(403)
  const token = await link()
  expect((await post('/api/setup', { token, email, password: 'short' })).status).toBe(400)
  expect((await post('/api/setup', { token, email: 'nobody', password })).status).toBe(400)
  const claims = Array.from({ length: 50 }, (_, i) =>
    post('/api/setup', { token, email: `o${i}@example.com`, password }),
  )
  const answers = await Promise.all(claims)
  endQuickPasswords()
  const created = answers.filter((response) => response.status === 201)
  expect(created.length).toBe(1)
  for (const response of answers) expect([201, 403, 409, 429]).toContain(response.status)
  const session = await (
    await server.call('/api/session', { headers: { cookie: cookieOf(created[0]!) } })
  ).json()
  expect(session).toMatchObject({ role: 'owner', org: { slug: 'default' }, account: { operator: true } })
  const cookie = cookieOf(created[0]!)
  const setupAnswer = await (await server.call('/api/setup', { headers: { cookie } })).json()
  expect(setupAnswer).toEqual({ needsOwner: false, signedIn: true, provider: null })
  expect(await (await server.call('/api/setup')).json()).toEqual({
    needsOwner: false,
    signedIn: false,
    provider: null,
  })
  expect((await actions()).filter((action) => action === 'account.created').length).toBe(1)
}, 90_000)

test('signing in returns a cookie that opens the dashboard until the sign-out', async () => {
  const account = (await server.store.accounts.list())[0]!
  const audit = {
    id: newId('aud'),
    orgId: server.org.id,
    actor: 'cli',
    action: 'account.created',
    target: 'x',
    metadata: {},
    occurredAtMs: server.clock.now(),
  }
  await server.store.accounts.create({
    account: { ...account, id: newId('usr'), email, passwordHash: await hashPassword(password) },
    orgId: server.org.id,
    role: 'viewer',
    audit,
  })
  const cookie = await signIn()
  const wrongHash = await post('/api/sign-in', { email, password: 'not the password' })
  expect(wrongHash.status).toBe(401)
  expect((await server.call('/api/session', { headers: { cookie } })).status).toBe(200)
  const out = await post('/api/sign-out', undefined, { cookie })
  expect([out.status, out.headers.get('set-cookie')]).toEqual([204, expect.stringContaining('Max-Age=0')])
  const sessionAfter = await server.call('/api/session', { headers: { cookie } })
  expect([sessionAfter.status, ((await sessionAfter.json()) as { reason: string }).reason]).toEqual([
    401,
    'no_session',
  ])
  const seenActions = await actions()
  for (const action of ['session.created', 'session.failed', 'session.ended'])
    expect(seenActions).toContain(action)
})

test('an address and a password are the same in every form of their letters', async () => {
  const address = 'jos\u00e9@example.com'
  const secret = 'Cr\u00e8me br\u00fbl\u00e9e f\u00fcr 2'
  const addAccount = async (stored: string, passwordHash: string) => {
    const account = { id: newId('usr'), email: stored, passwordHash, operator: false, createdAtMs: 0 }
    const audit = {
      ...auditEntry(
        { orgId: server.org.id, actor: 'cli' },
        { action: 'account.created', target: account.id },
        0,
      ),
    }
    await server.store.accounts.create({ account, orgId: server.org.id, role: 'viewer', audit })
  }
  await addAccount(address, await hashPassword(secret))
  // As an earlier release stored what a Mac decomposed.
  await addAccount('zo\u00eb@example.com'.normalize('NFD'), await Bun.password.hash(secret.normalize('NFD')))
  for (const emailAddress of [address, 'zo\u00eb@example.com']) {
    for (const form of ['NFC', 'NFD']) {
      const body = { email: emailAddress.normalize(form), password: secret.normalize(form) }
      expect((await post('/api/sign-in', body)).status).toBe(200)
    }
  }
})

test('a viewer reads events and sees no keys', async () => {
  const cookie = await signIn()
  expect((await server.call('/api/events', { headers: { cookie } })).status).toBe(200)
  expect((await server.call('/api/overview', { headers: { cookie } })).status).toBe(200)
  for (const response of [
    await server.call('/api/keys', { headers: { cookie } }),
    await post('/api/keys', { kind: 'ingest', label: 'x' }, { cookie }),
    await post('/api/keys/key_x/revoke', {}, { cookie }),
  ]) {
    expect([response.status, ((await response.json()) as { reason: string }).reason]).toEqual([
      403,
      'wrong_role',
    ])
  }
})

test('a session ends when it is idle, and at its absolute end', async () => {
  const idle = await signIn()
  server.clock.move(11 * 3_600_000)
  expect((await server.call('/api/session', { headers: { cookie: idle } })).status).toBe(200)
  server.clock.move(12 * 3_600_000 + 1)
  expect((await server.call('/api/session', { headers: { cookie: idle } })).status).toBe(401)
  const busy = await signIn()
  const statuses: number[] = []
  for (let hours = 0; hours < 7 * 24; hours += 8) {
    statuses.push((await server.call('/api/session', { headers: { cookie: busy } })).status)
    server.clock.move(8 * 3_600_000)
  }
  expect(new Set(statuses)).toEqual(new Set([200]))
  expect((await server.call('/api/session', { headers: { cookie: busy } })).status).toBe(401)
})

test('wrong passwords are throttled, also for unknown names, with the time to wait', async () => {
  for (const name of ['nobody@example.com']) {
    const statuses: number[] = []
    for (let i = 0; i < 4; i++)
      statuses.push((await post('/api/sign-in', { email: name, password: 'guess' })).status)
    expect(statuses).toEqual([401, 401, 401, 429])
    const refused = await post('/api/sign-in', { email: name, password: 'guess' })
    const seconds = Number(refused.headers.get('retry-after'))
    expect(seconds).toBeGreaterThan(0)
    expect(refused.headers.get('ratelimit')).toBe(`"sign-in";r=0;t=${seconds}`)
    expect(refused.headers.get('ratelimit-policy')).toBe(`"sign-in";q=1;w=${seconds}`)
  }
  server.clock.move(20 * 60_000)
  await signIn()
})

test('another site cannot act for a signed-in person', async () => {
  const cookie = await signIn()
  for (const headers of [{ 'sec-fetch-site': 'cross-site' }, { origin: 'https://evil.example' }]) {
    expect((await post('/api/sign-out', {}, { cookie, ...headers })).status).toBe(403)
    expect((await post('/api/sign-in', { email, password }, { ...headers })).status).toBe(403)
  }
  expect((await server.call('/api/session', { headers: { cookie } })).status).toBe(200)
})

test('the dashboard answers only under its own host names', async () => {
  const status = async (host: string, path: string) => (await server.call(path, { headers: { host } })).status
  expect(await status('evil.example', '/api/setup')).toBe(403)
  expect(await status('evil.example', '/')).toBe(403)
  expect(await status('box.lan:7400', '/api/setup')).toBe(200)
  expect(await status('evil.example', '/healthz')).toBe(200)
  expect(await status('evil.example', '/v1/limits')).toBe(200)
})

test('invalid fields are named, invalid bodies rejected, nothing is echoed', async () => {
  const cases: [unknown, number, string][] = [
    [{}, 400, 'invalid_body'],
    [{ email: 5, password: 'x' }, 400, 'invalid_body'],
    ['[]', 400, 'invalid_body'],
    ['{', 400, 'invalid_json'],
    [`{"email":"${'x'.repeat(70_000)}"}`, 413, 'payload_too_large'],
  ]
  for (const [body, status, error] of cases) {
    const response = await post('/api/sign-in', body)
    expect([response.status, ((await response.json()) as { error: string }).error]).toEqual([status, error])
  }
  const form = await post('/api/sign-in', 'email=a&password=b', {
    'content-type': 'application/x-www-form-urlencoded',
  })
  expect(form.status).toBe(415)
})
