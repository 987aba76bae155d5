/**
 * Routes of the client package (contract §15): a tarball for `npm install` and one module for pages.
 * They need no key and allow every origin, because the files are the same for everybody.
 */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { Elysia } from 'elysia'
import { AppError } from '../errors.ts'
import { json } from '../http/response.ts'
import { type Asset, assetResponse, type Assets, loadAssets } from '../http/assets.ts'

interface ClientPackage {
  files: Assets
  /** The address contains this hash, so it may be cached forever. */
  browserHash: string
  /** Subresource Integrity of `browser.js`, for `<script integrity>`. */
  browserIntegrity: string
}

/** The files are embedded in the executable; when run from source, they are in `dist/client-package`. */
function loadClientPackage(): ClientPackage {
  const folder = Bun.isStandaloneExecutable
    ? join(import.meta.dir, 'client-package')
    : join(import.meta.dir, '../../dist/client-package')
  const files = loadAssets(folder)
  const module = files.get('/browser.js')!.bytes.get('identity')!
  const sha384 = createHash('sha384').update(module).digest()
  return {
    files,
    browserHash: sha384.toString('hex').slice(0, 16),
    browserIntegrity: `sha384-${sha384.toString('base64')}`,
  }
}

const publicHeaders = { 'access-control-allow-origin': '*', 'cross-origin-resource-policy': 'cross-origin' }

export function clientPackageRoutes({ version }: { version: string }) {
  let loaded: ClientPackage | undefined // loaded on the first request; most processes never send these 60 KB
  const clientPackage = (): ClientPackage => (loaded ??= loadClientPackage())
  const send = (request: Request, name: string, cacheControl: string): Response => {
    const asset: Asset = clientPackage().files.get(name)!
    const type = name.endsWith('.js') ? 'text/javascript; charset=utf-8' : 'application/gzip'
    return assetResponse(request, { ...asset, type }, { ...publicHeaders, 'cache-control': cacheControl })
  }
  return new Elysia()
    .get('/sdk/sightglass-sdk.tgz', ({ request }) => send(request, '/sightglass-sdk.tgz', 'no-cache'))
    .get('/sdk/browser.js', ({ request }) => send(request, '/browser.js', 'no-cache'))
    .get('/sdk/:hash/browser.js', ({ request, params }) => {
      const { browserHash } = clientPackage()
      if (params.hash !== browserHash) {
        const hint = `This release has /sdk/${browserHash}/browser.js. /sdk/browser.js is always the newest.`
        throw new AppError('not_found', 'No browser module with this hash.', { hint })
      }
      return send(request, '/browser.js', 'public, max-age=31536000, immutable')
    })
    .get('/sdk/manifest.json', () => {
      const { browserHash, browserIntegrity: integrity } = clientPackage()
      const browser = { path: '/sdk/browser.js', immutablePath: `/sdk/${browserHash}/browser.js`, integrity }
      const manifest = { version, package: '/sdk/sightglass-sdk.tgz', browser }
      return json(manifest, 200, { ...publicHeaders, 'cache-control': 'no-cache' })
    })
}
