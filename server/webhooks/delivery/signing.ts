/** Signs deliveries as Standard Webhooks 1.0.0 defines: the secret, the signature and its three headers. */
import { createHmac } from 'node:crypto'

export interface Message {
  id: string // the same for every attempt
  body: string // exactly as sent
}

/** `v1,` and the base64 HMAC-SHA256 of `id.timestamp.body`; the time is that of the attempt, in whole seconds. */
export function signature(secret: string, message: Message, timestampS: number): string {
  const signed = `${message.id}.${timestampS}.${message.body}`
  return `v1,${createHmac('sha256', signingKey(secret)).update(signed, 'utf8').digest('base64')}`
}

/** The headers of one attempt. During a rotation both secrets sign, the newer first; receivers accept either. */
export function signedHeaders(secrets: string[], message: Message, nowMs: number): Record<string, string> {
  const timestampS = Math.floor(nowMs / 1_000)
  return {
    'webhook-id': message.id,
    'webhook-timestamp': String(timestampS),
    'webhook-signature': secrets.map((secret) => signature(secret, message, timestampS)).join(' '),
  }
}

/** Reads signing secrets in the form Standard Webhooks gives them: `whsec_` and the base64 of random bytes. */
const prefix = 'whsec_'
const bytesMin = 24
const bytesMax = 64

/** The key inside a `whsec_` secret; throws when the text is not one of 24 to 64 bytes. */
export function signingKey(secret: string): Buffer {
  const text = secret.startsWith(prefix) ? secret.slice(prefix.length) : ''
  const key = Buffer.from(text, 'base64')
  // Buffer skips what is not base64, so only a text that comes back equal was one.
  const isExact = key.toString('base64').replace(/=+$/, '') === text.replace(/=+$/, '')
  if (!isExact || key.length < bytesMin || key.length > bytesMax) throw new Error('not a signing secret')
  return key
}

/** What a signing secret is sealed for, so that it opens only for the endpoint or organization it signs for. */
export function sealPurpose({ orgId, endpointId }: { orgId: string; endpointId: string | null }): string {
  return endpointId === null ? `webhook-org:${orgId}` : `webhook-endpoint:${endpointId}`
}
