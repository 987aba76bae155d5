/** Next.js: save as `app/traces/route.ts`. Responds after the appliance has the events, because nothing runs later. */
import { env } from 'node:process'
import { createIntelExporter, createRelayHandler } from '@sightglass/sdk'

const relay = createRelayHandler({
  exporter: createIntelExporter({
    url: env['SIGHTGLASS_URL'] ?? '',
    ingestKey: env['SIGHTGLASS_INGEST_KEY'] ?? '',
  }),
  publishableKey: env['SIGHTGLASS_PUBLISHABLE_KEY'] ?? '',
  siteId: 'shop-acme',
  answerAfter: 'sent',
})

export function POST(request: Request): Promise<Response> {
  // The last entry was added by your proxy. The caller can forge the ones before it.
  const address = request.headers.get('x-forwarded-for')?.split(',').at(-1)?.trim() ?? null
  return relay(request, { address })
}

export const OPTIONS = POST
