/** Standard Webhooks 1.0.0: what is signed, how, and the three headers that carry it. */
import { createHmac } from 'node:crypto'
import { signingKey } from '../endpoints/secret.ts'

export interface Message {
  id: string // the same for every attempt
  body: string // the very text that is sent
}

/** `v1,` and the base64 HMAC-SHA256 of `id.timestamp.body`; the time is that of the attempt, in whole seconds. */
export function signature(secret: string, message: Message, timestampS: number): string {
  const signed = `${message.id}.${timestampS}.${message.body}`
  return `v1,${createHmac('sha256', signingKey(secret)).update(signed, 'utf8').digest('base64')}`
}

/** The headers of one attempt. While a secret rotates both sign, the newer first, and receivers take either. */
export function signedHeaders(secrets: string[], message: Message, nowMs: number): Record<string, string> {
  const timestampS = Math.floor(nowMs / 1_000)
  return {
    'webhook-id': message.id,
    'webhook-timestamp': String(timestampS),
    'webhook-signature': secrets.map((secret) => signature(secret, message, timestampS)).join(' '),
  }
}
