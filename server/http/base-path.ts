/** An appliance below a path of a shared host: what the listener takes off, and the dashboard's files that name it. */
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { AppError } from '../errors.ts'
import type { Assets } from './assets.ts'
import { errorResponse } from './response.ts'
import { pathOf } from './request-context.ts'

/** A supervisor asks these of the process itself, not through the proxy. */
const besideIt = new Set(['/healthz', '/readyz', '/metrics'])

/**
 * Takes the base path off the request's address, so that everything behind knows plain paths only. Returns an answer
 * where there is none to be had below it.
 */
export function takeBasePath(request: Request, basePath: string, requestId: string): Response | null {
  if (basePath === '') return null
  const path = pathOf(request)
  if (besideIt.has(path)) return null
  if (path === basePath) {
    const location = `${basePath}/${new URL(request.url).search}`
    return new Response(null, { status: 308, headers: { location } })
  }
  if (!path.startsWith(`${basePath}/`)) {
    const hint = `This appliance answers below ${basePath}/.`
    return errorResponse(new AppError('not_found', 'There is nothing at this address.', { hint }), requestId)
  }
  const start = request.url.indexOf(basePath, request.url.indexOf('://') + 3)
  const value = request.url.slice(0, start) + request.url.slice(start + basePath.length)
  // The same object goes on: its body and its signal are bound to the connection.
  Object.defineProperty(request, 'url', { value })
  return null
}

const rewritten = /^(?:text\/(?:html|css|javascript)|application\/javascript)/

/** The built files name each other from the host's root; below a base path they are written anew, once, at start. */
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

/** Quicker than at build time: the whole dashboard within a quarter of a second. */
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
