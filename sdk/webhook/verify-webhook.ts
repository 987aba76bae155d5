/** `verifyWebhook`: verifies the signature of a delivery (Standard Webhooks) and parses its payload. */
import { nowMs as now } from '../platform/clock.ts'
import { webCrypto } from '../platform/web-crypto.ts'

export interface VerifyOptions {
  /** Accepted difference between the clock and the timestamp of the delivery. Default: 300. */
  toleranceSeconds?: number
  /** Milliseconds since 1970, for tests. */
  nowMs?: () => number
}

/** `request.headers`, Node's `req.headers`, or any object of names and values. */
export type WebhookHeaders = Headers | { [name: string]: string | string[] | undefined }

export type WebhookFault =
  'missing_header' | 'wrong_secret' | 'too_old' | 'too_new' | 'wrong_signature' | 'not_json'

export class WebhookError extends Error {
  readonly code: WebhookFault
  constructor(code: WebhookFault, message: string) {
    super(message)
    this.name = 'WebhookError'
    this.code = code
  }
}

/** The payloads of the appliance. A test delivery has the payload that you sent. */
export interface WebhookPayload {
  type: 'trace.batch' | 'alert.opened' | 'alert.resolved' | 'report.ready' | (string & {})
  timestamp?: string
  data: { [field: string]: unknown }
}

/**
 * Resolves with the payload, or rejects with a `WebhookError`. `body` must be the raw body; parsed and serialized again
 * it no longer matches. With several secrets, one must match, which helps during a rotation.
 */
export async function verifyWebhook<Payload = WebhookPayload>(
  headers: WebhookHeaders,
  body: string | Uint8Array,
  secret: string | string[],
  options: VerifyOptions = {},
): Promise<Payload> {
  const id = required(headers, 'webhook-id')
  const timestamp = required(headers, 'webhook-timestamp')
  const signatures = signaturesOf(required(headers, 'webhook-signature'))
  const keys = [secret].flat().map(keyBytes)
  checkTime(timestamp, options)
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body
  const signed = joined(new TextEncoder().encode(`${id}.${timestamp}.`), bytes)
  const fits = await Promise.all(
    keys.flatMap((key) => signatures.map((signature) => isSignature(key, signature, signed))),
  )
  if (!fits.includes(true))
    throw new WebhookError('wrong_signature', 'no signature matches the body and the secret')
  try {
    return JSON.parse(new TextDecoder().decode(bytes)) as Payload
  } catch {
    throw new WebhookError('not_json', 'the signature is valid, but the body is not JSON')
  }
}

function required(headers: WebhookHeaders, name: string): string {
  const value = headers instanceof Headers ? headers.get(name) : headerOf(headers, name)
  if (typeof value === 'string' && value !== '') return value
  throw new WebhookError('missing_header', `the header ${name} is missing`)
}

function headerOf(
  headers: { [name: string]: string | string[] | undefined },
  name: string,
): string | undefined {
  const value =
    headers[name] ??
    headers[Object.keys(headers).find((headerName) => headerName.toLowerCase() === name) ?? name]
  return Array.isArray(value) ? value.join(' ') : value
}

/** The signatures of version `v1`; others are ignored. */
function signaturesOf(header: string): Uint8Array<ArrayBuffer>[] {
  return header
    .split(' ')
    .filter((entry) => entry.startsWith('v1,'))
    .map((entry) => fromBase64(entry.slice(3)))
    .filter((bytes) => bytes !== null)
}

function keyBytes(secret: string): Uint8Array<ArrayBuffer> {
  const bytes = fromBase64(secret.replace(/^whsec_/, ''))
  if (bytes !== null && bytes.length > 0) return bytes
  throw new WebhookError('wrong_secret', 'the secret must be whsec_… with base64 after the prefix')
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> | null {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0))
  } catch {
    return null
  }
}

function checkTime(timestamp: string, { toleranceSeconds = 300, nowMs = now }: VerifyOptions): void {
  const seconds = /^\d{1,15}$/.test(timestamp) ? Number(timestamp) : Number.NaN
  if (Number.isNaN(seconds))
    throw new WebhookError('missing_header', 'the header webhook-timestamp is not a number of seconds')
  const ageSeconds = nowMs() / 1_000 - seconds
  if (ageSeconds > toleranceSeconds)
    throw new WebhookError('too_old', 'the delivery is too old and may be a replay attack')
  if (-ageSeconds > toleranceSeconds)
    throw new WebhookError('too_new', 'the timestamp of the delivery is in the future')
}

function joined(head: Uint8Array, tail: Uint8Array): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(head.length + tail.length)
  bytes.set(head)
  bytes.set(tail, head.length)
  return bytes
}

/** `subtle.verify` compares in constant time. */
async function isSignature(
  key: Uint8Array<ArrayBuffer>,
  signature: Uint8Array<ArrayBuffer>,
  signed: Uint8Array<ArrayBuffer>,
): Promise<boolean> {
  const subtle = await webCrypto()
  const imported = await subtle.importKey('raw', key, { name: 'HMAC', hash: 'SHA-256' }, false, ['verify'])
  return subtle.verify('HMAC', imported, signature, signed)
}
