/** Seals small positions into opaque text that only this store can read and nobody can alter (AES-256-GCM). */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'

export interface Seal {
  close(purpose: string, value: unknown): string
  /** The value sealed for the same purpose, or null when the text is not ours. */
  open(purpose: string, text: string): unknown
}

const ivBytes = 12
const tagBytes = 16
/** From the shortest value, one character of JSON, to more than any position takes. */
const sealedText = /^[A-Za-z0-9_-]{39,6000}$/

/** `secretHex` is the store's 32-byte secret, so that positions outlive restarts. */
export function sealWith(secretHex: string): Seal {
  const key = Buffer.from(secretHex, 'hex')
  return {
    close(purpose, value) {
      const iv = randomBytes(ivBytes)
      const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(purpose))
      const body = Buffer.concat([cipher.update(JSON.stringify(value), 'utf8'), cipher.final()])
      return Buffer.concat([iv, body, cipher.getAuthTag()]).toString('base64url')
    },
    open(purpose, text) {
      if (!sealedText.test(text)) return null
      const bytes = Buffer.from(text, 'base64url')
      if (bytes.toString('base64url') !== text) return null // decoding passes over a stray last character
      try {
        const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, ivBytes))
        decipher.setAAD(Buffer.from(purpose)).setAuthTag(bytes.subarray(-tagBytes))
        const body = bytes.subarray(ivBytes, -tagBytes)
        return JSON.parse(decipher.update(body, undefined, 'utf8') + decipher.final('utf8'))
      } catch {
        return null
      }
    },
  }
}
