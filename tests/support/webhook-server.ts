/** A test server whose dispatcher runs on demand, with helpers to post events and read responses. */
import { expect } from 'bun:test'
import { startLog } from '../../server/log.ts'
import { startWebhooks, type Webhooks } from '../../server/webhooks/start.ts'
import { event } from './events.ts'
import { testServer, type TestServer } from './server.ts'

export interface WebhookServer extends AsyncDisposable {
  server: TestServer
  key: string // secret, every scope
  /** One run of the dispatcher, until everything it sent has ended. */
  run(): Promise<void>
  /** Ends the dispatcher and starts another on the same store, without the old one's memory, as a restart would. */
  restart(): Promise<void>
  /** Posts events with these fields and numbered ids; expects them accepted. */
  ingest(events: Record<string, unknown>[]): Promise<void>
  /** Calls with the secret key and expects `status`; returns the JSON. */
  api<T>(method: string, path: string, body?: unknown, status?: number): Promise<T>
}

export async function webhookServer(options: { sinkDir?: string } = {}): Promise<WebhookServer> {
  const config = { backoffMs: [1_000, 1_000, 1_000], allow: ['127.0.0.0/8'], caFile: null, proxy: null }
  // A cron that is due once in years: only `run` dispatches.
  const webhooks = { ...config, cron: '0 0 29 2 *', sinkDir: options.sinkDir ?? null }
  const server = await testServer({ webhooks })
  const key = await server.key('secret')
  const ingestKey = await server.key('ingest')
  const { store, clock, dataDir } = server
  const log = startLog({ level: 'error', clock })
  const start = () =>
    startWebhooks({ config: webhooks, dataDir, store, clock, log, version: 'test', random: () => 0 })
  let parts: Webhooks = start()
  let lastId = 0
  return {
    server,
    key,
    async run() {
      await parts.run(server.clock.now())
      await parts.idle()
    },
    async restart() {
      await parts.stop()
      parts = start()
    },
    async ingest(events) {
      const body = { events: events.map((members) => event(`evt_${++lastId}`, members)) }
      const response = await server.call('/v1/sdk/events', { key: ingestKey, body })
      expect(await response.json()).toEqual({ ok: true, accepted: events.length, deduped: 0 })
    },
    async api(method, path, body, status = 200) {
      const response = await server.call(path, { method, key, ...(body === undefined ? {} : { body }) })
      const text = await response.text()
      if (response.status !== status) throw new Error(`${method} ${path}: ${response.status} ${text}`)
      return JSON.parse(text)
    },
    async [Symbol.asyncDispose]() {
      await parts.stop()
      await server[Symbol.asyncDispose]()
    },
  }
}
