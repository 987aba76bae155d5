/** The address of the appliance and the key for it, validated once, so that a mistake shows at start. */

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

/** Without a trailing slash. Throws unless it is the address of an appliance. */
export function checkedUrl(text: string): string {
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

/** The prefix shows the kind of a key, so that a secret in the wrong place is caught at start. */
const kinds = { publishable: 'agtx_pk_', ingest: 'agtx_ik_', secret: 'agtx_sk_' } as const
type KeyKind = keyof typeof kinds

/** Throws unless `key` is of this kind. The message never contains the key. */
export function requireKey(option: string, key: unknown, kind: KeyKind): string {
  if (typeof key === 'string' && isKey(key, kind)) return key
  const givenKind = (Object.keys(kinds) as KeyKind[]).find((candidate) =>
    String(key).startsWith(kinds[candidate]),
  )
  if (givenKind === undefined || givenKind === kind) {
    throw new TypeError(`${option} must be a key such as ${kinds[kind]}… with 32 characters after the prefix`)
  }
  const advice = kind === 'publishable' ? ', which is secret and must stay on your server' : ''
  throw new TypeError(
    `${option} must be ${withArticle(kind)} key (${kinds[kind]}…), but this is ${withArticle(givenKind)} key${advice}`,
  )
}

const withArticle = (kind: KeyKind): string => (kind === 'ingest' ? `an ${kind}` : `a ${kind}`)

function isKey(key: string, kind: KeyKind): boolean {
  return key.startsWith(kinds[kind]) && /^[\w-]{32}$/.test(key.slice(kinds[kind].length))
}
