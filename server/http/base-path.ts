/** Serves the appliance under a path of a shared host: strips it from requests and adds it to the dashboard's files. */
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { AppError } from '../errors.ts'
import type { Assets } from './assets.ts'
import { errorResponse } from './response.ts'
import { pathOf } from './request.ts'

/** Supervisors request these from the process itself, not through the proxy. */
const unprefixed = new Set(['/healthz', '/readyz', '/metrics'])

/** Strips the base path from the request's URL. Returns a response when the path is not below it. */
export function stripBasePath(request: Request, basePath: string, requestId: string): Response | null {
  if (basePath === '') return null
  const path = pathOf(request)
  if (unprefixed.has(path)) return null
  if (path === basePath) {
    const location = `${basePath}/${new URL(request.url).search}`
    return new Response(null, { status: 308, headers: { location } })
  }
  if (!path.startsWith(`${basePath}/`)) {
    const hint = `This appliance is served under ${basePath}/.`
    return errorResponse(new AppError('not_found', 'No such page or endpoint.', { hint }), requestId)
  }
  const start = request.url.indexOf(basePath, request.url.indexOf('://') + 3)
  const value = request.url.slice(0, start) + request.url.slice(start + basePath.length)
  // The same object is reused because its body and signal are bound to the connection.
  Object.defineProperty(request, 'url', { value })
  return null
}

const rewritten = /^(?:text\/(?:html|css|javascript)|application\/javascript)/

/** The built files reference each other from the root; with a base path they are rewritten once, at start. */
export function underBasePath(assets: Assets, basePath: string): Assets {
  if (basePath === '') return assets
  const out: Assets = new Map()
  for (const [path, asset] of assets) {
    const before = rewritten.test(asset.type) ? new TextDecoder().decode(asset.bytes.get('identity')) : ''
    const text = before
      .replaceAll(/(["'`(])\/assets\//g, `$1${basePath}/assets/`)
      .replace('<meta name="base-path" content=""', `<meta name="base-path" content="${basePath}"`)
    if (text === before) out.set(path, asset)
    else out.set(path, { ...asset, ...packed(text) })
  }
  return out
}

/** Lower than at build time: compresses the whole dashboard within 250 ms. */
const brotliQuality = 5

function packed(text: string) {
  const identity = new TextEncoder().encode(text)
  const br = brotliCompressSync(identity, { params: { [constants.BROTLI_PARAM_QUALITY]: brotliQuality } })
  const bytes = new Map([
    ['identity', identity],
    ['br', new Uint8Array(br)],
    ['gzip', new Uint8Array(gzipSync(identity))],
  ])
  const hash = new Bun.CryptoHasher('sha256').update(identity).digest('base64url').slice(0, 22)
  return { hash, bytes, encodings: ['br', 'gzip'] }
}
