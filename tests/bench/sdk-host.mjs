/**
 * A host program that measures the cost of the client package in the runtime that starts it.
 * Arguments: the package's entry, address, ingest key, publishable key, events to send. Prints one line of JSON.
 */
import { randomUUID } from 'node:crypto'

const [entry, url, ingestKey, publishableKey, count] = process.argv.slice(2)
const { createIntelExporter, init } = await import(entry)
const exporter = createIntelExporter({ url, ingestKey, queueEventsMax: 1_000_000, queueBytesMax: 2 ** 30 })
const client = init({ publishableKey, siteId: 'shop-acme', sessionId: 's', exporters: [exporter] })
const turn = () => new Promise((resolve) => setImmediate(resolve))

const event = (index) => ({
  type: 'authz.evaluated',
  outcome: 'blocked',
  tool: 'checkout.pay',
  durationMs: index % 900,
  agent: { class: 'dom', trust: 'detected', vendor: 'Operator', confidence: 0.93 },
  policy: { decision: 'deny', ruleId: 'tool:checkout.pay', reason: 'trust below verified' },
  metadata: {
    page: `/products/${index % 50}`,
    protocol: 'web-bot-auth',
    args: { sku: `s${index % 100}`, quantity: 1 },
  },
})
/** The least any client must do: an id, the time, and the event as text. */
const floor = (each) =>
  JSON.stringify({
    id: `trc_${randomUUID()}`,
    siteId: 'shop-acme',
    occurredAt: new Date().toISOString(),
    ...each,
  })

/** Microseconds of each call, with event-loop ticks in between, as in a server. */
async function measure(calls, act) {
  const times = []
  for (let index = 0; index < calls; index++) {
    const each = event(index)
    const startedMs = performance.now()
    act(each)
    times.push((performance.now() - startedMs) * 1_000)
    if (index % 100 === 99) await turn()
  }
  times.sort((left, right) => left - right)
  return { p50: times[Math.floor(calls * 0.5)], p99: times[Math.floor(calls * 0.99)] }
}

/** Events per second from the first trace to the last acknowledgement. */
async function sustained(events) {
  const startedMs = performance.now()
  for (let index = 0; index < events; index++) {
    client.trace(event(index))
    if (index % 500 === 499) await turn()
  }
  const isSent = await exporter.flush(60_000)
  return { eventsPerSecond: (events / (performance.now() - startedMs)) * 1_000, isSent, ...exporter.stats() }
}

/** The same number of events as prepared bodies, sent one after the other with fetch. */
async function bareFetch(events) {
  const bodies = Array.from({ length: Math.ceil(events / 1_000) }, () => {
    const texts = Array.from({ length: 1_000 }, (_, index) => floor({ ...event(index), sessionId: 's' }))
    return `{"events":[${texts.join(',')}]}`
  })
  const headers = { authorization: `Bearer ${ingestKey}`, 'content-type': 'application/json' }
  const startedMs = performance.now()
  for (const body of bodies)
    await (await fetch(`${url}/v1/sdk/events`, { method: 'POST', headers, body })).text()
  return (events / (performance.now() - startedMs)) * 1_000
}

let length = 0
await measure(5_000, (each) => client.trace(each)) // warm-up
const floorUs = await measure(20_000, (each) => (length += floor(each).length))
const traceUs = await measure(20_000, (each) => client.trace(each))
await client.flush()
const events = Number(count)
await bareFetch(Math.min(events, 10_000)) // warm-up
const bareBefore = await bareFetch(events)
const sent = await sustained(events)
// The slower one, because another process may have begun meanwhile.
const bareEventsPerSecond = Math.min(bareBefore, await bareFetch(events))
await client.close()
process.stdout.write(`${JSON.stringify({ floorUs, traceUs, bareEventsPerSecond, sent, length })}\n`)
