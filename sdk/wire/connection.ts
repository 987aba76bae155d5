/** An address of the appliance and the key for it, checked once, so that a mistake shows at the first start. */
import { requireKey, type KeyKind } from '../client/keys.ts'

/** The one part of the platform that every call goes through; tests and proxies may hand in their own. */
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
  /** What the host calls its option, for the message. */
  option: string
  fetch?: Fetch | undefined
  requestTimeoutMs?: number | undefined
}

export function connectionTo(options: ConnectionOptions): Connection {
  if ('document' in globalThis && 'window' in globalThis) {
    throw new TypeError(
      `${options.option} must never reach a browser: forward events to your backend instead`,
    )
  }
  return {
    url: checkedUrl(options.url),
    key: requireKey(options.option, options.key, options.kind),
    // Called without `this`: some edge runtimes refuse a fetch that is a method of something else.
    fetch: options.fetch ?? ((url, init) => fetch(url, init)),
    requestTimeoutMs: options.requestTimeoutMs ?? 30_000,
  }
}

function checkedUrl(text: string): string {
  let url: URL
  try {
    url = new URL(text)
  } catch {
    throw new TypeError('url must be the address of the appliance, such as https://sightglass.example')
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') throw new TypeError('url must be http or https')
  if (url.username !== '' || url.search !== '' || url.hash !== '') {
    throw new TypeError('url must be an address only, without a user, a query or a fragment')
  }
  return url.href.replace(/\/+$/, '')
}

/** Compressing for a server on the same machine costs both sides time and saves nothing. */
export function isLoopback(url: string): boolean {
  const { hostname } = new URL(url)
  return hostname === 'localhost' || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname)
}
