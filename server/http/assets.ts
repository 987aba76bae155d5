/** Serves the dashboard's files from memory, precompressed, with strong ETags; all pages share one HTML file. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { pageCsp } from './response.ts'
import { pathOf } from './request.ts'

/** One built file: media type, content hash, and the encodings that made it smaller. */
interface ManifestEntry {
  type: string
  hash: string
  encodings: string[]
  paths?: { pages: string[]; exact: string[] } // of the dashboard's shell: the addresses it answers
}

export interface Asset extends ManifestEntry {
  bytes: Map<string, Uint8Array<ArrayBuffer>> // by encoding, 'identity' always
}

export type Assets = Map<string, Asset> // by path, such as /assets/main-x.js

/** The folder of the built dashboard: inside the executable, or `dist/web` when run from source. */
export function assetsFolder(): string {
  return Bun.isStandaloneExecutable ? join(import.meta.dir, 'web') : join(import.meta.dir, '../../dist/web')
}

/** Reads every built file once (some 100 KB), so that requests never read the disk. */
export function loadAssets(folder: string): Assets {
  const manifest = JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8')) as Record<
    string,
    ManifestEntry
  >
  const assets: Assets = new Map()
  for (const [path, entry] of Object.entries(manifest)) {
    const bytes = new Map([['identity', new Uint8Array(readFileSync(join(folder, path)))]])
    for (const encoding of entry.encodings) {
      bytes.set(encoding, new Uint8Array(readFileSync(join(folder, `${path}.${encoding}`))))
    }
    assets.set(path, { ...entry, bytes })
  }
  return assets
}

/**
 * The file at a request's path, or the HTML shell for a page of the dashboard; with status 404 for an unknown page in a
 * browser. Null for other clients, which get a JSON error.
 */
export function assetAnswer(assets: Assets, request: Request): Response | null {
  const name = fileName(pathOf(request))
  const asset = assets.get(name)
  if (asset) return dashboardFile(request, asset, name)
  // Pages have no dot in their last segment; anything with a dot is a missing file.
  const shell = assets.get('/index.html')
  if (!shell || /^\/(?:api|v1)(?:\/|$)/.test(name) || /\.[^/]*$/.test(name)) return null
  if (isDashboardPage(shell, name)) return dashboardFile(request, shell, '/index.html')
  if (!/\btext\/html\b/i.test(request.headers.get('accept') ?? '')) return null
  const missing = dashboardFile(new Request(request.url), shell, '/index.html')
  missing.headers.delete('etag')
  missing.headers.set('cache-control', 'no-store')
  return new Response(missing.body, { status: 404, headers: missing.headers })
}

/** The build writes the dashboard's table of pages into the manifest. */
function isDashboardPage({ paths }: Asset, name: string): boolean {
  if (!paths) return false
  return (
    paths.exact.includes(name) || paths.pages.some((page) => name === page || name.startsWith(`${page}/`))
  )
}

function fileName(path: string): string {
  try {
    return path === '/' ? '/index.html' : decodeURIComponent(path)
  } catch {
    return '/malformed.' // matches no file and no page
  }
}

function dashboardFile(request: Request, asset: Asset, name: string): Response {
  return assetResponse(request, asset, {
    'content-security-policy': pageCsp,
    'cache-control': name.startsWith('/assets/') ? 'public, max-age=31536000, immutable' : 'no-cache',
  })
}

/** The file in the smallest encoding the client accepts, or 304 when it has the current version. */
export function assetResponse(
  request: Request,
  asset: Asset,
  extraHeaders: Record<string, string>,
): Response {
  const encoding = chooseEncoding(request.headers.get('accept-encoding'), asset)
  const etag = `"${asset.hash}-${encoding}"`
  const headers: Record<string, string> = {
    'content-type': asset.type,
    etag,
    vary: 'accept-encoding',
    ...extraHeaders,
  }
  if (encoding !== 'identity') headers['content-encoding'] = encoding
  const knownTags = request.headers.get('if-none-match')
  if (knownTags?.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag)) {
    return new Response(null, { status: 304, headers })
  }
  return new Response(asset.bytes.get(encoding)!, { headers })
}

/** The smallest encoding the client accepts (RFC 9110 §12.5.3), or identity. */
function chooseEncoding(header: string | null, asset: Asset): string {
  if (!header) return 'identity'
  const weights = new Map<string, number>()
  for (const part of header.split(',')) {
    const [name = '', ...parameters] = part.trim().toLowerCase().split(';')
    const weight = parameters
      .map((parameter) => parameter.trim())
      .find((parameter) => parameter.startsWith('q='))
    weights.set(name.trim(), weight ? Number(weight.slice(2)) : 1)
  }
  const weightOf = (name: string) => weights.get(name) ?? weights.get('*') ?? 0
  return (
    ['br', 'zstd', 'gzip'].find((candidate) => asset.bytes.has(candidate) && weightOf(candidate) > 0) ??
    'identity'
  )
}

const rewritten = /^(?:text\/(?:html|css|javascript)|application\/javascript)/

/** The built files reference each other from the root; with a base path they are rewritten once, at start. */
export function underBasePath(assets: Assets, basePath: string): Assets {
  if (basePath === '') return assets
  const out: Assets = new Map()
  for (const [path, asset] of assets) {
    const originalText = rewritten.test(asset.type)
      ? new TextDecoder().decode(asset.bytes.get('identity'))
      : ''
    const text = originalText
      .replaceAll(/(["'`(])\/assets\//g, `$1${basePath}/assets/`)
      .replace('<meta name="base-path" content=""', `<meta name="base-path" content="${basePath}"`)
    if (text === originalText) out.set(path, asset)
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
