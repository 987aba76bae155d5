/** The keys that verify signatures of agents: public keys of operators by thumbprint, and nonces seen once. */
import { webCrypto } from '../platform/web-crypto.ts'
import { ComponentError, targetOf } from './signature-base.ts'

/** The public keys of one operator, pinned in advance: nothing is fetched when a request arrives. */
export interface KeyDirectory {
  operator: string
  /** Where the operator publishes the keys. A `Signature-Agent` of another origin is then refused. */
  url?: string | undefined
  /** JSON Web Keys. Other keys than public Ed25519 keys are skipped. */
  keys: readonly { [field: string]: unknown }[]
}

export interface KnownKey {
  operator: string
  /** `https://host` of the directory, if it is known. */
  origin: string | null
  /** The thumbprint of RFC 7638 (RFC 8037 for Ed25519): the `keyid` of a signature. */
  keyId: string
  key: CryptoKey
  notBeforeMs: number
  expiresMs: number
}

export interface Keyring {
  byId: ReadonlyMap<string, readonly KnownKey[]>
  /** Keys that cannot verify signatures: private, malformed or of another kind. */
  skipped: number
}

const keysMax = 10_000

/** Imports the keys once, because that takes longer than to verify a signature. */
export async function createKeyring(directories: readonly KeyDirectory[]): Promise<Keyring> {
  const byId = new Map<string, KnownKey[]>()
  let total = 0
  let skipped = 0
  for (const { operator, url, keys } of directories) {
    const origin = url === undefined ? null : originOf(url)
    for (const jwk of keys) {
      if (++total > keysMax) throw new RangeError(`there are more than ${keysMax} keys`)
      const imported = await importKey(jwk)
      if (imported === null) skipped++
      else byId.set(imported.keyId, [...(byId.get(imported.keyId) ?? []), { operator, origin, ...imported }])
    }
  }
  return { byId, skipped }
}

/** `https://host` of a URL that an agent or a directory has; null if it is not such a URL. */
export function originOf(url: string): string | null {
  try {
    const { scheme, authority } = targetOf({ url })
    return scheme === 'https' ? `https://${authority}` : null
  } catch (error) {
    if (error instanceof ComponentError) return null
    throw error
  }
}

async function importKey(jwk: {
  [field: string]: unknown
}): Promise<Omit<KnownKey, 'operator' | 'origin'> | null> {
  const { kty, crv, x } = jwk
  if (kty !== 'OKP' || crv !== 'Ed25519' || typeof x !== 'string' || 'd' in jwk) return null
  const bytes = fromBase64Url(x)
  if (bytes?.length !== 32 || toBase64Url(bytes) !== x) return null
  const subtle = await webCrypto()
  const canonical = new TextEncoder().encode(JSON.stringify({ crv, kty, x }))
  return {
    keyId: toBase64Url(new Uint8Array(await subtle.digest('SHA-256', canonical))),
    key: await subtle.importKey('raw', bytes, 'Ed25519', false, ['verify']),
    notBeforeMs: timeOf(jwk['nbf'], -Infinity),
    expiresMs: timeOf(jwk['exp'], Infinity),
  }
}

/** Seconds, as JWTs have them, but some directories publish milliseconds. */
function timeOf(value: unknown, missing: number): number {
  if (typeof value !== 'number' || !Number.isFinite(value)) return missing
  return value > 100_000_000_000 ? value : value * 1_000
}

/** Null for anything else than base64url of at most 75 bytes. */
export function fromBase64Url(text: string): Uint8Array<ArrayBuffer> | null {
  if (!/^[A-Za-z0-9_-]{1,100}$/.test(text) || text.length % 4 === 1) return null
  const base64 = text.replaceAll('-', '+').replaceAll('_', '/')
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))
}

function toBase64Url(bytes: Uint8Array): string {
  const base64 = btoa(String.fromCharCode(...bytes))
  return base64.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}

/** Remembers the nonces of valid signatures until they expire, so that a replayed request is recognized. */
export interface NonceMemory {
  /** `full` when no more nonces can be remembered, so nobody knows whether this one is new. */
  use(nonce: string, untilMs: number, nowMs: number): NonceUse | Promise<NonceUse>
}

export type NonceUse = 'new' | 'seen' | 'full'

/** A memory of this process for at most `max` nonces. Several processes need one that they share. */
export function createNonceMemory(max = 100_000): NonceMemory {
  const expiries = new Map<string, number>()
  let nextExpiryMs = Infinity

  /** Visits all nonces only when at least one of them has expired. */
  function deleteExpired(nowMs: number): void {
    if (nowMs < nextExpiryMs) return
    nextExpiryMs = Infinity
    for (const [nonce, untilMs] of expiries) {
      if (untilMs <= nowMs) expiries.delete(nonce)
      else nextExpiryMs = Math.min(nextExpiryMs, untilMs)
    }
  }

  return {
    use(nonce, untilMs, nowMs) {
      if ((expiries.get(nonce) ?? -Infinity) > nowMs) return 'seen'
      if (expiries.size >= max) deleteExpired(nowMs)
      if (expiries.size >= max) return 'full'
      expiries.set(nonce, untilMs)
      nextExpiryMs = Math.min(nextExpiryMs, untilMs)
      return 'new'
    },
  }
}
