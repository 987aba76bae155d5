/** How many events a second are parsed, checked and written again, beside bare JSON.parse: `bun tests/bench/accept.bench.ts`. */
import { acceptEvents } from '../../server/ingest/accept.ts'
import { readBody } from '../../server/http/body.ts'
import { exampleEvent } from '../fuzz/any-event.ts'

const eventsPerBody = 100
const roundMs = Number(process.argv[2] ?? 400)

/** About 500 bytes, as a customer's backend sends them. */
const events = Array.from({ length: eventsPerBody }, (_, index) => ({
  ...exampleEvent,
  id: `evt_${index}_${(index * 2_654_435_761).toString(36)}`,
  sessionId: `sess_${index % 7}`,
  occurredAt: new Date(1_782_216_000_000 + index * 37).toISOString(),
  durationMs: index / 8,
  agent: {
    ...exampleEvent.agent,
    confidence: 0.93,
    userAgent:
      'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0 Safari/537.36',
  },
  metadata: { ...exampleEvent.metadata, attempt: 1, cart: { items: 3, total: 49.9 } },
}))

const body = JSON.stringify({ events })
const spaced = body.replaceAll('":', '": ').replaceAll(',"', ', "') // as Python's json.dumps writes it
const lines = events.map((event) => JSON.stringify(event)).join('\n')
const oneBad = JSON.stringify({
  events: events.with(50, { ...exampleEvent, type: 'Not A Type', id: 'evt_bad' } as never),
})
const bytes = Buffer.from(body)
const headers = { 'content-length': String(bytes.length) }
const request = (): Request => new Request('http://host/', { method: 'POST', body: bytes, headers })

const runs: [string, () => unknown][] = [
  ['floor: JSON.parse', () => JSON.parse(body)],
  [
    'floor: parse, then stringify each',
    () => (JSON.parse(body) as { events: unknown[] }).events.map((e) => JSON.stringify(e)),
  ],
  ['accept', () => acceptEvents(body, 'application/json', [])],
  ['accept, spaced as Python writes', () => acceptEvents(spaced, 'application/json', [])],
  ['accept, NDJSON', () => acceptEvents(lines, 'application/x-ndjson', [])],
  ['accept, one event rejected', () => acceptEvents(oneBad, 'application/json', [])],
  ['floor: request.arrayBuffer', () => request().arrayBuffer()],
  ['readBody', () => readBody(request(), { bytesMax: 8_000_000 })],
]

/** The best of five rounds, in µs an event: the machine is shared, so the best says most about the code. */
async function usPerEvent(run: () => unknown): Promise<number> {
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < 5; round++) {
    const start = performance.now()
    let bodies = 0
    while (performance.now() - start < roundMs) {
      const result = run()
      if (result instanceof Promise) await result
      bodies++
    }
    best = Math.min(best, ((performance.now() - start) * 1_000) / bodies / eventsPerBody)
  }
  return best
}

console.log(`${Math.round(body.length / eventsPerBody)} bytes an event, ${eventsPerBody} a body`)
for (const [name, run] of runs) {
  const us = await usPerEvent(run)
  console.log(
    `${name.padEnd(36)} ${us.toFixed(2).padStart(6)} µs/event ${Math.round(1e6 / us)
      .toLocaleString()
      .padStart(10)} events/s`,
  )
}
