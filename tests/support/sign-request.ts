/** Signs requests as agents do, without the code under test: the signature base is written out here. */
import { createHash, createPrivateKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { privateTestKey } from './signature-vectors.ts'

export const signedAtSeconds = 1_795_000_000

export interface SignOptions {
  method?: string
  /** Without query parameters that a URL parser would rewrite. */
  url?: string
  /** The Signature-Agent header. */
  agent?: string | null
  label?: string
  /** Identifiers of components as they are in Signature-Input: `"@authority"`. */
  cover?: string[]
  /** Parameters in this order; `null` leaves one out. */
  created?: number | null
  expires?: number | null
  keyid?: string | null
  alg?: string | null
  nonce?: string | null
  tag?: string | null
}

export interface SignedHeaders {
  method: string
  url: string
  headers: [name: string, value: string][]
}

export interface Signer {
  jwk: { kty: string; crv: string; x: string }
  keyId: string
  sign(options?: SignOptions): SignedHeaders
}

/** A signer with a key of its own, or with the example key of the RFC. */
export function createSigner(knownKey?: 'test-key-ed25519'): Signer {
  const privateKey =
    knownKey === undefined
      ? generateKeyPairSync('ed25519').privateKey
      : createPrivateKey({ key: privateTestKey, format: 'jwk' })
  const { x = '' } = privateKey.export({ format: 'jwk' })
  const keyId = createHash('sha256').update(`{"crv":"Ed25519","kty":"OKP","x":"${x}"}`).digest('base64url')
  return {
    jwk: { kty: 'OKP', crv: 'Ed25519', x },
    keyId,
    sign: (options = {}) => signed(privateKey, keyId, options),
  }
}

function signed(privateKey: KeyObject, keyId: string, options: SignOptions): SignedHeaders {
  const { method = 'GET', url = 'https://shop.example/products/7', agent = null, label = 'sig1' } = options
  const cover = options.cover ?? ['"@authority"', ...(agent === null ? [] : ['"signature-agent"'])]
  const parameters = {
    created: signedAtSeconds,
    expires: signedAtSeconds + 300,
    keyid: keyId,
    alg: 'ed25519',
    nonce: null,
    tag: 'web-bot-auth',
    ...Object.fromEntries(Object.entries(options).filter(([name]) => names.includes(name))),
  } as { [name: string]: number | string | null }
  const input = `(${cover.join(' ')})${names
    .filter((name) => parameters[name] !== null)
    .map((name) => `;${name}=${JSON.stringify(parameters[name])}`)
    .join('')}`
  const lines = cover.map((component) => `${component}: ${valueOf(component, { method, url, agent })}`)
  const base = [...lines, `"@signature-params": ${input}`].join('\n')
  const signature = sign(null, Buffer.from(base), privateKey).toString('base64')
  const headers: [string, string][] = [
    ['Signature-Input', `${label}=${input}`],
    ['Signature', `${label}=:${signature}:`],
  ]
  if (agent !== null) headers.unshift(['Signature-Agent', agent])
  return { method, url, headers }
}

const names = ['created', 'expires', 'keyid', 'alg', 'nonce', 'tag']

function valueOf(
  component: string,
  { method, url, agent }: { method: string; url: string; agent: string | null },
): string {
  const { host, pathname, search } = new URL(url)
  const key = /^"signature-agent";key="(\w+)"$/.exec(component)?.[1]
  if (key !== undefined) return new RegExp(`${key}=("[^"]*"(?:;\\w+=\\w+)?)`).exec(agent ?? '')?.[1] ?? ''
  const values: { [component: string]: string } = {
    '"@authority"': host,
    '"@target-uri"': url,
    '"@method"': method,
    '"@path"': pathname,
    '"@query"': search || '?',
    '"signature-agent"': agent ?? '',
  }
  return values[component] ?? ''
}
