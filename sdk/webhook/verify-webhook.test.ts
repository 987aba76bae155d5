/** Webhook verification against signatures computed here, as the standard describes them. */
import { expect, test } from 'bun:test'
import { createHmac, randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { Webhook } from 'standardwebhooks'
import { verifyWebhook, type WebhookError, type WebhookHeaders } from './verify-webhook.ts'

const secret = `whsec_${randomBytes(24).toString('base64')}`
const atSeconds = 1_780_000_000
const options = { nowMs: () => atSeconds * 1_000 }
const body = '{"type":"trace.batch","data":{"sequence":1,"events":[]}}'

function sign(text: string | Uint8Array, key = secret, id = 'wh_1', seconds: number = atSeconds): string {
  const hmac = createHmac('sha256', Buffer.from(key.slice(6), 'base64'))
  return `v1,${hmac.update(`${id}.${seconds}.`).update(text).digest('base64')}`
}

const headersOf = (signature: string, overrides: object = {}): { [name: string]: string } => ({
  'webhook-id': 'wh_1',
  'webhook-timestamp': String(atSeconds),
  'webhook-signature': signature,
  ...overrides,
})

/** The code of the error, or `accepted`. Not `rejects`, which is slow here. */
function outcome(headers: WebhookHeaders, text: string | Uint8Array = body, key: string | string[] = secret) {
  return verifyWebhook(headers, text, key, options).then(
    () => 'accepted',
    (error: WebhookError) => error.code,
  )
}

test('a signed delivery resolves with its payload, from text or bytes and any kind of headers', async () => {
  const headers = headersOf(sign(body))
  const payload = { type: 'trace.batch', data: { sequence: 1, events: [] } }
  expect(await verifyWebhook(headers, body, secret, options)).toEqual(payload)
  expect(await verifyWebhook(new Headers(headers), new TextEncoder().encode(body), secret, options)).toEqual(
    payload,
  )
  expect(
    await outcome({
      'Webhook-Id': 'wh_1',
      'Webhook-Timestamp': String(atSeconds),
      'Webhook-Signature': sign(body),
    }),
  ).toBe('accepted')
})

test('accepts signatures of the reference library', async () => {
  const reference = new Webhook(secret)
  const signature = reference.sign('wh_1', new Date(atSeconds * 1_000), body)
  expect(signature).toBe(sign(body))
  expect(await outcome(headersOf(signature))).toBe('accepted')
})

test('rejects a changed body, id or timestamp', async () => {
  expect(await outcome(headersOf(sign(body)), body.replace('1', '2'))).toBe('wrong_signature')
  expect(await outcome(headersOf(sign(body), { 'webhook-id': 'wh_2' }))).toBe('wrong_signature')
  expect(await outcome(headersOf(sign(body), { 'webhook-timestamp': String(atSeconds + 1) }))).toBe(
    'wrong_signature',
  )
  expect(await outcome(headersOf(sign(body, `whsec_${randomBytes(24).toString('base64')}`)))).toBe(
    'wrong_signature',
  )
})

test('one matching signature or secret is enough during a rotation', async () => {
  const old = `whsec_${randomBytes(24).toString('base64')}`
  expect(await outcome(headersOf(`${sign(body, old)} ${sign(body)}`))).toBe('accepted')
  expect(await outcome(headersOf(`v1a,abc v1,%%% ${sign(body)}`))).toBe('accepted')
  expect(await outcome(headersOf(sign(body, old)), body, [secret, old])).toBe('accepted')
})

test('rejects deliveries more than 5 minutes old or ahead', async () => {
  const headersAt = (seconds: number) =>
    headersOf(sign(body, secret, 'wh_1', seconds), { 'webhook-timestamp': String(seconds) })
  expect(await outcome(headersAt(atSeconds - 300))).toBe('accepted')
  expect(await outcome(headersAt(atSeconds - 301))).toBe('too_old')
  expect(await outcome(headersAt(atSeconds + 301))).toBe('too_new')
})

test('names missing and malformed headers', async () => {
  for (const name of ['webhook-id', 'webhook-timestamp', 'webhook-signature']) {
    expect(await outcome(headersOf(sign(body), { [name]: undefined }))).toBe('missing_header')
  }
  expect(await outcome(headersOf(sign(body), { 'webhook-timestamp': '1e9' }))).toBe('missing_header')
  expect(await outcome(headersOf('nonsense'))).toBe('wrong_signature')
  expect(await outcome(headersOf(sign(body)), body, 'whsec_%%%')).toBe('wrong_secret')
  expect(await outcome(headersOf(sign(body)), body, '')).toBe('wrong_secret')
  expect(await outcome(headersOf(sign('not json')), 'not json')).toBe('not_json')
})

test('law: accepts any signed bytes and no others', async () => {
  await fc.assert(
    fc.asyncProperty(fc.jsonValue(), fc.nat(), async (value, place) => {
      const bytes = new TextEncoder().encode(JSON.stringify(value))
      const headers = headersOf(sign(bytes))
      expect(await outcome(headers, bytes)).toBe('accepted')
      const changed = bytes.slice()
      changed[place % changed.length] = (changed[place % changed.length] ?? 0) ^ 1
      expect(await outcome(headers, changed)).toBe('wrong_signature')
    }),
    { numRuns: 50 },
  )
})
