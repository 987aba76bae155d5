/**
 * The client package from the appliance itself (contract §15): as `npm install` takes it, and as one module for pages.
 * Served without a key and to every origin, because it is the same for everybody.
 */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { Elysia } from 'elysia'
import { AppError } from '../errors.ts'
import { json } from '../http/response.ts'
import { type Asset, assetResponse, type Assets, loadAssets } from '../http/assets.ts'

interface ClientPackage {
  files: Assets
  /** Changes with every change of the module, so that its address may be cached for ever. */
  browserHash: string
  /** Subresource Integrity of `browser.js`, for `<script integrity>`. */
  browserIntegrity: string
}

/** The built files lie inside the executable, or in `dist/client-package` when run from source. */
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

/** Any page may load the module, and any program the package. */
const forEverybody = { 'access-control-allow-origin': '*', 'cross-origin-resource-policy': 'cross-origin' }

export function clientPackageRoutes({ version }: { version: string }) {
  let loaded: ClientPackage | undefined // with the first request; 60 KB that most processes never send
  const clientPackage = (): ClientPackage => (loaded ??= loadClientPackage())
  const send = (request: Request, name: string, cacheControl: string): Response => {
    const asset: Asset = clientPackage().files.get(name)!
    const type = name.endsWith('.js') ? 'text/javascript; charset=utf-8' : 'application/gzip'
    return assetResponse(request, { ...asset, type }, { ...forEverybody, 'cache-control': cacheControl })
  }
  return new Elysia()
    .get('/sdk/sightglass-sdk.tgz', ({ request }) => send(request, '/sightglass-sdk.tgz', 'no-cache'))
    .get('/sdk/browser.js', ({ request }) => send(request, '/browser.js', 'no-cache'))
    .get('/sdk/:hash/browser.js', ({ request, params }) => {
      const { browserHash } = clientPackage()
      if (params.hash !== browserHash) {
        const hint = `This release has /sdk/${browserHash}/browser.js; /sdk/browser.js is always the newest.`
        throw new AppError('not_found', 'There is no browser module with this hash.', { hint })
      }
      return send(request, '/browser.js', 'public, max-age=31536000, immutable')
    })
    .get('/sdk/manifest.json', () => {
      const { browserHash, browserIntegrity: integrity } = clientPackage()
      const browser = { path: '/sdk/browser.js', immutablePath: `/sdk/${browserHash}/browser.js`, integrity }
      const manifest = { version, package: '/sdk/sightglass-sdk.tgz', browser }
      return json(manifest, 200, { ...forEverybody, 'cache-control': 'no-cache' })
    })
}
