/** Bench of a filled appliance over HTTP: Overview, Explore, assistants, back-tests, reports and exports. */
import { owner, ownerEnv } from '../e2e/dashboard-actions.ts'
import { startAppliance, type Appliance } from '../support/binary.ts'
import { dropDatabaseOf, isOnPostgres } from '../support/engine.ts'
import { tempDir } from '../support/temp-dir.ts'
import { keyOf } from './loads.ts'
import { machine, perSecond, processorSeconds, recordTable, residentMiB, table } from './report.ts'

const help = `Fills an appliance with events of 30 days, and asks it over HTTP what people, assistants and rules ask.

  --events N  as many as you say; 200,000 unless given. 10,000,000 take about ten minutes and 2 GB of disk
  --rounds N  of each question, 40 unless given
  --write     replaces the section in tests/bench/results.md

SIGHTGLASS_TEST_ENGINE=postgres runs it on PostgreSQL.`

const dayMs = 86_400_000
const days = 30
/** The last events of the month have values that no event before has. */
const newsMs = dayMs / 2
const newsEvery = 20

/** What `GET /api/changes` finds in the last 24 hours. */
export const news = [
  ['impostor', 'FalseBot'],
  ['refusedOperator', 'vendor-5'],
  ['refusingRule', 'rule-new'],
  ['failingTool', 'checkout.step_0'],
  ['operator', 'vendor-new'],
  ['tool', 'checkout.step_new'],
]

const types = [
  'agent.detected',
  'agent.requested',
  'authz.evaluated',
  'tool.executed',
  'agent.requested',
  'memory.accessed',
  'tool.surfaced',
  'tool.executed',
]
const plans = ['pro', 'free', 'team', 'enterprise']

export interface Span {
  startMs: number
  endMs: number
  events: number
}

/** One of `many` values, of which the first are far more frequent than the last. */
function skewed(n: number, choiceCount: number): number {
  return Math.floor(choiceCount * ((Math.imul(n, 0x9e3779b1) >>> 0) / 2 ** 32) ** 3)
}

/** Event `n` as JSON: 20 per session, a turn of all types after another. */
export function line(n: number, { startMs, endMs, events }: Span): string {
  const atMs = startMs + ((endMs - startMs) * n) / events
  const turn = Math.floor(n / types.length)
  const newsAt = endMs - atMs < newsMs ? turn % newsEvery : null
  const type = types[n % types.length]!
  const [isRequest, isDecision, isCall] = ['agent.requested', 'authz.evaluated', 'tool.executed'].map(
    (typeName) => typeName === type,
  )
  const isFalse = newsAt === 9 && isRequest
  const isContradicted = isFalse || (turn % 97 === 0 && isRequest)
  const vendor = newsAt === 3 ? 'new' : isContradicted ? Number(isFalse) : skewed(turn, 31)
  const tool = newsAt === 0 ? 'new' : skewed(turn + 7, 40)
  const isRefused = vendor === 5 && isRequest ? newsAt !== null : turn % 9 === 0
  const rule = newsAt === 1 ? 'new' : turn % 50
  const isBlocked = isRefused || (rule === 'new' && isDecision)
  const outcome = newsAt !== null && tool === 0 && isCall ? 'error' : isBlocked ? 'blocked' : 'success'
  return (
    `{"id":"q_${n}","siteId":"site-${turn % 3}","sessionId":"ses_${Math.floor(n / 160) * 8 + (n % 8)}",` +
    `"occurredAt":"${new Date(atMs).toISOString()}","type":"${type}","outcome":"${outcome}",` +
    (isCall ? `"tool":"checkout.step_${tool}","durationMs":${(n * 13) % 900},` : '') +
    `"agent":{"class":"crawler","trust":"detected","vendor":"vendor-${vendor}",` +
    `"name":"${isFalse ? 'FalseBot' : `Bot-${vendor}-${turn % 2}`}"` +
    (isRequest ? `,"verdict":"${isContradicted ? 'contradicted' : 'verified'}"},` : '},') +
    (isDecision ? `"policy":{"decision":"${isBlocked ? 'deny' : 'allow'}","ruleId":"rule-${rule}"},` : '') +
    `"metadata":{"page":"/products/${turn % 500}","subject":"user-${turn % 2_003}",` +
    `"plan":"${plans[turn % 4]}","cart":{"items":${turn % 6}}}}`
  )
}

const batchEvents = 1_000

