/** The browser exporter against a real relay. tests/e2e/sdk-browser.test.ts tests it in a page. */
import { afterEach, expect, test } from 'bun:test'
import type { CompleteEvent } from '../client/event.ts'
import type { Problem } from '../client/problem.ts'
import { createRelayHandler } from '../relay/relay.ts'
import { publishableKey } from '../../tests/support/fake-appliance.ts'
import { createBrowserExporter, init } from './browser.ts'

const servers: { stop(force: boolean): Promise<void> }[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop(true)
})

function setUp() {
  const exported: CompleteEvent[] = []
  const statuses: number[] = [] // to answer with, before the relay answers
  const exporter = { export: (event: CompleteEvent) => exported.push(event) > 0, flush: async () => true }
  const server: Bun.Server<undefined> = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request): Response | Promise<Response> {
      const status = statuses.shift()
      if (status !== undefined) return new Response('', { status })
      const from = new Request(request, { headers: { origin: `http://127.0.0.1:${server.port}` } }) // as a browser does
      return relay(from, server)
    },
  })
  servers.push(server)
  const relay = createRelayHandler({
    exporter,
    publishableKey,
    origins: [`http://127.0.0.1:${server.port}`],
    eventsPerMinute: 1e6,
  })
  const problems: Problem[] = []
  const client = init({
    publishableKey,
    siteId: 'shop',
    exporters: [createBrowserExporter({ url: `http://127.0.0.1:${server.port}/traces`, intervalMs: 5 })],
    onError: (problem) => problems.push(problem),
  })
  return { client, exported, statuses, problems }
}

test('traces reach the relay with the publishable key, in batches and in order', async () => {
  const { client, exported, problems } = setUp()
  for (let index = 0; index < 120; index++) client.trace({ id: `e${index}`, type: 'tool.executed' })
  await client.flush()
  expect(exported.map(({ id }) => id)).toEqual(Array.from({ length: 120 }, (_, index) => `e${index}`))
  expect(problems).toEqual([])
})

test('a busy relay is retried, a rejection is reported', async () => {
  const { client, exported, statuses, problems } = setUp()
  statuses.push(503, 429)
  client.trace({ id: 'a', type: 'a' })
  while (exported.length === 0) await Bun.sleep(2)
  expect(problems).toEqual([])
  statuses.push(403)
  client.trace({ id: 'b', type: 'a' })
  while (problems.length === 0) await Bun.sleep(2)
  expect(problems[0]).toMatchObject({ code: 'rejected', status: 403, count: 1 })
  statuses.push(500, 500, 500, 500, 500)
  client.trace({ id: 'c', type: 'a' })
  while (problems.length === 1) await Bun.sleep(2)
  expect(problems[1]).toMatchObject({ code: 'rejected', status: 500 })
})

test('a page queues at most 1,000 events', () => {
  const { client, problems } = setUp()
  for (let index = 0; index < 1_003; index++) client.trace({ type: 'a' })
  expect(problems.map(({ code }) => code)).toEqual(['queue_full', 'queue_full', 'queue_full'])
})
