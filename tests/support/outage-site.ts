/**
 * A program for Node.js: an Express site with the middleware and a spool, whose hour lasts six seconds. Its clock
 * starts at SITE_NOW. `/stats` has its clock and the exporter's counts. Ends after two minutes.
 */
import express from 'express'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { env, exit, stdout } from 'node:process'
import { agentOf, sightglass } from '../../sdk/middleware/middleware.ts'
import { createIntelExporter, init } from '../../sdk/node.ts'

const speed = 600
const now = Date.now
const startMs = now()
const baseMs = Number(env['SITE_NOW'])
Date.now = () => Math.floor(baseMs + (now() - startMs) * speed)

const exporter = createIntelExporter({
  url: env['SIGHTGLASS_URL'] ?? '',
  ingestKey: env['SIGHTGLASS_INGEST_KEY'] ?? '',
  spool: './spool/events',
  // The defaults, on this clock.
  intervalMs: 1_000 / speed,
  backoffMinMs: 500 / speed,
  backoffMaxMs: 30_000 / speed,
})
const client = init({
  publishableKey: env['SIGHTGLASS_PUBLISHABLE_KEY'] ?? '',
  siteId: 'shop',
  exporters: [exporter],
  onError() {},
})

const app = express()
app.use(sightglass<{ url: string }>(client, { skip: ({ url }) => url === '/stats' }))
app.all('/{*path}', (request: IncomingMessage, response: ServerResponse) => {
  const isStats = request.url === '/stats'
  const body = isStats ? { nowMs: Date.now(), ...exporter.stats() } : { agent: agentOf(request) }
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify(body))
})
const server = createServer(app).listen(0, '127.0.0.1', () => {
  stdout.write(`listening on http://127.0.0.1:${(server.address() as AddressInfo).port}\n`)
})
setTimeout(() => exit(0), 120_000)
