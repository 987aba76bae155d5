/** The address of the appliance and the key for it, validated once, so that a mistake shows at start. */
import { requireKey, type KeyKind } from '../client/keys.ts'

/** Replaceable in tests and for proxies. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>

export interface Connection {
  /** Without a trailing slash. */
  url: string
  key: string
  fetch: Fetch
  requestTimeoutMs: number
}

export interface ConnectionOptions {
  url: string
  key: unknown
  kind: KeyKind
  /** The name of the option, for error messages. */
  option: string
  fetch?: Fetch | undefined
  requestTimeoutMs?: number | undefined
}

export function connectionTo(options: ConnectionOptions): Connection {
  if ('document' in globalThis && 'window' in globalThis) {
    throw new TypeError(
      `${options.option} must not be used in a browser: send events to a relay on your backend`,
    )
  }
  return {
    url: checkedUrl(options.url),
    key: requireKey(options.option, options.key, options.kind),
    // Called without `this`, because some edge runtimes reject a detached method.
    fetch: options.fetch ?? ((url, init) => fetch(url, init)),
    requestTimeoutMs: options.requestTimeoutMs ?? 30_000,
  }
}

function checkedUrl(text: string): string {
  let url: URL
  try {
    url = new URL(text)
  } catch {
    throw new TypeError('url must be the URL of the appliance, such as https://sightglass.example')
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw new TypeError('url must begin with http:// or https://')
  if (url.username !== '' || url.search !== '' || url.hash !== '') {
    throw new TypeError('url must not have a user, a query or a fragment')
  }
  return url.href.replace(/\/+$/, '')
}

/** Compression for a server on the same machine only costs time. */
export function isLoopback(url: string): boolean {
  const { hostname } = new URL(url)
  return hostname === 'localhost' || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname)
}
