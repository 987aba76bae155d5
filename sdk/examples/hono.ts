/** Hono on Bun: records the requests by agents and relays the events of browsers. */
import { env } from 'node:process'
import { createIntelExporter, createRelayHandler, init } from '@sightglass/sdk'
import { sightglass } from '@sightglass/sdk/middleware'
import { Hono } from 'hono'

const publishableKey = env['SIGHTGLASS_PUBLISHABLE_KEY'] ?? ''
const exporter = createIntelExporter({
  url: env['SIGHTGLASS_URL'] ?? '',
  ingestKey: env['SIGHTGLASS_INGEST_KEY'] ?? '',
})
const client = init({ publishableKey, siteId: 'shop-acme', exporters: [exporter] })
const relay = createRelayHandler({ exporter, publishableKey, siteId: 'shop-acme' })

const app = new Hono<{ Bindings: Bun.Server<undefined> }>()
app.use(sightglass(client)) // before the routes; agentOf(context.req.raw) is the agent
app.post('/traces', (context) => relay(context.req.raw, context.env)) // Bun's server provides the address
app.get('/', (context) => context.text('hello'))

const server = Bun.serve({
  port: Number(env['PORT'] ?? 3000),
  hostname: '127.0.0.1',
  fetch: (request, bun) => app.fetch(request, bun),
})
process.stdout.write(`listening on ${server.url.origin}\n`)
process.once('SIGTERM', async () => {
  await server.stop()
  await client.close()
  process.exit(0)
})
