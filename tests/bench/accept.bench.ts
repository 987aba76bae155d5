/** The cost of parsing, validating and rewriting an event on the HTTP thread, compared with JSON.parse. */
import { acceptEvents } from '../../server/ingest/accept.ts'
import { readBody } from '../../server/http/body.ts'
import { exampleEvent } from '../support/events.ts'
import { machine, recordTable, table } from './report.ts'

const eventsPerBody = 100

/** About 500 bytes, like the events of a customer's backend. */
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
const spaced = body.replaceAll('":', '": ').replaceAll(',"', ', "') // like the output of Python's json.dumps
const lines = events.map((event) => JSON.stringify(event)).join('\n')
const oneBad = JSON.stringify({
  events: events.with(50, { ...exampleEvent, type: 'Not A Type', id: 'evt_bad' } as never),
})
const bytes = Buffer.from(body)
const headers = { 'content-length': String(bytes.length) }
const request = (): Request => new Request('http://host/', { method: 'POST', body: bytes, headers })

const runs = {
  parse: () => JSON.parse(body),
  rewrite: () => (JSON.parse(body) as { events: unknown[] }).events.map((event) => JSON.stringify(event)),
  accept: () => acceptEvents(body, 'application/json', []),
  spaced: () => acceptEvents(spaced, 'application/json', []),
  lines: () => acceptEvents(lines, 'application/x-ndjson', []),
  oneBad: () => acceptEvents(oneBad, 'application/json', []),
  arrayBuffer: () => request().arrayBuffer(),
  readBody: () => readBody(request(), { bytesMax: bytes.length }),
} satisfies { [name: string]: () => unknown }

/** Processor µs per event, of all threads, so that other processes of the machine count little. */
export type AcceptBench = { [Name in keyof typeof runs]: number }

const titles: { [Name in keyof AcceptBench]: string } = {
  parse: 'floor: JSON.parse',
  rewrite: 'floor: JSON.parse, then JSON.stringify of each',
  accept: 'accept',
  spaced: 'accept, spaced as Python writes',
  lines: 'accept, NDJSON',
  oneBad: 'accept, one event rejected',
  arrayBuffer: 'floor: request.arrayBuffer',
  readBody: 'readBody',
}

/** The best of several alternating rounds. On a shared machine, the best round says most about the code. */
export async function acceptBench({
  rounds,
  roundMs,
}: {
  rounds: number
  roundMs: number
}): Promise<AcceptBench> {
  const names = Object.keys(runs) as (keyof AcceptBench)[]
  const best = Object.fromEntries(names.map((name) => [name, Infinity])) as AcceptBench
  for (let round = 0; round < rounds; round++) {
    for (const name of names) {
      const startMs = performance.now()
      const usageBefore = process.cpuUsage()
      let bodies = 0
      while (performance.now() - startMs < roundMs) {
        const result: unknown = runs[name]()
        if (result instanceof Promise) await result
        bodies++
      }
      const { user, system } = process.cpuUsage(usageBefore)
      best[name] = Math.min(best[name], (user + system) / bodies / eventsPerBody)
    }
  }
  return best
}

export function acceptTable(result: AcceptBench): string {
  const names = Object.keys(titles) as (keyof AcceptBench)[]
  const rows = names.map((name) => [titles[name], result[name].toFixed(2), Math.round(1e6 / result[name])])
  const size = `${Math.round(body.length / eventsPerBody)} bytes an event, ${eventsPerBody} a body`
  return table([size, 'µs/event', 'events/s'], rows)
}

if (import.meta.main) {
  const short = process.argv.includes('--short')
  const text = acceptTable(
    await acceptBench(short ? { rounds: 3, roundMs: 50 } : { rounds: 7, roundMs: 300 }),
  )
  process.stdout.write(`${machine()}\n\n${text}\n`)
  if (!short) recordTable('Accepting', text)
}
