/** Seals secrets that must come back in clear (signing secrets), under a key file in the data folder (AES-256-GCM). */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'
import { chmodSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { makeOnce } from '../../db/rules/durable-files.ts'

/** A secret that this box cannot open. */
export class SealedError extends Error {}

export interface SecretBox {
  /** `purpose` says what the secret is for; it opens only for the same purpose. */
  seal(purpose: string, secret: string): string
  /** Throws when it was sealed for another purpose or under another key file, or was altered. */
  open(purpose: string, sealed: string): string
}

export const keyFileName = 'secret.key'
const keyBytes = 32
const nonceBytes = 12
const tagBytes = 16

/** Opens the box of a data folder, making its key file (mode 0600) when there is none. */
export function openSecretBox(folder: string): SecretBox {
  const path = join(folder, keyFileName)
  return secretBox(readKey(path) ?? makeKey(path))
}

/** A box that reads or makes its key file only when it is first used: verbs that only look must not write. */
export function lazySecretBox(folder: string): SecretBox {
  let box: SecretBox | null = null
  const opened = () => (box ??= openSecretBox(folder))
  return {
    seal: (purpose, secret) => opened().seal(purpose, secret),
    open: (purpose, sealed) => opened().open(purpose, sealed),
  }
}

export function secretBox(key: Buffer): SecretBox {
  const keyId = createHash('sha256').update(key).digest('hex').slice(0, 8)
  return {
    seal(purpose, secret) {
      const nonce = randomBytes(nonceBytes)
      const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(purpose))
      const body = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()])
      return `v1.${keyId}.${Buffer.concat([nonce, body, cipher.getAuthTag()]).toString('base64url')}`
    },
    open(purpose, sealed) {
      const [version, sealedBy, text] = sealed.split('.')
      if (version !== 'v1' || sealedBy !== keyId) {
        throw new SealedError(
          `a secret was sealed under the key ${sealedBy}, but ${keyFileName} holds ${keyId}`,
        )
      }
      const bytes = Buffer.from(text ?? '', 'base64url')
      const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, nonceBytes))
      decipher.setAAD(Buffer.from(purpose)).setAuthTag(bytes.subarray(-tagBytes))
      const body = bytes.subarray(nonceBytes, -tagBytes)
      try {
        return decipher.update(body, undefined, 'utf8') + decipher.final('utf8')
      } catch {
        throw new SealedError('a sealed secret was altered, or is for another purpose')
      }
    },
  }
}

function readKey(path: string): Buffer | null {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
    throw error
  }
  const key = Buffer.from(text.trim(), 'hex')
  if (key.length !== keyBytes)
    throw new Error(`${keyFileName} is damaged: it must hold ${keyBytes} bytes in hex`)
  // A copy that was restored by hand may have come out readable for others.
  if ((statSync(path).mode & 0o077) !== 0) chmodSync(path, 0o600)
  return key
}

/** On disk whole or not at all: what is sealed under a key that a power cut took away would be lost for good. */
function makeKey(path: string): Buffer {
  return Buffer.from(makeOnce(path, `${randomBytes(keyBytes).toString('hex')}\n`).trim(), 'hex')
}
