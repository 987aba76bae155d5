/** Express: records the requests of agents and relays the events of browsers. */
import { env } from 'node:process'
import { createIntelExporter, createNodeRelay, init } from '@sightglass/sdk'
import { sightglass } from '@sightglass/sdk/middleware'
import express from 'express'

const publishableKey = env.SIGHTGLASS_PUBLISHABLE_KEY
const exporter = createIntelExporter({ url: env.SIGHTGLASS_URL, ingestKey: env.SIGHTGLASS_INGEST_KEY })
const client = init({ publishableKey, siteId: 'shop-acme', exporters: [exporter] })

const app = express()
app.use(sightglass(client)) // before the routes; handlers get request.agent
app.post('/traces', createNodeRelay({ exporter, publishableKey, siteId: 'shop-acme' }))
app.get('/', (_request, response) => response.send('hello'))

const server = app.listen(Number(env.PORT ?? 3000), '127.0.0.1', () => {
  process.stdout.write(`listening on http://127.0.0.1:${server.address().port}\n`)
})
process.once('SIGTERM', () => {
  server.close(async () => {
    await client.close()
    process.exit(0)
  })
})
