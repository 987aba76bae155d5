/** Routes for developers: /openapi.json, the API reference at /docs, the guide, audit proofs, the client package. */
import { Elysia } from 'elysia'
import { clientGuidePage, clientGuides, guidePage, nodesPage, proofPage } from '../guide/page.ts'
import { addressOf } from '../http/address.ts'
import { json, jsonText, pageCsp } from '../http/response.ts'
import { readQuery } from '../http/request.ts'
import { dashboardLinks, pageScript, pageStyle } from '../http/page-frame.ts'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { AppError } from '../errors.ts'
import { assetResponse, loadAssets, type Asset, type Assets } from '../http/assets.ts'
import type { Clock } from '../clock.ts'
import { hourMs } from '../../db/contract/units.ts'

interface DocsRoutesServices {
  clock: Clock
  version: string
  publicUrl: string | null
  basePath: string
  assets: Assets
  commandReference(): string // Markdown, for the operations guide
}

/** Loaded for the first request: the models of all operations take 5 ms of a start. */
const reference = async () => {
  const [document, page, { withCurrentTimes }] = await Promise.all([
    import('./openapi.ts'),
    import('./page.ts'),
    import('./operation-model.ts'),
  ])
  return { ...document, ...page, withCurrentTimes }
}

export function docsRoutes({ version, assets, clock, commandReference, ...urlOptions }: DocsRoutesServices) {
  const { basePath } = urlOptions
  // Rebuilt once per hour, because its examples have current times.
  let document: { hour: number; text: string } | null = null
  const app = new Elysia()
    .get('/openapi.json', async ({ request }) => {
      readQuery(request, {})
      const now = clock.now()
      const hour = Math.floor(now / hourMs)
      if (document?.hour !== hour) {
        const { openApiDocument, withCurrentTimes } = await reference()
        const text = JSON.stringify(openApiDocument(version, basePath))
        document = { hour, text: withCurrentTimes(text, now) }
      }
      return jsonText(document.text, 200, { 'cache-control': 'no-cache' })
    })
    .get('/docs', async ({ request }) => {
      const { documentText, referencePage, withCurrentTimes } = await reference()
      const links = dashboardLinks(assets)
      const baseUrl = addressOf(request, urlOptions)
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
  for (const name of clientGuides) {
    app.get(`/docs/${name}`, ({ request }) => {
      const options = { basePath, links: dashboardLinks(assets) }
      return file('text/html; charset=utf-8', clientGuidePage(options, name, addressOf(request, urlOptions)))
    })
  }
  return app
}

function file(type: string, text: string): Response {
  const headers = { 'content-type': type, 'content-security-policy': pageCsp, 'cache-control': 'no-cache' }
  return new Response(text, { headers })
}

interface ClientPackage {
  files: Assets
  scripts: { browser: Script; webmcp: Script }
}

/** The module of pages, and the script for the top of a page. */
interface Script {
  path: string
  hash: string
  /** Contains the hash, so it may be cached forever. */
  immutablePath: string
  /** Subresource Integrity, for `<script integrity>`. */
  integrity: string
}

/** The files are embedded in the executable; when run from source, they are in `dist/client-package`. */
function loadClientPackage(): ClientPackage {
  const folder = Bun.isStandaloneExecutable
    ? join(import.meta.dir, 'client-package')
    : join(import.meta.dir, '../../dist/client-package')
  const files = loadAssets(folder)
  return { files, scripts: { browser: scriptOf(files, 'browser.js'), webmcp: scriptOf(files, 'webmcp.js') } }
}

function scriptOf(files: Assets, name: string): Script {
  const sha384 = createHash('sha384')
    .update(files.get(`/${name}`)!.bytes.get('identity')!)
    .digest()
  const hash = sha384.toString('hex').slice(0, 16)
  const integrity = `sha384-${sha384.toString('base64')}`
  return { path: `/sdk/${name}`, hash, immutablePath: `/sdk/${hash}/${name}`, integrity }
}

const publicHeaders = { 'access-control-allow-origin': '*', 'cross-origin-resource-policy': 'cross-origin' }

/**
 * The client package (contract §15): a tarball for `npm install`, a module and a script for pages. Its routes need no
 * key and allow every origin, because the files are the same for everybody.
 */
export function clientPackageRoutes({ version }: { version: string }) {
  let loaded: ClientPackage | undefined // loaded on the first request; most processes never send these 60 KB
  const clientPackage = (): ClientPackage => (loaded ??= loadClientPackage())
  const send = (request: Request, name: string, cacheControl: string): Response => {
    const asset: Asset = clientPackage().files.get(name)!
    const type = name.endsWith('.js') ? 'text/javascript; charset=utf-8' : 'application/gzip'
    return assetResponse(request, { ...asset, type }, { ...publicHeaders, 'cache-control': cacheControl })
  }
  const app = new Elysia()
    .get('/sdk/sightglass-sdk.tgz', ({ request }) => send(request, '/sightglass-sdk.tgz', 'no-cache'))
    .get('/sdk/manifest.json', () => {
      const { browser, webmcp } = clientPackage().scripts
      const view = ({ path, immutablePath, integrity }: Script) => ({ path, immutablePath, integrity })
      const scripts = { browser: view(browser), webmcp: view(webmcp) }
      const manifest = { version, package: '/sdk/sightglass-sdk.tgz', ...scripts }
      return json(manifest, 200, { ...publicHeaders, 'cache-control': 'no-cache' })
    })
  for (const name of ['browser', 'webmcp'] as const) {
    app
      .get(`/sdk/${name}.js`, ({ request }) => send(request, `/${name}.js`, 'no-cache'))
      .get(`/sdk/:hash/${name}.js`, ({ request, params }) => {
        const { path, hash, immutablePath } = clientPackage().scripts[name]
        if (params.hash !== hash) {
          const hint = `This release serves ${immutablePath}. ${path} is always the newest.`
          throw new AppError('not_found', `No ${name}.js with this hash.`, { hint })
        }
        return send(request, `/${name}.js`, 'public, max-age=31536000, immutable')
      })
  }
  return app
}
