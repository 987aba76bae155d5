/** Attacks on sign-in, against the executable over parallel connections: counts of outcomes, never times. */
import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { Secret, TOTP } from 'otpauth'
import { makeCipher } from '../../server/system/encryption.ts'
import { startAppliance, type Appliance } from '../support/binary.ts'
import { rawSql } from '../support/engine.ts'

const email = 'owner@example.com'
const password = 'a window in a vessel'
const home = '203.0.113.9'
let appliance: Appliance

beforeAll(async () => {
  const env = { SIGHTGLASS_ADMIN_EMAIL: email, SIGHTGLASS_ADMIN_PASSWORD: password }
  // A trusted proxy sets the address, so that one test plays many senders.
  appliance = await startAppliance({ env, args: ['--trusted-proxy', '127.0.0.1'] })
})
afterAll(() => appliance[Symbol.asyncDispose]())

function post(path: string, body: unknown, from: string, cookie = ''): Promise<Response> {
  const headers = { 'content-type': 'application/json', 'x-forwarded-for': from, cookie }
  return fetch(appliance.url + path, { method: 'POST', headers, body: JSON.stringify(body) })
}
const signIn = (from: string, secret = password) => post('/api/sign-in', { email, password: secret }, from)
const cookieOf = (answer: Response) => answer.headers.get('set-cookie')?.split(';')[0] ?? ''
const statuses = (answers: Response[]) => answers.map(({ status }) => status)
const count = (statusList: number[], status: number) =>
  statusList.filter((candidate) => candidate === status).length

test('junk on every route that hashes does not affect correct sign-ins, even from the same sender', async () => {
  const junk = { token: 'x'.repeat(43), password: 'a junk password of strangers' }
  const routes: [string, object][] = [
    ['/api/reset-password', junk],
    ['/api/setup', { ...junk, email: 'stranger@example.com' }],
    ['/api/invitations/accept', junk],
    ['/api/invitations/look', { token: junk.token }],
  ]
  let stop = false
  const seenStatuses = new Set<number>()
  const flood = Array.from({ length: 60 }, async (_, i) => {
    const [path, body] = routes[i % routes.length]!
    for (; !stop; await Bun.sleep(10)) seenStatuses.add((await post(path, body, home)).status)
  })
  // The junk has filled the queue of new passwords.
  for (const endMs = performance.now() + 30_000; !seenStatuses.has(429) && performance.now() < endMs;)
    await Bun.sleep(5)
  // Twice as many as are hashed at once, so that some wait while the junk waits.
  const entered = statuses(await Promise.all(Array.from({ length: 8 }, () => signIn(home))))
  stop = true
  await Promise.all(flood)
  expect(entered).toEqual(Array<number>(8).fill(200))
  expect([...seenStatuses].sort()).toEqual([403, 409, 429]) // 409: this appliance has an owner
}, 120_000)

test('three of sixty concurrent guesses are checked', async () => {
  const guesses = Array.from({ length: 60 }, (_, i) => signIn('198.51.100.7', `a guessed password ${i}`))
  const answers = statuses(await Promise.all(guesses))
  expect(count(answers, 401)).toBe(3)
  expect(count(answers, 429)).toBe(57)
}, 120_000)

test('sixty senders with one guess each share the account’s limit of three', async () => {
  const name = 'nobody@example.com'
  const guesses = Array.from({ length: 60 }, (_, i) =>
    post('/api/sign-in', { email: name, password: `a guessed password ${i}` }, `198.51.100.${i + 10}`),
  )
  const answers = statuses(await Promise.all(guesses))
  expect(count(answers, 401)).toBe(3)
}, 120_000)

test('an attacked account opens with the right password from where it signed in before', async () => {
  for (let i = 0; i < 12; i++) await signIn(`192.0.2.${i}`, 'a guessed password')
  expect((await signIn('192.0.2.99')).status).toBe(429)
  expect((await signIn(home)).status).toBe(200)
  expect((await signIn(home, 'a slip of the finger')).status).toBe(401)
  expect((await signIn(home)).status).toBe(200)
}, 120_000)

/** Sends as a person who waits as long as the answer says: after three failures the account is closed for a second. */
async function patiently(send: () => Promise<Response>): Promise<Response> {
  for (;;) {
    const answer = await send()
    if (answer.status !== 429) return answer
    await Bun.sleep(Number(answer.headers.get('retry-after')) * 1_000)
  }
}

test('the token between password and code: one use, one password, and not forgeable with a copied database', async () => {
  const cookie = cookieOf(await signIn(home))
  const enrolment = (await (await post('/api/account/second-factor/begin', {}, home, cookie)).json()) as {
    seed: string
    token: string
  }
  const totp = new TOTP({ secret: Secret.fromBase32(enrolment.seed) })
  const codeAt = (steps: number) => totp.generate({ timestamp: Date.now() + steps * 30_000 })
  const set = { token: enrolment.token, code: codeAt(-1), password }
  const enrolmentResponse = await post('/api/account/second-factor', set, home, cookie)
  const { recoveryCodes } = (await enrolmentResponse.json()) as { recoveryCodes: string[] }
  const half = async (secret = password) =>
    ((await (await patiently(() => signIn(home, secret))).json()) as { token: string }).token
  const send = (token: string, code: string) => post('/api/sign-in/code', { token, code }, home)
  const finish = (token: string, code: string) => patiently(() => send(token, code))

  const halfToken = await half()
  expect((await finish(halfToken, recoveryCodes[0]!)).status).toBe(200)
  expect((await finish(halfToken, recoveryCodes[1]!)).status).toBe(401)

  const raced = await half()
  const race = await Promise.all([5, 6, 7, 8].map((index) => send(raced, recoveryCodes[index]!)))
  expect(count(statuses(race), 200)).toBe(1)

  const stale = await half()
  const changed = 'another window in a vessel'
  const change = await post('/api/account/password', { current: password, password: changed }, home, cookie)
  expect(change.status).toBe(204)
  expect((await finish(stale, recoveryCodes[2]!)).status).toBe(401)
  expect((await finish(await half(changed), recoveryCodes[3]!)).status).toBe(200)

  const { dataDir } = appliance
  const cursor = "SELECT value FROM store_secret WHERE name = 'cursor'"
  const secret = (await rawSql<{ value: string }>(dataDir, cursor))[0]!
  const memberQuery = 'SELECT account_id AS id, org_id AS orgId FROM membership'
  const { id: accountId, orgId } = (await rawSql<{ id: string; orgId: string }>(dataDir, memberQuery))[0]!
  const forged = { accountId, orgId, email, untilMs: Date.now() + 60_000 }
  const token = makeCipher(secret.value).encrypt('second-factor', forged)
  expect((await finish(token, recoveryCodes[4]!)).status).toBe(401)
  // The rejected attempts did not use up the code.
  expect((await finish(await half(changed), recoveryCodes[4]!)).status).toBe(200)
}, 120_000)
