/** The gateway of the executable over a filled store: pages, sessions, metrics and exports, and their memory. */
import { startAppliance, type Appliance } from '../support/binary.ts'
import { machine, recordTable, residentMiB, settled, table } from './report.ts'

export interface GatewayBench {
  events: number
  fillPerSecond: number
  asked: { what: string; p50Ms: number; p99Ms: number }[]
  exports: { what: string; perSecond: number; grewMiB: number }[] // memory above the value before
}

const sitesMany = 40
const metricsToken = 'the-token-of-the-bench-0123456789'

const dayMs = 86_400_000

/** Events spread over the last day. */
function body(from: number, count: number, { startMs, stepMs }: { startMs: number; stepMs: number }): string {
  const lines: string[] = []
  for (let n = from; n < from + count; n++) {
    const kind = n % 6
    lines.push(
      `{"id":"trc_${(n * 2_654_435_761) % 4_294_967_296}_${n}","siteId":"site-${n % sitesMany}",` +
        `"sessionId":"ses_${Math.floor(n / 20)}","occurredAt":"${new Date(startMs + n * stepMs).toISOString()}",` +
        `"type":"${['agent.detected', 'auth.identity_presented', 'authz.evaluated', 'tool.executed', 'memory.accessed', 'tool.surfaced'][kind]}",` +
        `"outcome":"${n % 9 === 0 ? 'blocked' : 'success'}","tool":"checkout.step_${n % 200}","durationMs":${n % 900},` +
        `"agent":{"class":"dom","trust":"detected","vendor":"vendor-${n % 1_000 === 0 ? 'rare' : n % 30}"},` +
        `"policy":{"decision":"${n % 9 === 0 ? 'deny' : 'allow'}","ruleId":"rule-${n % 50}"},` +
        `"metadata":{"page":"/products/${n % 500}","protocol":"web-bot-auth","note":"event number ${n} of many"}}`,
    )
  }
  return lines.join('\n')
}

export async function gatewayBench(events: number, rounds: number): Promise<GatewayBench> {
  const server = await startAppliance({
    args: ['--rate-limit-gateway', 'off', '--metrics-token', metricsToken],
  })
  try {
    const keyOf = async (kind: string) =>
      (
        JSON.parse((await server.cli('key', 'create', '--kind', kind, '--label', kind, '--json')).stdout) as {
          key: string
        }
      ).key
    const ingest = await keyOf('ingest')
    const secret = await keyOf('secret')
    const fillPerSecond = await fill(server, ingest, events)
    // Full segments are sealed and repacked, which this bench is not about.
    await settled(server.pid)
    const timings = []
    for (const [question, path] of await questions(server, secret)) {
      timings.push({
        what: question,
        ...(await times(server, path === '/metrics' ? metricsToken : secret, path, rounds)),
      })
    }
    for (const [name, args] of assistantQuestions) {
      const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }
      const question = `MCP: ${name} ${JSON.stringify(args)}`
      timings.push({
        what: question,
        ...(await times(server, secret, '/mcp', rounds, JSON.stringify(message))),
      })
    }
    const exports = []
    for (const [exportName, accept, pauseMs] of [
      ['NDJSON', 'application/x-ndjson', 0],
      ['CSV', 'text/csv', 0],
      ['NDJSON, a slow receiver', 'application/x-ndjson', 20],
    ] as const) {
      exports.push({ what: exportName, ...(await drain(server, secret, accept, pauseMs)) })
    }
    return { events, fillPerSecond, asked: timings, exports }
  } finally {
    await server.stop()
  }
}

async function fill(server: Appliance, key: string, events: number): Promise<number> {
  const times = { startMs: Date.now() - dayMs, stepMs: dayMs / events }
  const startedMs = performance.now()
  let next = 0
  const sender = async () => {
    for (;;) {
      const from = next
      if (from >= events) return
      next += 1_000
      const text = body(from, Math.min(1_000, events - from), times)
      while ((await post(server, key, text)) === 503) await Bun.sleep(50) // backpressure: the write queue is full
    }
  }
  await Promise.all([sender(), sender(), sender()])
  return Math.round(events / ((performance.now() - startedMs) / 1_000))
}

async function post(server: Appliance, key: string, text: string): Promise<number> {
  const response = await fetch(`${server.url}/v1/sdk/events`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/x-ndjson' },
    body: text,
  })
  if (response.status !== 202 && response.status !== 503) {
    throw new Error(`${response.status} ${await response.text()}`)
  }
  return response.status
}

