/** Web Crypto of the runtime, for what verifies signatures. */

/** Node.js 18 has no global `crypto`. */
export async function webCrypto(): Promise<SubtleCrypto> {
  if (globalThis.crypto !== undefined) return crypto.subtle
  const name = 'node:crypto' // not a literal in import(), so that bundlers ignore it
  const module = (await import(name)) as { webcrypto: { subtle: SubtleCrypto } }
  return module.webcrypto.subtle
}
