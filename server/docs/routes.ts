/** Routes for developers: /openapi.json, the API reference at /docs, the guide, audit proofs, the client package. */
import { Elysia } from 'elysia'
import { guidePage, nodesPage, proofPage } from '../guide/page.ts'
import { addressOf } from '../http/address.ts'
import { json, jsonText, pageCsp } from '../http/response.ts'
import { readQuery } from '../http/request.ts'
import { withCurrentTimes } from './operation-model.ts'
import { documentText, openApiDocument } from './openapi.ts'
import { pageScript, pageStyle } from './page-frame.ts'
import { referencePage } from './page.ts'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { AppError } from '../errors.ts'
import { assetResponse, loadAssets, type Asset, type Assets } from '../http/assets.ts'
import type { Clock } from '../clock.ts'

export interface DocsRoutesServices {
  clock: Clock
  version: string
  publicUrl: string | null
  basePath: string
  assets: Assets
  commandReference(): string // Markdown, for the operations guide
}

const hourMs = 3_600_000

export function docsRoutes({ version, assets, clock, commandReference, ...where }: DocsRoutesServices) {
  const { basePath } = where
  // Rebuilt once per hour, because its examples have current times.
  let document: { hour: number; text: string } | null = null
  return new Elysia()
    .get('/openapi.json', ({ request }) => {
      readQuery(request, {})
      const now = clock.now()
      const hour = Math.floor(now / hourMs)
      if (document?.hour !== hour) {
        const text = JSON.stringify(openApiDocument(version, basePath))
        document = { hour, text: withCurrentTimes(text, now) }
      }
      return jsonText(document.text, 200, { 'cache-control': 'no-cache' })
    })
    .get('/docs', ({ request }) => {
      const links = dashboardLinks(assets)
      const baseUrl = addressOf(request, where)
      const html = referencePage({ about: documentText, version, baseUrl, basePath, links })
      return file('text/html; charset=utf-8', withCurrentTimes(html, clock.now()))
    })
    .get('/docs/operations', () =>
      file(
        'text/html; charset=utf-8',
        guidePage({ basePath, links: dashboardLinks(assets) }, commandReference()),
      ),
    )
    .get('/docs/nodes', () =>
      file('text/html; charset=utf-8', nodesPage({ basePath, links: dashboardLinks(assets) })),
    )
    .get('/docs/proof', () =>
      file('text/html; charset=utf-8', proofPage({ basePath, links: dashboardLinks(assets) })),
    )
    .get('/docs/page.css', () => file('text/css; charset=utf-8', pageStyle))
    .get('/docs/page.js', () => file('text/javascript; charset=utf-8', pageScript))
}

function file(type: string, text: string): Response {
  const headers = { 'content-type': type, 'content-security-policy': pageCsp, 'cache-control': 'no-cache' }
  return new Response(text, { headers })
}

/** The icon and the style sheet of the dashboard, whose colours and sizes these pages share. */
function dashboardLinks(assets: Assets): string[] {
  const shell = assets.get('/index.html')?.bytes.get('identity')
  if (shell === undefined) return []
  return new TextDecoder().decode(shell).match(/<link rel="(?:icon|stylesheet)"[^>]*>/g) ?? []
}

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

/**
 * The client package (contract §15): a tarball for `npm install` and one module for pages. Its routes need no key and
 * allow every origin, because the files are the same for everybody.
 */
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
