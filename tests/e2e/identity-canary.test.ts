/** Planted secrets (keys, passwords, tokens, seeds, codes) appear in no file, no log line and no response in clear. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Secret, TOTP } from 'otpauth'
import { type Appliance, startAppliance } from '../support/binary.ts'
import { owner, ownerEnv } from './dashboard-actions.ts'

const providerSecret = 'canary-of-the-identity-provider'
let appliance: Appliance
beforeAll(async () => {
  appliance = await startAppliance({
    args: ['--log-level', 'debug', '--oidc-issuer', 'http://127.0.0.1:9', '--oidc-client-id', 'canary'],
    env: { ...ownerEnv, SIGHTGLASS_OIDC_CLIENT_SECRET: providerSecret },
  })
}, 120_000)
afterAll(async () => void (await appliance.stop()))

/** Secrets that were shown once, by name. Every later response is searched for them. */
const planted = new Map<string, string>([
  ['password', owner.password],
  ['provider secret', providerSecret],
])
const answers: string[] = []

let cookie = ''
async function call(
  path: string,
  body?: unknown,
  extraHeaders: Record<string, string> = {},
): Promise<Response> {
  const headers = { cookie, 'content-type': 'application/json', ...extraHeaders }
  const init = body === undefined ? { headers } : { method: 'POST', headers, body: JSON.stringify(body) }
  return fetch(appliance.url + path, init)
}

/** A response that contains a secret on purpose, once. */
async function shown<T>(answer: Promise<Response>): Promise<T> {
  const response = await answer
  expect([response.url, response.ok]).toEqual([response.url, true])
  return (await response.json()) as T
}

/** A response that must not contain a secret. */
async function quiet(answer: Promise<Response>): Promise<number> {
  const response = await answer
  answers.push(`${JSON.stringify([...response.headers])}\n${await response.text()}`)
  return response.status
}

test('secrets of every kind are created and used', async () => {
  const signIn = await call('/api/sign-in', { email: owner.email, password: owner.password })
  cookie = signIn.headers.get('set-cookie')?.split(';')[0] ?? ''
  planted.set('session', cookie.split('=')[1] ?? '')
  for (const kind of ['ingest', 'secret', 'publishable']) {
    const createdKey = await shown<{ secret: string }>(call('/api/keys', { kind, label: `canary ${kind}` }))
    planted.set(`${kind} key`, createdKey.secret)
  }
  const invitation = await shown<{ link: string }>(
    call('/api/invitations', { email: 'c@example.com', role: 'viewer' }),
  )
  planted.set('invitation', invitation.link.split('#')[1] ?? '')
  const reset = await appliance.cli('account', 'reset-password', '--email', owner.email, '--json')
  planted.set('reset link', (JSON.parse(reset.stdout) as { link: string }).link.split('#')[1] ?? '')
  const hook = await shown<{ secret: string }>(
    call('/api/webhooks/endpoints', { url: 'https://hooks.example.com/in' }),
  )
  planted.set('endpoint secret', hook.secret)
  const signing = await shown<{ secret: string }>(call('/api/webhooks/secret'))
  planted.set('signing secret', signing.secret)
  const enrolment = await shown<{ seed: string; token: string }>(call('/api/account/second-factor/begin', {}))
  planted.set('seed', enrolment.seed)
  const code = new TOTP({ secret: Secret.fromBase32(enrolment.seed) }).generate()
  const set = await shown<{ recoveryCodes: string[] }>(
    call('/api/account/second-factor', { token: enrolment.token, code, password: owner.password }),
  )
  planted.set('recovery code', set.recoveryCodes[0] ?? '')
  planted.set('recovery code as kept', (set.recoveryCodes[0] ?? '').replaceAll('-', ''))
  const invited = { token: planted.get('invitation'), password: 'canary in a password' }
  planted.set('other password', invited.password)
  expect(await quiet(call('/api/invitations/accept', invited))).toBe(200)
}, 90_000)

test('no response and no error contains a secret', async () => {
  const paths = [
    'account',
    'orgs',
    'people',
    'sites',
    'keys',
    'audit?limit=200',
    'webhooks',
    'webhooks/endpoints',
    'session',
  ]
  for (const path of paths) expect([path, await quiet(call(`/api/${path}`))]).toEqual([path, 200])
  await quiet(call('/api/audit/export', {}))
  const bearer = (name: string) => ({ authorization: `Bearer ${planted.get(name)}` })
  await quiet(call('/v1/audit/export', {}, bearer('secret key')))
  const event = {
    id: 'e',
    siteId: 's',
    sessionId: 's',
    occurredAt: '2026-06-23T12:00:00Z',
    type: 'a.b',
    outcome: 'success',
  }
  expect(await quiet(call('/v1/sdk/events', { events: [event] }, bearer('ingest key')))).toBe(202)
  for (const [name, secret] of planted) {
    // Where each does not belong: as a name, a token, a path, a query, a body that is refused.
    await quiet(call('/api/sign-in', { email: 'nobody@example.com', password: secret }))
    await quiet(call('/api/sign-in/code', { token: secret, code: secret }))
    await quiet(call('/api/reset-password', { token: `${secret}x`, password: 'x' }))
    await quiet(call('/api/invitations/look', { token: `${secret}x` }))
    await quiet(call('/v1/traces', undefined, { authorization: `Bearer ${secret}` }))
    await quiet(
      call(
        '/v1/sdk/events',
        { events: [] },
        { authorization: `Bearer ${secret}`, origin: 'https://x.example' },
      ),
    )
    await quiet(call('/api/keys', { kind: secret, label: 'x' }))
    expect(name).not.toBe('')
  }
  for (const args of [
    ['key', 'list'],
    ['account', 'list'],
    ['export', 'audit'],
    ['config'],
    ['webhook', 'endpoints'],
    ['verify', 'audit'],
  ]) {
    const { stdout, stderr, code } = await appliance.cli(...args, '--json')
    expect([args.join(' '), code]).toEqual([args.join(' '), 0])
    answers.push(stdout, stderr)
  }
  for (const answer of answers) expect(secretsIn(answer)).toEqual([])
}, 90_000)

test('no log line contains a secret, even at level debug', () => {
  expect(appliance.stderr().length).toBeGreaterThan(1_000)
  expect(secretsIn(appliance.stderr())).toEqual([])
})

test('no file of the data folder contains a secret, and only its owner can read it', () => {
  const files = (folder: string): string[] =>
    readdirSync(folder, { withFileTypes: true, recursive: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
  const look = () => files(appliance.dataDir).flatMap((path) => secretsIn(readFileSync(path, 'latin1'), path))
  const names = files(appliance.dataDir).map((path) => path.slice(appliance.dataDir.length + 1))
  for (const name of ['sightglass.db', 'secret.key', 'audit-signing.key']) expect(names).toContain(name)
  expect(look()).toEqual([])
  for (const path of files(appliance.dataDir)) expect([path, statSync(path).mode & 0o077]).toEqual([path, 0])
})

function secretsIn(text: string, place = text.slice(0, 200)): string[] {
  return [...planted].filter(([, secret]) => text.includes(secret)).map(([name]) => `${name} in ${place}`)
}
