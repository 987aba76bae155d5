/** Generates all ids, keys and tokens, from the system's random source, and names the two fixed key ids. */
import { randomBytes } from 'node:crypto'

export type IdPrefix =
  | 'org'
  | 'usr'
  | 'key'
  | 'aud'
  | 'ses'
  | 'wh'
  | 'ep'
  | 'rul'
  | 'inc'
  | 'lea'
  | 'inv'
  | 'req'
  | 'view'
  | 'era'
  | 'shr'

const idBytes = 16

/** Random bytes are generated for many ids at once, because every request needs an id. */
let pool = Buffer.alloc(idBytes * 256)
let poolAt = pool.length

/** A new id such as `key_k3vX…`: the prefix and 16 random bytes as 22 base64url characters. */
export function newId(prefix: IdPrefix): string {
  if (poolAt === pool.length) {
    pool = randomBytes(pool.length)
    poolAt = 0
  }
  return `${prefix}_${pool.toString('base64url', poolAt, (poolAt += idBytes))}`
}

const kindMark = { ingest: 'ik', secret: 'sk', publishable: 'pk' } as const

/** A new key of contract §2: `agtx_ik_` and 32 base64url characters (24 random bytes). Shown once, never stored. */
export function newApiKey(kind: keyof typeof kindMark): string {
  return `agtx_${kindMark[kind]}_${randomBytes(24).toString('base64url')}`
}

/** A one-time or sign-in token: 32 random bytes, base64url. */
export function newToken(): string {
  return randomBytes(32).toString('base64url')
}

/** Of a share link: 16 random bytes as 22 base64url characters. */
export function newShareToken(): string {
  return randomBytes(16).toString('base64url')
}

/** Names a data folder in its backups: 32 hex digits. */
export function newApplianceId(): string {
  return randomBytes(16).toString('hex')
}

/** A webhook signing secret of Standard Webhooks: `whsec_` and the base64 of 32 random bytes. */
export function newSigningSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`
}

/** Random base32 (RFC 4648), 5 bits per character, for TOTP seeds and recovery codes. */
export function newBase32(chars: number): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'
  return Array.from(randomBytes(chars), (byte) => alphabet.charAt(byte & 31)).join('')
}

/** Hex SHA-256: the only form in which keys and tokens reach the store. */
export function sha256Hex(text: string): string {
  return Bun.SHA256.hash(text, 'hex')
}

/** The key ids of batches that the command line stores without an ingest key. */
export const demoKeyId = 'demo'
export const importKeyId = 'import'
