/** Pages of deliveries: their number, their order, and at most 4 MiB. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { newId } from '../../server/ids.ts'
import { testServer, type TestServer } from '../support/server.ts'

// Every delivery is a transaction.
setDefaultTimeout(60_000)

let server: TestServer
let key: string
beforeAll(async () => {
  server = await testServer()
  key = await server.key('secret')
})
afterAll(() => server[Symbol.asyncDispose]())

interface DeliveryJson {
  id: string
}

test('50 per page by default, at most 200; a page of long payloads and URLs has less than 4 MiB', async () => {
  // Deliveries scheduled for later are not sent meanwhile.
  const later = server.clock.now() + 3_600_000
  const { id: orgId } = server.org
  const auditFields = {
    orgId,
    actor: 'cli',
    action: 'test.made',
    target: '',
    metadata: {},
    occurredAtMs: later,
  }
  const schedule = (n: number, url: string, body: string) => {
    const delivery = {
      id: `wh_page_${n}`,
      orgId,
      endpointId: null,
      url,
      lane: 'later',
      body,
      scheduledAtMs: later,
    }
    return server.store.webhooks.schedule({ delivery, audit: { id: newId('aud'), ...auditFields } })
  }
  const page = async (query: string) => {
    const text = await (await server.call(`/v1/webhooks?${query}`, { key })).text()
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(4 * 1024 * 1024)
    const { deliveries, nextCursor } = JSON.parse(text) as {
      deliveries: DeliveryJson[]
      nextCursor: string | null
    }
    return { ids: deliveries.map(({ id }) => id), nextCursor }
  }
  const short = Array.from({ length: 205 }, (_, n) => schedule(n, 'http://hooks.invalid/', '{}'))
  await Promise.all(short)
  expect((await page('cursor=')).ids).toHaveLength(50)
  expect((await page('limit=1000')).ids).toEqual(Array.from({ length: 200 }, (_, n) => `wh_page_${204 - n}`))
  const url = `http://hooks.invalid/${'ü€'.repeat(1_010)}`
  const body = JSON.stringify({ text: 'x'.repeat(15_700) })
  await Promise.all(Array.from({ length: 200 }, (_, n) => schedule(300 + n, url, body)))
  const listed: string[] = []
  for (let cursor: string | null = ''; cursor !== null;) {
    const next: Awaited<ReturnType<typeof page>> = await page(`limit=200&cursor=${cursor}`)
    listed.push(...next.ids.filter((id) => id.startsWith('wh_page_')))
    cursor = next.nextCursor
  }
  expect([listed.length, new Set(listed).size, listed[0], listed.at(-1)]).toEqual([
    405,
    405,
    'wh_page_499',
    'wh_page_0',
  ])
  // A payload of the maximum size is a page by itself.
  await schedule(600, url, JSON.stringify({ text: 'x'.repeat(524_000) }))
  expect((await page('limit=1')).ids).toEqual(['wh_page_600'])
})
