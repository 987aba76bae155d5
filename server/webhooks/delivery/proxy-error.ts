/** Says of what failed behind a proxy whether the proxy itself is at fault, which is ours to mend, or the receiver. */

/** What `classify` knows: the proxy is out of reach, wants other credentials, or could not get to the receiver. */
export type ProxyCode = 'PROXY_UNREACHABLE' | 'PROXY_CREDENTIALS' | 'PROXY_REFUSED'

/** All of them come before the proxy took the connection: with a proxy nothing else is connected to. */
const neverReached = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EHOSTUNREACH', 'ENETUNREACH', 'EADDRNOTAVAIL'])

/** The error under the proxy's own code, or as it was when it says nothing about the proxy. */
export function proxyFault(thrown: unknown): unknown {
  const code = thrown instanceof Error && 'code' in thrown ? String(thrown.code) : ''
  if (neverReached.has(code)) return coded('PROXY_UNREACHABLE', thrown)
  if (code !== 'ERR_PROXY_TUNNEL') return thrown
  // "Proxy refused to open a tunnel: 407 Proxy Authentication Required"
  const isCredentials = / 407\b/.test(thrown instanceof Error ? thrown.message : '')
  return coded(isCredentials ? 'PROXY_CREDENTIALS' : 'PROXY_REFUSED', thrown)
}

/** For http there is no tunnel: the proxy answers in the receiver's place, and 407 is its own. */
export function credentialsRefused(): Error {
  return coded('PROXY_CREDENTIALS', undefined)
}

function coded(code: ProxyCode, cause: unknown): Error {
  return Object.assign(new Error(code, { cause }), { code })
}
