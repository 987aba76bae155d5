/** No package at all: one event in one request. What `@sightglass/sdk` adds is batching, repeating and not losing. */
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
        sessionId: 'sess_1',
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
