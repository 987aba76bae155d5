/** A store that fills every page of the dashboard: a million events of all kinds, tools, site memory. */
import type { Appliance } from '../support/binary.ts'
import { ingestKey } from '../e2e/dashboard-actions.ts'
import { countedTypes as types, push } from '../e2e/pages-actions.ts'

const sites = ['shop', 'blog', 'help', 'docs']
const toolsOfASite = 50
const spanMs = 14 * 86_400_000 // the default range, and the one before it

const classes = ['crawler', 'dom', 'webmcp', 'screenshot']
const trusts = ['detected', 'declared', 'verified', 'linked']
const vendors = ['GPTBot', 'ClaudeBot', 'Operator', 'House Agent', 'PerplexityBot', 'Bytespider', 'Amazonbot']

/** Strides without a common divisor, so that every value occurs with every other. */
function line(n: number, atMs: number): string {
  const pick = <T>(list: readonly T[], stride: number): T => list[Math.floor(n / stride) % list.length] as T
  const denied = n % 7 === 3
  const vendor = n % 5 === 0 ? `Agent ${Math.floor(n / 35) % 60}` : pick(vendors, 5)
  return JSON.stringify({
    id: `page_${n}`,
    siteId: pick(sites, 11),
    sessionId: `session-${Math.floor(n / 25)}`,
    occurredAt: new Date(atMs).toISOString(),
    type: types[n % types.length],
    outcome: denied ? 'blocked' : n % 31 === 0 ? 'error' : 'success',
    tool: `group.tool_${Math.floor(n / 13) % toolsOfASite}`,
    durationMs: (n * 37) % 900,
    agent: { class: pick(classes, 3), trust: pick(trusts, 4), vendor, userAgent: `${vendor}/1.0` },
    policy: {
      decision: denied ? 'deny' : n % 17 === 0 ? 'review' : 'allow',
      ruleId: `tool:rule-${Math.floor(n / 19) % 30}`,
      reason: pick(['trust below verified', 'rate above the limit', 'outside of opening hours'], 23),
    },
    metadata: {
      page: `/products/${Math.floor(n / 29) % 200}`,
      protocol: pick(['web-bot-auth', 'oauth2', 'bearer'], 2),
      subject: `subject-${Math.floor(n / 41) % 900}`,
    },
  })
}

/** Returns when all events are stored. */
export async function fillPages(server: Appliance, events: number): Promise<void> {
  const key = await ingestKey(server)
  for (const siteId of sites) await pushSite(server.url, key, siteId)
  const startMs = Date.now() - spanMs
  let next = 0
  const sender = async (): Promise<void> => {
    for (let from = next; from < events; from = next) {
      next = Math.min(events, from + 1_000)
      const lines = Array.from({ length: next - from }, (_, i) =>
        line(from + i, startMs + ((from + i) * spanMs) / events),
      )
      while (!(await postBatch(server.url, key, lines.join('\n')))) await Bun.sleep(50)
    }
  }
  await Promise.all([sender(), sender(), sender()])
}

/** False under backpressure, when the write queue is full. */
async function postBatch(url: string, key: string, body: string): Promise<boolean> {
  const answer = await fetch(`${url}/v1/sdk/events`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/x-ndjson' },
    body,
  })
  if (answer.status !== 202 && answer.status !== 503)
    throw new Error(`${answer.status} ${await answer.text()}`)
  return answer.status === 202
}

async function pushSite(url: string, key: string, siteId: string): Promise<void> {
  const tools = Array.from({ length: toolsOfASite }, (_, n) => ({
    name: `group.tool_${n}`,
    title: `Tool number ${n}`,
    description: `What tool ${n} does, said in the words that a registry usually has for it.`,
    page: `/products/${n % 12}`,
    inputSchema: {
      type: 'object',
      required: ['id'],
      properties: {
        id: { type: 'string', description: 'Number of the product' },
        count: { type: 'integer' },
      },
    },
  }))
  await push(url, key, 'tools', { siteId, tools })
  const pages = Array.from({ length: 40 }, (_, n) => ({
    path: `/products/${n}`,
    name: `Product ${n}`,
    purpose: 'Shows one product',
    availableActions: ['add', 'compare'],
  }))
  const snapshot = { siteMap: { pages }, policies: { returns: 'Within 30 days.', privacy: ['One.', 'Two.'] } }
  await push(url, key, 'memory', { siteId, snapshot })
}
