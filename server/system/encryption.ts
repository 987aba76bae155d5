/**
 * AES-256-GCM: encrypts secrets that the server needs in clear again (signing secrets), and the cursors that clients
 * get.
 */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { chmodSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { makeOnce } from '../../db/rules/durable-files.ts'
import { readTextFile } from '../../db/rules/regular-files.ts'
import { keyBytes, keyIdOf, readKeyRing, type KeyRing } from './key-ring.ts'

/** Thrown when a secret was altered, or encrypted for another purpose or with another key. */
export class DecryptionError extends Error {}

export interface SecretBox {
  /** Encrypts a secret for one purpose; `decrypt` needs the same purpose. */
  encrypt(purpose: string, secret: string): string
  /** Throws when the text was altered, or encrypted for another purpose or with another key file. */
  decrypt(purpose: string, encrypted: string): string
}

export const keyFileName = 'secret.key'
const nonceBytes = 12
const tagBytes = 16

/**
 * Opens the box of a key ring, or without one the box of a data folder, whose key file (mode 0600) is created when it
 * is missing.
 */
export function openSecretBox(folder: string, ring: KeyRing | null = null): SecretBox {
  if (ring !== null) return secretBox(ring.encryption)
  const path = join(folder, keyFileName)
  return secretBox(readKeyFile(path) ?? [makeKey(path)])
}

/** A box that reads or creates its key file on first use, because commands that only read must not write. */
export function lazySecretBox(folder: string, ring: () => KeyRing | null = () => null): SecretBox {
  let box: SecretBox | null = null
  const opened = () => (box ??= openSecretBox(folder, ring()))
  return {
    encrypt: (purpose, secret) => opened().encrypt(purpose, secret),
    decrypt: (purpose, encrypted) => opened().decrypt(purpose, encrypted),
  }
}

/** The first key encrypts; each secret names the key that decrypts it. */
export function secretBox(keys: readonly Buffer[]): SecretBox {
  const keysById = new Map(keys.map((key) => [keyIdOf(key), key]))
  const [newest = Buffer.alloc(0)] = keys
  return {
    encrypt: (purpose, secret) =>
      `v1.${keyIdOf(newest)}.${encryptBytes(newest, purpose, Buffer.from(secret)).toString('base64url')}`,
    decrypt(purpose, encrypted) {
      const [version, usedKeyId = '', text] = encrypted.split('.')
      const key = keysById.get(usedKeyId)
      if (version !== 'v1' || key === undefined) {
        const contained = [...keysById.keys()].join(', ')
        throw new DecryptionError(
          `a secret is encrypted with the key ${usedKeyId}, but ${keyFileName} or the key ring contains ${contained}`,
        )
      }
      const clear = decryptBytes(key, purpose, Buffer.from(text ?? '', 'base64url'))
      if (clear === null)
        throw new DecryptionError('an encrypted secret was altered, or belongs to another purpose')
      return clear.toString()
    },
  }
}

/** Whether the box has the key of a secret. */
export function isOpenedBy(box: SecretBox, purpose: string, encrypted: string): boolean {
  try {
    box.decrypt(purpose, encrypted)
    return true
  } catch (error) {
    if (error instanceof DecryptionError) return false
    throw error
  }
}

/** AES-256-GCM: nonce, ciphertext, tag. `purpose` is authenticated too, so the bytes decrypt for that purpose only. */
export function encryptBytes(key: Buffer, purpose: string, clear: Buffer): Buffer {
  const nonce = randomBytes(nonceBytes)
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(purpose))
  return Buffer.concat([nonce, cipher.update(clear), cipher.final(), cipher.getAuthTag()])
}

/** Null when the bytes were altered, or encrypted for another purpose or with another key. */
export function decryptBytes(key: Buffer, purpose: string, bytes: Buffer): Buffer | null {
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, nonceBytes))
    decipher.setAAD(Buffer.from(purpose)).setAuthTag(bytes.subarray(-tagBytes))
    return Buffer.concat([decipher.update(bytes.subarray(nonceBytes, -tagBytes)), decipher.final()])
  } catch {
    return null
  }
}

/** The keys of a key file, newest first; null without a file. */
export function readKeyFile(path: string): readonly Buffer[] | null {
  let text: string
  try {
    text = readTextFile(path)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
    throw error
  }
  const keys = keysIn(text)
  // A key file that was restored by hand may be readable for others.
  if ((statSync(path).mode & 0o077) !== 0) chmodSync(path, 0o600)
  return keys
}

function keysIn(text: string): readonly Buffer[] {
  try {
    return readKeyRing(text).encryption
  } catch (error) {
    throw new Error(`${keyFileName} is corrupt: ${error instanceof Error ? error.message : String(error)}`)
  }
}

/** Durable before first use: secrets encrypted with a key that a power cut removed would be lost for good. */
function makeKey(path: string): Buffer {
  return Buffer.from(makeOnce(path, `${randomBytes(keyBytes).toString('hex')}\n`).trim(), 'hex')
}

/** Texts that leave the server and come back: cursors, and tokens of sign-ins that are not complete. */
export interface Cipher {
  encrypt(purpose: string, value: unknown): string
  /** The value encrypted for the same purpose, or null for any other text. */
  decrypt(purpose: string, text: string): unknown
}

/** From the shortest value, one character of JSON, to more than any position needs. */
const encryptedText = /^[A-Za-z0-9_-]{39,6000}$/

/** `secretHex` is the store's 32-byte secret, so cursors outlive restarts. */
export function makeCipher(secretHex: string): Cipher {
  const key = Buffer.from(secretHex, 'hex')
  return {
    encrypt: (purpose, value) =>
      encryptBytes(key, purpose, Buffer.from(JSON.stringify(value))).toString('base64url'),
    decrypt(purpose, text) {
      if (!encryptedText.test(text)) return null
      const bytes = Buffer.from(text, 'base64url')
      if (bytes.toString('base64url') !== text) return null // decoding ignores a stray last character
      const clear = decryptBytes(key, purpose, bytes)
      return clear === null ? null : JSON.parse(clear.toString())
    },
  }
}

/** Texts that every process with the keys of the box can decrypt. */
export function boxCipher(box: SecretBox): Cipher {
  return {
    encrypt: (purpose, value) => box.encrypt(purpose, JSON.stringify(value)),
    decrypt: (purpose, text) =>
      isOpenedBy(box, purpose, text) ? JSON.parse(box.decrypt(purpose, text)) : null,
  }
}
