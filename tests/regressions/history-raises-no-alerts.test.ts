/** Events of `sightglass demo` and `sightglass import` are history, so they raise no alert. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { commands } from '../../server/cli/run.ts'
import { workTable } from '../../server/cli/data-command.ts'
import type { WorkContext } from '../../server/runtime/work.ts'
import { demoTraffic } from '../../server/demo/traffic.ts'
import { event } from '../support/events.ts'
import { startReceiver, type Receiver } from '../support/receiver.ts'
import { webhookServer, type WebhookServer } from '../support/webhook-server.ts'

setDefaultTimeout(90_000)

const work = workTable(commands)
const appendDemo = work.get('demo append')!
const appendImport = work.get('import append')!

let receiver: Receiver
let hook: WebhookServer
beforeAll(async () => {
  receiver = await startReceiver()
  hook = await webhookServer()
})
afterAll(async () => {
  await hook[Symbol.asyncDispose]()
  await receiver[Symbol.asyncDispose]()
})

const minuteMs = 60_000
const alerts = () =>
  receiver
    .received('/ok/history')
    .map(({ body }) => JSON.parse(body) as { type: string; data: { rule: string; subject: string } })
    .map(({ type, data }) => `${type} ${data.rule} ${data.subject}`)

async function runRules(): Promise<void> {
  for (let i = 0; i < 3; i++) await hook.run()
}

test('history raises no alert while it is stored, after a restart, or by the silence after it; live traffic does', async () => {
  const { store, clock, org } = hook.server
  const url = `${receiver.url}/ok/history`
  const filter = { types: ['nothing.like.this'] }
  const createdHook = await hook.api<{ endpoint: { id: string } }>(
    'POST',
    '/v1/webhooks/endpoints',
    { url, ...filter },
    201,
  )
  const rules = [
    { kind: 'blocked_share', threshold: 0.001, eventsMin: 1 },
    { kind: 'tool_error_rate', threshold: 0.001, eventsMin: 1 },
    { kind: 'new_vendor' },
    { kind: 'silence', minutes: 5 },
  ]
  for (const rule of rules)
    await hook.api('POST', '/v1/webhooks/rules', { endpointId: createdHook.endpoint.id, ...rule }, 201)
  await runRules()
  clock.move(minuteMs)

  const context = { store, clock } as unknown as WorkContext
  let stored = 0
  for (const events of demoTraffic({ seed: 1, events: 6_000, nowMs: clock.now() })) {
    for (let offset = 0; offset < events.length; offset += 1_000) {
      const body = JSON.stringify({ events: events.slice(offset, offset + 1_000) })
      stored += Number(
        ((await appendDemo(context, { orgId: org.id, body })) as { accepted: number }).accepted,
      )
    }
  }
  expect(stored).toBeGreaterThan(5_000)
  const lines = Array.from({ length: 40 }, (_, n) =>
    JSON.stringify(
      event(`old-${n}`, {
        type: 'tool.executed',
        tool: 'pay',
        outcome: n % 2 ? 'blocked' : 'error',
        agent: { vendor: 'Past' },
      }),
    ),
  )
  await appendImport(context, { orgId: org.id, body: lines.join('\n') })
  await runRules()
  expect(alerts()).toEqual([])
  await hook.restart()
  clock.move(10 * minuteMs)
  await runRules()
  expect(alerts()).toEqual([])

  // A vendor known from history only is not new. Live events count as before.
  await hook.ingest([{ outcome: 'success', agent: { vendor: 'Past' } }])
  await runRules()
  expect(alerts()).toEqual([])
  await hook.ingest([{ outcome: 'blocked', agent: { vendor: 'Fresh' } }])
  await runRules()
  expect(alerts().toSorted()).toEqual(['alert.opened blocked_share ', 'alert.opened new_vendor Fresh'])
  // History between two live events does not end a silence either.
  clock.move(10 * minuteMs)
  await appendImport(context, { orgId: org.id, body: JSON.stringify(event('old-last')) })
  await runRules()
  expect(alerts()).toContain('alert.opened silence ')
})