async function questions(server: Appliance, key: string): Promise<[string, string][]> {
  const headers = { authorization: `Bearer ${key}` }
  const middle = new Date(Date.now() - dayMs / 2).toISOString()
  const deep = (await (
    await fetch(`${server.url}/v1/traces?limit=200&until=${middle}`, { headers })
  ).json()) as {
    nextCursor: string | null
  }
  return [
    ['page of 200', '/v1/traces?limit=200'],
    ['page of 200 from a cursor', `/v1/traces?limit=200&cursor=${deep.nextCursor}`],
    ['page, common filter', '/v1/traces?limit=200&type=authz.*&outcome=blocked'],
    ['page, rare filter', '/v1/traces?limit=200&vendor=vendor-rare'],
    ['page, empty pair', '/v1/traces?limit=200&vendor=vendor-rare&siteId=site-1'],
    ['search', `/v1/traces?limit=50&since=${middle}&q=of%20MANY`],
    ['sessions, page of 50', '/v1/sessions'],
    ['one session', '/v1/sessions/ses_77'],
    ['metrics of 30 days', '/v1/metrics'],
    ['tools', '/v1/tools'],
    ['/metrics', '/metrics'],
  ]
}

const assistantQuestions: [tool: string, args: object][] = [
  ['describe_record', {}],
  ['count', { type: ['authz.*'], outcome: ['blocked'] }],
  ['count', { by: 'vendor' }],
  ['count', { vendor: ['vendor-3'], last: '1h' }],
  ['count', { vendor: ['vendor-rare'] }],
  ['count', { vendor: ['vendor-3'] }],
  ['timeline', {}],
  ['timeline', { tool: ['checkout.step_7'] }],
  ['find_events', {}],
  ['find_events', { outcome: ['blocked'], vendor: ['vendor-3'] }],
  ['find_sessions', {}],
  ['session_story', { id: 'ses_77' }],
  ['find_events', { decision: ['deny'], last: '1h' }],
  ['tool_health', {}],
  ['changes', {}],
]

async function times(server: Appliance, key: string, path: string, rounds: number, body?: string) {
  const took: number[] = []
  for (let n = 0; n < rounds; n++) {
    const startedMs = performance.now()
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    const response = await fetch(
      server.url + path,
      body === undefined ? { headers } : { headers, body, method: 'POST' },
    )
    const text = await response.text()
    if (response.status !== 200 || text.includes('"isError":true'))
      throw new Error(`${path}: ${response.status} ${body === undefined ? '' : text}`)
    took.push(performance.now() - startedMs)
  }
  took.sort((a, b) => a - b)
  const quantileAt = (share: number) =>
    Math.round(took[Math.min(took.length - 1, Math.floor(took.length * share))]! * 10) / 10
  return { p50Ms: quantileAt(0.5), p99Ms: quantileAt(0.99) }
}

/** Reads an export to its end (the slow receiver for 2 s). Returns its rate and memory growth. */
async function drain(server: Appliance, key: string, accept: string, pauseMs: number) {
  const beforeMiB = residentMiB(server.pid)
  let mostMiB = beforeMiB
  const startedMs = performance.now()
  const stop = new AbortController()
  const response = await fetch(`${server.url}/v1/traces`, {
    headers: { authorization: `Bearer ${key}`, accept },
    signal: stop.signal,
  })
  let lines = 0
  for (const reader = response.body!.getReader(); ;) {
    const { done, value } = await reader.read()
    if (done) break
    for (let offset = value.indexOf(10); offset >= 0; offset = value.indexOf(10, offset + 1)) lines++
    mostMiB = Math.max(mostMiB, residentMiB(server.pid))
    if (pauseMs > 0) await Bun.sleep(pauseMs)
    if (pauseMs > 0 && performance.now() - startedMs > 2_000) break
  }
  stop.abort()
  const perSecond = Math.round((lines - 1) / ((performance.now() - startedMs) / 1_000))
  return { perSecond, grewMiB: Math.round(mostMiB - beforeMiB) }
}

export function gatewayTables({ events, fillPerSecond, asked: timings, exports }: GatewayBench): string {
  const first = table(
    [
      `over ${events.toLocaleString('en-US')} events (filled at ${fillPerSecond.toLocaleString('en-US')}/s)`,
      'p50 ms',
      'p99 ms',
    ],
    timings.map(({ what: question, p50Ms, p99Ms }) => [question, p50Ms, p99Ms]),
  )
  const second = table(
    ['export', 'events/s', 'memory it took, MiB'],
    exports.map(({ what: exportName, perSecond, grewMiB }) => [exportName, perSecond, grewMiB]),
  )
  return `${first}\n\n${second}`
}

if (import.meta.main) {
  const isFull = process.argv.includes('--full')
  const text = gatewayTables(await gatewayBench(isFull ? 10_000_000 : 200_000, isFull ? 200 : 60))
  process.stdout.write(`${machine()}\n\n${text}\n`)
  if (isFull) recordTable('Gateway', text)
}
