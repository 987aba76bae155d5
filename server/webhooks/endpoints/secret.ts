/** Reads signing secrets in the form Standard Webhooks gives them: `whsec_` and the base64 of random bytes. */

const prefix = 'whsec_'
const bytesMin = 24
const bytesMax = 64

/** The key inside a `whsec_` secret; throws when the text is not one of 24 to 64 bytes. */
export function signingKey(secret: string): Buffer {
  const text = secret.startsWith(prefix) ? secret.slice(prefix.length) : ''
  const key = Buffer.from(text, 'base64')
  // Buffer skips what is not base64, so only a text that comes back equal was one.
  const isExact = key.toString('base64').replace(/=+$/, '') === text.replace(/=+$/, '')
  if (!isExact || key.length < bytesMin || key.length > bytesMax) throw new Error('not a signing secret')
  return key
}
