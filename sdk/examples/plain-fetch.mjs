/** Without the package: sends one event. `@sightglass/sdk` adds batches, retries and a queue on disk. */
import { randomUUID } from 'node:crypto'
import { env } from 'node:process'

const response = await fetch(`${env.SIGHTGLASS_URL}/v1/sdk/events`, {
  method: 'POST',
  headers: { authorization: `Bearer ${env.SIGHTGLASS_INGEST_KEY}`, 'content-type': 'application/json' },
  body: JSON.stringify({
    events: [
      {
        id: `trc_${randomUUID()}`,
        siteId: 'shop-acme',
        sessionId: 'sess_1', // one visit of one visitor; derive it from your own session
        occurredAt: new Date().toISOString(),
        type: 'tool.executed',
        outcome: 'success',
        tool: 'cart.add',
      },
    ],
  }),
})
if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
process.stdout.write(`${await response.text()}\n`) // {"ok":true,"accepted":1,"deduped":0}
