/**
 * Reads a key ring: the keys of an appliance that are not files of its data folder, so that several nodes share them.
 *
 * A line of 64 hex digits is an encryption key. The first one is the newest and encrypts; all decrypt. A PEM block is
 * an audit signing key. `cat secret.key audit-signing.key` makes a ring of the keys of a data folder, and a new first
 * line replaces the encryption key. Without a PEM block the signing key is derived from the encryption key.
 */
import { createHash, createPrivateKey, hkdfSync, type KeyObject } from 'node:crypto'

export interface KeyRing {
  /** At least one. The first encrypts, all decrypt. */
  encryption: readonly Buffer[]
  /** At least one. The first signs, all are trusted. */
  signing: readonly KeyObject[]
}

export const keyBytes = 32
const pemBlock = /-----BEGIN PRIVATE KEY-----[\s\S]*?-----END PRIVATE KEY-----/g
const keyLine = /^[0-9a-f]{64}$/i

/** Throws when the text is not a ring. The message never contains a part of it. */
export function readKeyRing(text: string): KeyRing {
  const signing = [...text.matchAll(pemBlock)].map(([pem]) => signingKeyOf(pem))
  const encryption = readKeyLines(text.replace(pemBlock, ''))
  return { encryption, signing: [...signing, ...encryption.map(derivedSigningKey)] }
}

/** Lines that begin with # are comments. */
function readKeyLines(text: string): Buffer[] {
  const lines = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
  if (lines.length === 0 || !lines.every((line) => keyLine.test(line)))
    throw new Error(`it must contain keys of ${keyBytes} bytes in hex, one per line`)
  return lines.map((line) => Buffer.from(line, 'hex'))
}

/** Names a key in backups and encrypted secrets. */
export function keyIdOf(key: Buffer): string {
  return createHash('sha256').update(key).digest('hex').slice(0, 8)
}

function signingKeyOf(pem: string): KeyObject {
  let key: KeyObject
  try {
    key = createPrivateKey(pem)
  } catch (error) {
    throw new Error('it contains a damaged signing key', { cause: error })
  }
  if (key.asymmetricKeyType !== 'ed25519') throw new Error('it contains a signing key that is not Ed25519')
  return key
}

/** PKCS #8 around the 32 bytes of an Ed25519 seed (RFC 8410). */
const seedPrefix = Buffer.from('302e020100300506032b657004220420', 'hex')
const derivation = 'sightglass-audit-signing-1'

/** Every node derives the same key. */
function derivedSigningKey(key: Buffer): KeyObject {
  const seed = Buffer.from(hkdfSync('sha256', key, Buffer.alloc(0), derivation, keyBytes))
  return createPrivateKey({ key: Buffer.concat([seedPrefix, seed]), format: 'der', type: 'pkcs8' })
}
