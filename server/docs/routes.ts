/** Routes of /openapi.json, the API reference at /docs, the operations guide and the audit proof format. */
import { Elysia } from 'elysia'
import { guidePage, proofPage } from '../guide/page.ts'
import { addressOf } from '../http/address.ts'
import type { Assets } from '../http/assets.ts'
import { jsonText, pageCsp } from '../http/response.ts'
import { readQuery } from '../http/request.ts'
import type { Clock } from '../clock.ts'
import { withCurrentTimes } from './examples.ts'
import { documentText, openApiDocument } from './openapi.ts'
import { pageScript, pageStyle } from './page-frame.ts'
import { referencePage } from './page.ts'

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
