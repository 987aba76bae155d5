/** Next.js: save as `app/traces/route.ts`. It answers only when the appliance has the events, as nothing runs after. */
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
  return relay(request, { address: request.headers.get('x-forwarded-for') }) // set by the platform in front
}

export const OPTIONS = POST