/** Three senders; repeats a batch under backpressure. */
async function fill(server: Appliance, key: string, span: Span): Promise<number> {
  const startedMs = performance.now()
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/x-ndjson' }
  let next = 0
  const sender = async (): Promise<void> => {
    for (let from = next; from < span.events; from = next) {
      next = Math.min(span.events, from + batchEvents)
      const body = Array.from({ length: next - from }, (_, index) => line(from + index, span)).join('\n')
      for (;;) {
        const answer = await fetch(`${server.url}/v1/sdk/events`, { method: 'POST', headers, body })
        const text = await answer.text()
        if (answer.status === 202) break
        if (answer.status !== 503) throw new Error(`${answer.status} ${text}`)
        await Bun.sleep(50)
      }
    }
  }
  await Promise.all([sender(), sender(), sender()])
  return performance.now() - startedMs
}

export interface Asker {
  url: string
  cookie: string
  secret: string
  ingest: string
  pid: number
}

async function askerOf(server: Appliance): Promise<Asker> {
  const headers = { 'content-type': 'application/json', origin: server.url }
  const body = JSON.stringify(owner)
  const answer = await fetch(`${server.url}/api/sign-in`, { method: 'POST', headers, body })
  const cookie = answer.headers.get('set-cookie')?.split(';')[0] ?? ''
  const secret = await keyOf(server, 'secret')
  const ingest = await keyOf(server, 'ingest')
  return { url: server.url, cookie, secret, ingest, pid: server.pid }
}

/** One request; throws unless it was answered. */
export async function ask({ url, cookie, secret }: Asker, path: string, body?: object, accept?: string) {
  const isGateway = path.startsWith('/v1/') || path === '/mcp'
  const answer = await fetch(url + path, {
    headers: {
      ...(isGateway ? { authorization: `Bearer ${secret}` } : { cookie, origin: url }),
      ...(body && { 'content-type': 'application/json' }),
      ...(accept !== undefined && { accept }),
    },
    ...(body && { method: 'POST', body: JSON.stringify(body) }),
  })
  const text = await answer.text()
  if (answer.status !== 200 || text.includes('"isError":true'))
    throw new Error(`${path}: ${answer.status} ${text.slice(0, 500)}`)
  return text
}

async function sendOne({ url, ingest }: Asker): Promise<void> {
  const event = { id: crypto.randomUUID(), siteId: 'site-1', sessionId: 'now', type: 'tool.surfaced' }
  const body = JSON.stringify({ events: [{ ...event, occurredAt: iso(Date.now()), outcome: 'success' }] })
  const headers = { authorization: `Bearer ${ingest}`, 'content-type': 'application/json' }
  const answer = await fetch(`${url}/v1/sdk/events`, { method: 'POST', headers, body })
  if (answer.status !== 202) throw new Error(`${answer.status} ${await answer.text()}`)
}

interface Question {
  what: string
  path: string
  body?: object
  accept?: string
  barMs?: number // of issue 23, at 10,000,000 events
  roundsMax?: number
  afterEvent?: boolean // a new event before each, so that no answer is known
}

const iso = (ms: number): string => new Date(ms).toISOString()

function dashboardQuestions(nowMs: number): Question[] {
  const changes = [1, 7, 30].map((count) => ({
    what: `Overview: changes of ${count} d`,
    barMs: 100,
    path: `/api/changes?since=${iso(nowMs - count * dayMs)}`,
  }))
  const explore = (label: string, query: string, overrides: Partial<Question> = {}): Question => ({
    what: `Explore: ${label}`,
    path: `/v1/explore?${query}`,
    ...overrides,
  })
  const since = (count: number) => `since=${iso(nowMs - count * dayMs)}`
  const [newest] = changes
  return [
    ...changes,
    { ...newest!, what: 'Overview: changes of 1 d, after a new event', afterEvent: true },
    { what: 'Overview: week', path: '/api/week?range=7d', barMs: 100 },
    explore('events by vendor, 30 d', 'by=vendor&step=day', { barMs: 200 }),
    explore('blocked events by vendor, 30 d', 'by=vendor&filter=outcome:blocked', { barMs: 200 }),
    explore('metadata.plan, 24 h', `by=metadata.plan&${since(1)}`, { barMs: 300 }),
    explore('metadata.plan, all, the first time', 'by=metadata.plan', {
      barMs: 3_000,
      accept: 'application/x-ndjson',
      roundsMax: 1,
    }),
    explore('metadata.plan, all, again', 'by=metadata.plan', {
      barMs: 3_000,
      accept: 'application/x-ndjson',
      roundsMax: 5,
    }),
    explore('metadata.cart.items, all, the first time', 'by=metadata.cart.items', {
      barMs: 3_000,
      accept: 'application/x-ndjson',
      roundsMax: 1,
    }),
  ]
}

const seasonal = { kind: 'change', direction: 'both' }
const aboveCondition = { kind: 'above', value: 1_000_000 }

