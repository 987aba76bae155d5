/**
 * Spans in protobuf beside the same events in JSON: the processor time to decode, map and validate one, and with --full
 * the rate at which the executable stores them, each batch after its fsync.
 */
import { acceptEvents } from '../../server/ingest/accept.ts'
import { validateEvent } from '../../server/ingest/check-event.ts'
import { spanMapping, type OtlpRequest } from '../../server/otlp/receive.ts'
import { startAppliance } from '../support/binary.ts'
import { ingestRequest, load } from '../support/load.ts'
import { encoded, readItems, tracesRequest, type Json, type TestSpan } from '../support/otlp.ts'
import { machine, recordTable, table } from './report.ts'

const options = { keep: 'agents', content: false } as const
const spansEach = 512 // the batch of an exporter by default

/** Tool calls of an agent as the GenAI conventions describe them, about 600 bytes each. */
function calls(batch: number): TestSpan[] {
  return Array.from({ length: spansEach }, (_, n) => ({
    traceId: Bun.SHA256.hash(`${batch} ${n % 16}`, 'hex').slice(0, 32),
    spanId: Bun.SHA256.hash(`${batch} ${n}`, 'hex').slice(0, 16),
    parentSpanId: 'b7ad6b7169203331',
    name: `execute_tool search_${n % 7}`,
    attributes: {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': `search_${n % 7}`,
      'gen_ai.tool.type': 'function',
      'gen_ai.tool.call.id': `call_${n}`,
      'gen_ai.conversation.id': `conversation_${n % 16}`,
      'gen_ai.provider.name': 'openai',
      'gen_ai.agent.name': 'Planner',
      'gen_ai.request.model': 'gpt-5',
      'server.address': 'tools.example',
      'server.port': 443,
    },
  }))
}

function eventsOf(body: Uint8Array): Json[] {
  const events: Json[] = []
  const { items, map } = spanMapping({ body, encoding: 'protobuf' } as OtlpRequest, options)
  for (const span of readItems(items())) {
    const fate = map(span, 0)
    if (fate.kind === 'mapped') events.push(...fate.events)
  }
  return events
}

const body = encoded('Traces', tracesRequest(calls(0)))
const json = JSON.stringify({ events: eventsOf(body) })

const runs = {
  json: () => acceptEvents(json, 'application/json', []),
  spans: () => eventsOf(body).map((event) => validateEvent(event, [], false, [])),
}

/** µs of processor time per event, the best of several alternating rounds. */
export function otlpBench(rounds: number, roundMs: number): { json: number; spans: number } {
  const best = { json: Infinity, spans: Infinity }
  for (let round = 0; round < rounds; round++) {
    for (const name of ['json', 'spans'] as const) {
      const usageBefore = process.cpuUsage()
      let count = 0
      let usedUs = 0
      while (usedUs < roundMs * 1_000) {
        runs[name]()
        count++
        const { user, system } = process.cpuUsage(usageBefore)
        usedUs = user + system
      }
      best[name] = Math.min(best[name], usedUs / (count * spansEach))
    }
  }
  return best
}

function otlpRequest(key: string, bytes: Uint8Array): Uint8Array {
  const head =
    `POST /v1/traces HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${key}\r\n` +
    `content-type: application/x-protobuf\r\ncontent-length: ${bytes.length}\r\n\r\n`
  return Buffer.concat([Buffer.from(head), bytes])
}

/** Both kinds against one executable, in alternating parts, every event new. */
async function storedPerSecond(seconds: number): Promise<{ json: number; spans: number }> {
  await using appliance = await startAppliance()
  const keyExit = await appliance.cli('key', 'create', '--kind', 'ingest', '--label', 'bench', '--json')
  const { key } = JSON.parse(keyExit.stdout) as { key: string }
  const stored = { json: 0, spans: 0 }
  const elapsed = { json: 0, spans: 0 }
  let batch = 1
  for (const kind of ['json', 'spans', 'spans', 'json'] as const) {
    const requests = Array.from({ length: Math.ceil((seconds * 110_000) / spansEach) }, () => {
      const bytes = encoded('Traces', tracesRequest(calls(batch++)))
      if (kind === 'spans') return otlpRequest(key, bytes)
      return ingestRequest('/v1/sdk/events', key, JSON.stringify({ events: eventsOf(bytes) }))
    })
    const warm = requests.splice(0, Math.ceil(requests.length / 10))
    await load({ url: appliance.url, connections: 8, seconds: seconds / 5, next: () => warm.pop() ?? null })
    const result = await load({
      url: appliance.url,
      connections: 8,
      seconds,
      next: () => requests.pop() ?? null,
    })
    stored[kind] += result.requests * spansEach
    elapsed[kind] += result.seconds
  }
  return { json: Math.round(stored.json / elapsed.json), spans: Math.round(stored.spans / elapsed.spans) }
}

/** Seconds to store this many spans of one trace, and milliseconds to read its session afterwards. */
async function oneTrace(count: number): Promise<{ seconds: number; events: number; sessionMs: number }> {
  await using appliance = await startAppliance()
  const keyOf = async (kind: string): Promise<string> => {
    const keyExit = await appliance.cli('key', 'create', '--kind', kind, '--label', 'bench', '--json')
    return (JSON.parse(keyExit.stdout) as { key: string }).key
  }
  const ingest = await keyOf('ingest')
  const secret = await keyOf('secret')
  const traceId = 'abcdef0123456789'.repeat(2)
  let next = 1
  const requests = Array.from({ length: Math.ceil(count / spansEach) }, () => {
    const spans = calls(0).map((span) => {
      const { 'gen_ai.conversation.id': _, ...attributes } = span.attributes!
      return { ...span, traceId, spanId: (next++).toString(16).padStart(16, '0'), attributes }
    })
    return otlpRequest(ingest, encoded('Traces', tracesRequest(spans)))
  })
  const options = { url: appliance.url, connections: 8, seconds: 600, next: () => requests.pop() ?? null }
  const { seconds, requests: answered } = await load(options)
  const startedMs = performance.now()
  const headers = { authorization: `Bearer ${secret}` }
  const story = await fetch(`${appliance.url}/v1/sessions/${traceId}`, { headers })
  if (!story.ok) throw new Error(`the session answered ${story.status}: ${await story.text()}`)
  await story.text()
  return { seconds, events: answered * spansEach, sessionMs: performance.now() - startedMs }
}

if (import.meta.main) {
  const isFull = process.argv.includes('--full')
  const cost = otlpBench(isFull ? 20 : 5, 200)
  const rate = isFull ? await storedPerSecond(4) : null
  const row = (name: string, kind: 'json' | 'spans') => [
    name,
    cost[kind].toFixed(2),
    Math.round(1_000_000 / cost[kind]),
    rate === null ? '' : rate[kind],
  ]
  const head = [
    '512 tool calls per request',
    'µs each on the HTTP thread',
    'that is per second',
    'stored per second',
  ]
  const text = table(head, [row('events in JSON', 'json'), row('spans in protobuf', 'spans')])
  const share = rate === null ? '' : `\n\nSpans per event in JSON: ${(rate.spans / rate.json).toFixed(2)}`
  const trace = isFull ? await oneTrace(1_000_000) : null
  const long =
    trace === null
      ? ''
      : `\n\n${trace.events} spans of one trace: stored in ${trace.seconds.toFixed(1)} s, ` +
        `its session read in ${trace.sessionMs.toFixed(0)} ms`
  process.stdout.write(`${machine()}\n\n${text}${share}${long}\n`)
  if (process.argv.includes('--record')) recordTable('OpenTelemetry', text + share + long)
}
