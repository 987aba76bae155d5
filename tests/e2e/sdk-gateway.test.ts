/** The client package against the executable: pushes, reads, audit log, and a delivery that verifies. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import {
  createGateway,
  createIntelExporter,
  createIntelSync,
  type Gateway,
  init,
  type IntelError,
  verifyWebhook,
} from '../../sdk/node.ts'
import type { Appliance } from '../support/binary.ts'
import { startReceiver } from '../support/receiver.ts'
import { type Keys, startWithKeys } from './sdk-appliance.ts'

let appliance: Appliance
let keys: Keys
let gateway: Gateway
beforeAll(async () => {
  const args = ['--dispatch-cron', '* * * * * *', '--webhook-allow', '127.0.0.0/8']
  ;({ appliance, keys } = await startWithKeys({ args }))
  gateway = createGateway({ url: appliance.url, secretKey: keys.secretKey })
}, 120_000)
afterAll(async () => {
  await appliance.stop()
})

async function read<T>(path: string): Promise<T> {
  const headers = { authorization: `Bearer ${keys.secretKey}` }
  return (await (await fetch(`${appliance.url}${path}`, { headers })).json()) as T
}

const sync = () => createIntelSync({ url: appliance.url, ingestKey: keys.ingestKey, siteId: 'shop' })

test('tools and memory are pushed and read back', async () => {
  const tools = [
    { name: 'cart.add', group: 'cart', page: '/cart', inputSchema: { type: 'object' }, tokens: 120 },
    { name: 'cart.clear', page: '/cart', enabled: false },
  ]
  expect(await sync().pushTools(tools)).toBe(2)
  const listed = await read<{ tools: { name: string; enabled: boolean; tool: unknown }[] }>(
    '/v1/tools?siteId=shop',
  )
  expect(listed.tools.map(({ tool }) => tool)).toEqual(tools)
  expect(listed.tools.map(({ enabled }) => enabled)).toEqual([true, false])
  await sync().pushTools([tools[0]!], { replace: true })
  const snapshot = { siteMap: { pages: [{ path: '/cart' }] }, policies: { refunds: 'within 30 days' } }
  await sync().pushMemory(snapshot, 87)
  await sync().pushMemory(snapshot)
  expect(JSON.stringify(await read('/v1/memory?siteId=shop'))).toContain('within 30 days')
})

test('a push that the appliance rejects fails with its reasons', async () => {
  const error = await sync()
    .pushTools([{ name: '' }])
    .catch((failure: IntelError) => failure)
  expect(error).toMatchObject({ name: 'IntelError', status: 400 })
  expect((error as IntelError).issues.length).toBeGreaterThan(0)
})

test('traces over several pages, and metrics that agree', async () => {
  const { ingestKey, publishableKey } = keys
  const client = init({
    publishableKey,
    siteId: 'shop',
    sessionId: 'one visitor',
    exporters: [createIntelExporter({ url: appliance.url, ingestKey })],
  })
  for (let index = 0; index < 450; index++)
    client.trace({ id: `g${index}`, type: index % 3 ? 'tool.executed' : 'tool.surfaced' })
  await client.close()
  const ids = new Set<string>()
  for await (const event of gateway.traces({ type: 'tool.executed', siteId: 'shop' })) ids.add(event.id)
  expect(ids.size).toBe(300)
  const metrics = await gateway.metrics({ siteId: 'shop' })
  expect(metrics).toMatchObject({ total: 450, byType: { 'tool.executed': 300, 'tool.surfaced': 150 } })
})

test('the audit log in both forms', async () => {
  const entries = await gateway.exportAudit({ action: 'ingest_key.created' })
  expect(entries.map(({ actor, action }) => [actor, action])).toEqual([['cli', 'ingest_key.created']])
  expect(entries[0]!.id).toMatch(/^aud_/)
  const csv = await new Response(await gateway.exportAuditCsv()).text()
  expect(csv).toStartWith('id,orgId,actor,action,target,metadata,occurredAt')
  expect(csv).toContain(entries[0]!.id)
})

test('an invalid query is rejected at once with what is wrong', async () => {
  const error = await gateway.metrics({ since: 'yesterday' }).catch((failure: IntelError) => failure)
  expect(error).toMatchObject({ name: 'IntelError', status: 400 })
})

test('a delivery of the appliance verifies, a changed one does not', async () => {
  await using receiver = await startReceiver()
  const secretResult = await appliance.cli('webhook', 'secret', '--org', 'default', '--json')
  const { secret } = JSON.parse(secretResult.stdout) as { secret: string }
  const payload = { type: 'hello', data: { text: 'ünïcode', n: 1.5 } }
  const answer = await fetch(`${appliance.url}/v1/webhooks/test`, {
    method: 'POST',
    headers: { authorization: `Bearer ${keys.secretKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ url: `${receiver.url}/ok`, payload }),
  })
  expect(answer.status).toBe(202)
  const [delivery] = await receiver.wait('/ok', 1)
  expect(await verifyWebhook(delivery!.headers, delivery!.body, secret)).toEqual(payload)
  const changed = await verifyWebhook(delivery!.headers, delivery!.body.replace('1.5', '1.6'), secret).catch(
    (error: { code: string }) => error.code,
  )
  expect(changed).toBe('wrong_signature')
}, 90_000)
