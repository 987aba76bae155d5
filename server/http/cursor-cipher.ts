/** Encrypts positions into opaque cursors that only this store can read and nobody can alter. */
import { decryptBytes, encryptBytes } from '../system/encryption.ts'

export interface CursorCipher {
  encrypt(purpose: string, value: unknown): string
  /** The value encrypted for the same purpose, or null for any other text. */
  decrypt(purpose: string, text: string): unknown
}

/** From the shortest value, one character of JSON, to more than any position needs. */
const encryptedText = /^[A-Za-z0-9_-]{39,6000}$/

/** `secretHex` is the store's 32-byte secret, so cursors outlive restarts. */
export function makeCursorCipher(secretHex: string): CursorCipher {
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