const rules: [what: string, definition: object][] = [
  ['threshold', { measure: 'count', condition: aboveCondition }],
  [
    'threshold of one vendor',
    { measure: 'errors', condition: aboveCondition, filter: { vendor: 'vendor-3' } },
  ],
  ['change against its past', { measure: 'count', condition: seasonal, filter: { vendor: 'vendor-3' } }],
  ['change by tool', { measure: 'count', condition: seasonal, groupBy: 'tool' }],
  ['sessions', { measure: 'sessions', condition: aboveCondition }],
  ['sessions by operator', { measure: 'sessions', condition: aboveCondition, groupBy: 'vendor' }],
  ['subjects in 5 minutes', { measure: 'subjects', condition: aboveCondition, windowMinutes: 5 }],
  ['p95 of one vendor', { measure: 'p95', condition: aboveCondition, filter: { vendor: 'vendor-3' } }],
]

const tools: [tool: string, args: object][] = [
  ['describe_record', {}],
  ['count', { type: ['authz.*'], outcome: ['blocked'] }],
  ['count', { by: 'vendor' }],
  ['count', { vendor: ['vendor-3'] }],
  ['count', { vendor: ['vendor-3'], last: '1h' }],
  ['timeline', {}],
  ['timeline', { tool: ['checkout.step_8'] }],
  ['find_events', {}],
  ['find_events', { outcome: ['blocked'], vendor: ['vendor-3'], last: '24h' }],
  ['get_event', { id: 'q_0' }],
  ['find_sessions', {}],
  ['session_story', { id: 'ses_8' }],
  ['explain_refusal', {}],
  ['tool_health', {}],
  ['changes', {}],
]

function questions(nowMs: number): Question[] {
  const report = { what: 'Report of 30 d', path: '/api/reports?range=30d', body: {}, roundsMax: 5 }
  return [
    ...dashboardQuestions(nowMs),
    ...rules.map(([ruleName, definition]) => ({
      what: `Back-test: ${ruleName}`,
      path: '/v1/webhooks/rules/backtest',
      barMs: 1_000,
      roundsMax: 5,
      body: { windowMinutes: 60, ...definition },
    })),
    report,
    ...tools.map(([name, args]) => ({
      what: `MCP: ${name} ${JSON.stringify(args)}`,
      path: '/mcp',
      barMs: 100,
      body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } },
    })),
  ]
}

export interface Asked {
  what: string
  firstMs: number
  firstCpuMs: number // of the server, in steps of 10 ms
  p50Ms: number
  p99Ms: number
  bytes: number
  barMs: number | null
}

/** The first answer may fill caches, so it is not among the others. */
async function times(asker: Asker, question: Question, rounds: number): Promise<Asked> {
  const { what: label, path, body, accept, barMs = null, roundsMax = rounds, afterEvent = false } = question
  const took: number[] = []
  let bytes = 0
  let firstCpuMs = 0
  for (let n = 0; n < Math.min(rounds, roundsMax) + (roundsMax === 1 ? 0 : 1); n++) {
    if (afterEvent) await sendOne(asker)
    const startedMs = performance.now()
    const startedCpu = processorSeconds(asker.pid)
    bytes = (await ask(asker, path, body, accept)).length
    took.push(performance.now() - startedMs)
    if (n === 0) firstCpuMs = (processorSeconds(asker.pid) - startedCpu) * 1_000
  }
  const firstMs = took[0]!
  const again = (took.length === 1 ? took : took.slice(1)).sort((a, b) => a - b)
  const quantileAt = (share: number) => again[Math.min(again.length - 1, Math.floor(again.length * share))]!
  return { what: label, firstMs, firstCpuMs, p50Ms: quantileAt(0.5), p99Ms: quantileAt(0.99), bytes, barMs }
}

interface Exported {
  what: string
  ms: number
  bytes: number
  grewMiB: number // above the memory before it
}

/** Reads a whole export, without keeping it. */
async function drain({ url, secret, pid }: Asker, accept: string): Promise<Exported> {
  const beforeMiB = residentMiB(pid)
  let mostMiB = beforeMiB
  let bytes = 0
  const timer = setInterval(() => (mostMiB = Math.max(mostMiB, residentMiB(pid))), 20)
  const startedMs = performance.now()
  const headers = { authorization: `Bearer ${secret}`, accept }
  const answer = await fetch(`${url}/v1/traces`, { headers })
  if (answer.status !== 200) throw new Error(`${answer.status} ${await answer.text()}`)
  for await (const part of answer.body!) bytes += part.byteLength
  const ms = performance.now() - startedMs
  clearInterval(timer)
  return { what: accept, ms, bytes, grewMiB: mostMiB - beforeMiB }
}

const idleShare = 0.1
const idleSecondsMax = 600

