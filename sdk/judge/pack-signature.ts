/** Who signs evidence packs: the keys of releases, what they sign, and the check where only Web Crypto is available. */
import { webCrypto } from '../platform/web-crypto.ts'
import { packFormat } from './evidence-pack.ts'
import { fromBase64Url } from './signature-keys.ts'

/**
 * Public keys (Ed25519, base64url) that sign the packs of releases. A new key is added a release before the old one is
 * removed.
 */
export const releaseKeys: readonly string[] = ['rVvh3Mk5OynoJduSuT_OXgu6GylVhb_AT0s0CrT2wbQ']

/**
 * The text that a signature covers. `digest` is SHA-256 (hex) of the document without `signature` as compact JSON. The
 * tag keeps the signature from being one of something else that the key signs.
 */
export const signedText = (digest: string): string => JSON.stringify([packFormat, digest])

/** Whether a release signed the document, a parsed pack file. */
export async function isReleasePack(document: unknown): Promise<boolean> {
  if (typeof document !== 'object' || document === null) return false
  const { signature, ...packContent } = document as { signature?: { key?: unknown; value?: unknown } | null }
  const { key, value } = signature ?? {}
  if (typeof key !== 'string' || !releaseKeys.includes(key) || typeof value !== 'string') return false
  const publicKey = fromBase64Url(key)
  const bytes = fromBase64Url(value)
  if (publicKey === null || bytes?.length !== 64) return false
  const subtle = await webCrypto()
  const encoder = new TextEncoder()
  const hash = new Uint8Array(await subtle.digest('SHA-256', encoder.encode(JSON.stringify(packContent))))
  const digest = Array.from(hash, (byte) => byte.toString(16).padStart(2, '0')).join('')
  const imported = await subtle.importKey('raw', publicKey, 'Ed25519', false, ['verify'])
  return subtle.verify('Ed25519', imported, bytes, encoder.encode(signedText(digest)))
}
