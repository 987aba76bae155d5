/** Our signatures pass the verifier that receivers use, also while a secret rotates, and nothing else does. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { Webhook } from 'standardwebhooks'
import { newSigningSecret } from '../../ids.ts'
import { signingKey } from './signing.ts'
import { signedHeaders } from './signing.ts'

const message = { id: 'wh_1', body: '{"a":"ü 🎈"}' }

describe('the standardwebhooks package', () => {
  test('accepts what we sign, whatever the body', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme' }),
        fc.uint8Array({ minLength: 24, maxLength: 64 }),
        (text, key) => {
          const secret = `whsec_${Buffer.from(key).toString('base64')}`
          const body = JSON.stringify({ text })
          const headers = signedHeaders([secret], { id: 'wh_x', body }, Date.now())
          expect(new Webhook(secret).verify(body, headers)).toEqual({ text })
        },
      ),
    )
  })

  test('accepts either secret while one rotates', () => {
    const [older, newer, other] = [newSigningSecret(), newSigningSecret(), newSigningSecret()]
    const headers = signedHeaders([newer, older], message, Date.now())
    for (const secret of [older, newer])
      expect(new Webhook(secret).verify(message.body, headers)).toBeTruthy()
    expect(() => new Webhook(other).verify(message.body, headers)).toThrow()
  })

  test('rejects another body, another id and an attempt ten minutes old', () => {
    const secret = newSigningSecret()
    const headers = signedHeaders([secret], message, Date.now())
    const verify = (body: string, sent: Record<string, string>) => () =>
      new Webhook(secret).verify(body, sent)
    expect(verify(`${message.body} `, headers)).toThrow()
    expect(verify(message.body, { ...headers, 'webhook-id': 'wh_2' })).toThrow()
    expect(verify(message.body, signedHeaders([secret], message, Date.now() - 600_000))).toThrow()
  })
})

test('matches a known key, signed text and signature', () => {
  const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
  const headers = signedHeaders(
    [secret],
    { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', body: '{"test": 2432232314}' },
    1_614_265_330_999,
  )
  expect(headers).toEqual({
    'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    'webhook-timestamp': '1614265330',
    'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  })
})

test('only whsec_ texts of 24 to 64 bytes are signing secrets', () => {
  expect(signingKey(newSigningSecret())).toHaveLength(32)
  for (const wrong of [
    '',
    'whsec_',
    `whsec_${'A'.repeat(31)}`,
    `whsec_${'A'.repeat(90)}`,
    `whpk_${'A'.repeat(32)}`,
    'whsec_!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!',
  ]) {
    expect(() => signingKey(wrong)).toThrow()
  }
})
