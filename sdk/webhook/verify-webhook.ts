/** `verifyWebhook`: whether a delivery was signed with your secret (Standard Webhooks), and what it says. */
import { nowMs as now } from '../platform/clock.ts'

export interface VerifyOptions {
  /** How old or how far ahead the time of a delivery may be, 300 by default. */
  toleranceSeconds?: number
  /** Milliseconds since 1970, for tests. */
  nowMs?: () => number
}

/** The headers of a request: `request.headers`, Node's `req.headers`, or any object of names and values. */
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

/** The payloads the appliance sends by itself. Payloads of your own test deliveries are whatever you sent. */
export interface WebhookPayload {
  type: 'trace.batch' | 'alert.opened' | 'alert.resolved' | (string & {})
  timestamp?: string
  data: { [member: string]: unknown }
}

/**
 * Resolves with the payload, or rejects with a `WebhookError`. `body` must be the bytes or text as they came: parsed
 * and written again they no longer match. With several secrets one must fit, as while a secret rotates.
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
    keys.flatMap((key) => signatures.map((each) => isSignature(key, each, signed))),
  )
  if (!fits.includes(true))
    throw new WebhookError('wrong_signature', 'no signature fits the body and the secret')
  try {
    return JSON.parse(new TextDecoder().decode(bytes)) as Payload
  } catch {
    throw new WebhookError('not_json', 'the body is signed, but it is not JSON')
  }
}

function required(headers: WebhookHeaders, name: string): string {
  const value = headers instanceof Headers ? headers.get(name) : memberOf(headers, name)
  if (typeof value === 'string' && value !== '') return value
  throw new WebhookError('missing_header', `the header ${name} is missing`)
}

function memberOf(
  headers: { [name: string]: string | string[] | undefined },
  name: string,
): string | undefined {
  const value =
    headers[name] ?? headers[Object.keys(headers).find((each) => each.toLowerCase() === name) ?? name]
  return Array.isArray(value) ? value.join(' ') : value
}

/** `v1,<base64>` entries; other versions are for others. */
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
  throw new WebhookError('wrong_secret', 'a secret looks like whsec_… with base64 after the prefix')
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
    throw new WebhookError('missing_header', 'the header webhook-timestamp is not a time')
  const ageSeconds = nowMs() / 1_000 - seconds
  if (ageSeconds > toleranceSeconds)
    throw new WebhookError('too_old', 'the delivery is too old: it may be a replay')
  if (-ageSeconds > toleranceSeconds) throw new WebhookError('too_new', 'the delivery is from the future')
}

function joined(head: Uint8Array, tail: Uint8Array): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(head.length + tail.length)
  bytes.set(head)
  bytes.set(tail, head.length)
  return bytes
}

/** `verify` of the platform compares in constant time. */
async function isSignature(
  key: Uint8Array<ArrayBuffer>,
  signature: Uint8Array<ArrayBuffer>,
  signed: Uint8Array<ArrayBuffer>,
): Promise<boolean> {
  const subtle = await webCrypto()
  const imported = await subtle.importKey('raw', key, { name: 'HMAC', hash: 'SHA-256' }, false, ['verify'])
  return subtle.verify('HMAC', imported, signature, signed)
}

/** Everywhere the same, but Node.js 18 does not have it as a global yet. */
async function webCrypto(): Promise<SubtleCrypto> {
  if (globalThis.crypto !== undefined) return crypto.subtle
  const name = 'node:crypto' // not a literal below, so that bundlers for the edge leave it alone
  const module = (await import(name)) as { webcrypto: { subtle: SubtleCrypto } }
  return module.webcrypto.subtle
}