/** Waits until the server has made its indexes of what was filled faster than anybody asks. */
async function idle({ pid }: Appliance): Promise<void> {
  for (let second = 0, secondsBefore = processorSeconds(pid); second < idleSecondsMax; second++) {
    await Bun.sleep(1_000)
    const now = processorSeconds(pid)
    if (now - secondsBefore < idleShare) return
    secondsBefore = now
  }
}

/** Since when somebody asks, who looked just now. */
const lookOf = (nowMs: number) => ({ since: iso(nowMs - dayMs), at: iso(nowMs), hidden: [], shown: [] })

/** Waits until the server has prepared the next visit of Overview. */
async function warmed({ url, secret }: Asker): Promise<void> {
  const headers = { authorization: `Bearer ${secret}` }
  for (;;) {
    const text = await (await fetch(`${url}/metrics`, { headers })).text()
    if (/^sightglass_job_runs_total\{.*"overview-warm".*\} [1-9]/m.test(text)) return
    await Bun.sleep(250)
  }
}

export interface QuestionsBench {
  events: number
  fillMs: number
  asked: Asked[]
  tokens: number // of an assistant's answer, in the median
  exports: Exported[]
}

/** `check` gets the filled appliance before the measurements. */
export async function questionsBench(
  events: number,
  rounds: number,
  check: (asker: Asker, span: Span) => Promise<void> = async () => {},
): Promise<QuestionsBench> {
  const off = ['--rate-limit-ingest', 'off', '--rate-limit-gateway', 'off']
  using dir = tempDir('questions')
  const start = (...args: string[]) =>
    startAppliance({ env: ownerEnv, args: [...off, ...args], dataDir: dir.join('data') })
  let server = await start()
  try {
    let asker = await askerOf(server)
    const endMs = Date.now() - 60_000
    const span = { startMs: endMs - days * dayMs, endMs, events }
    const fillMs = await fill(server, asker.ingest, span)
    await idle(server)
    // Somebody looks, and the next day the server has been started anew.
    await ask(asker, '/api/overview/visit', lookOf(Date.now()))
    await server.stop()
    server = await start('--metrics-token', asker.secret)
    asker = { ...asker, url: server.url, pid: server.pid }
    await warmed(asker)
    await check(asker, span)
    const answers: Asked[] = []
    for (const question of questions(Date.now())) answers.push(await times(asker, question, rounds))
    const exports = []
    for (const accept of ['application/vnd.apache.parquet', 'application/x-ndjson'])
      exports.push(await drain(asker, accept))
    const sizes = answers.filter(({ what: label }) => label.startsWith('MCP')).map(({ bytes }) => bytes / 4)
    const tokens = sizes.sort((a, b) => a - b)[sizes.length >> 1]!
    return { events, fillMs, asked: answers, tokens, exports }
  } finally {
    await server.stop()
    await dropDatabaseOf(server.dataDir)
  }
}

export function questionsTables({ events, fillMs, asked: answers, tokens, exports }: QuestionsBench): string {
  const ms = (value: number) => Math.round(value * 10) / 10
  const filled = `${events.toLocaleString('en-US')} events over ${days} days, filled at ${perSecond(events, fillMs)}`
  const bar = (answer: Asked) => (answer.barMs === null ? '' : answer.barMs)
  return [
    table(
      [filled, 'first ms', 'its CPU ms', 'p50 ms', 'p99 ms', 'bytes', 'bar ms'],
      answers.map((answer) => [
        answer.what,
        ms(answer.firstMs),
        Math.round(answer.firstCpuMs),
        ms(answer.p50Ms),
        ms(answer.p99Ms),
        answer.bytes,
        bar(answer),
      ]),
    ),
    `Median answer of an assistant's tool: ${Math.round(tokens)} tokens of 4 bytes; the bar is 1,500.`,
    table(
      ['export', 'events/s', 'MB', 'memory above the server, MiB'],
      exports.map(({ what: exportName, ms: took, bytes, grewMiB }) => [
        exportName,
        perSecond(events, took),
        Math.round(bytes / 1e6),
        Math.round(grewMiB),
      ]),
    ),
  ].join('\n\n')
}

if (import.meta.main) {
  const value = (name: string, initial: number): number => {
    const optionIndex = process.argv.indexOf(name)
    return optionIndex < 0 ? initial : Number(process.argv[optionIndex + 1])
  }
  if (process.argv.includes('--help')) console.log(help)
  else {
    const text = questionsTables(await questionsBench(value('--events', 200_000), value('--rounds', 40)))
    console.log(`${machine()}\n\n${text}`)
    if (process.argv.includes('--write'))
      recordTable(isOnPostgres ? 'Questions, PostgreSQL' : 'Questions', text)
  }
}
