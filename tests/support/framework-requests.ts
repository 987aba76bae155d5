/** The 30 requests that every framework answers and reports alike, and how they are sent and compared. */
import { agentOf } from '../../sdk/middleware/middleware.ts'
import type { CompleteEvent } from '../../sdk/client/event.ts'

const agents = {
  gpt: 'Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)',
  claude: 'Mozilla/5.0 (compatible; ClaudeBot/1.0; +claudebot@anthropic.com)',
  person: 'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/156.0 Safari/537.36',
  none: '',
}
type Sent = [agent: keyof typeof agents, path: string, method?: string, headers?: { [name: string]: string }]

const statuses = [204, 301, 401, 403, 404, 429, 503]

export const sentRequests: Sent[] = [
  ...['/', '/docs?q=secret', '/docs/a%20b', '/a;b=c', '/%E2%82%AC', '/very/'.padEnd(700, 'x')].flatMap(
    (path): Sent[] => [
      ['gpt', path],
      ['claude', path],
    ],
  ),
  ...statuses.map((status): Sent => ['gpt', `/status/${status}`]),
  ['gpt', '/throws'],
  ['gpt', '/', 'HEAD'],
  ['claude', '/', 'POST'],
  ['gpt', '/', 'PUT'],
  ['gpt', '/', 'GET', { referer: 'https://user@Search.Example:8443/find?q=secret' }],
  ['gpt', '/', 'GET', { referer: 'not a url' }],
  ['gpt', '/skipped'],
  ['gpt', '/slow'],
  ['person', '/'],
  ['person', '/status/404'],
  ['none', '/'],
]

/** What the handler of every framework answers. */
export async function answer(path: string, request: object): Promise<{ status: number; body: string }> {
  const [, name, status] = path.split('?')[0]!.split('/')
  if (name === 'throws') throw new Error('handler')
  if (name === 'slow') await new Promise((resolve) => setTimeout(resolve, 20))
  const agent = agentOf(request)
  const { agent: field = agent } = request as { agent?: unknown }
  if (field !== agent) throw new Error('request.agent is not what agentOf returns')
  const code = name === 'status' ? Number(status) : 200
  return { status: code, body: code === 204 ? '' : JSON.stringify({ agent }) }
}

export const headersOf = (body: string) => ({
  'content-type': 'application/json',
  'content-length': String(body.length),
})

export interface Running {
  url: string
  stop(): unknown
}

/** What must be equal: not the ids and times, nor the size of an error page. */
export function comparable(events: CompleteEvent[]): unknown[] {
  const sessions: string[] = []
  return events.map(({ id, sessionId, occurredAt, durationMs, metadata, ...eventFields }) => {
    if (!sessions.includes(sessionId)) sessions.push(sessionId)
    if ((durationMs ?? 0) > 5_000) throw new Error(`${metadata?.page} took ${durationMs} ms`)
    const fields: { [name: string]: unknown } = { ...metadata }
    if (fields['status'] === 500 || fields['method'] === 'HEAD') delete fields['bytes']
    return { ...eventFields, session: sessions.indexOf(sessionId), metadata: fields }
  })
}

/** Sends the requests one after the other, each when the event of the one before has arrived: `count` counts them. */
export async function sendAll({ url }: Running, count: () => number): Promise<string[]> {
  const answers: string[] = []
  for (const [agent, path, method = 'GET', headers = {}] of sentRequests) {
    const countBefore = count()
    const answered = await fetch(url + path, {
      method,
      redirect: 'manual',
      headers: { 'user-agent': agents[agent], host: 'shop.example:8080', connection: 'close', ...headers },
    })
    answers.push(`${answered.status} ${answered.status === 500 ? '' : await answered.text()}`)
    const isReported = (agent === 'gpt' || agent === 'claude') && path !== '/skipped'
    const deadlineMs = Date.now() + 2_000
    while (isReported && count() === countBefore && Date.now() < deadlineMs) await Bun.sleep(1)
  }
  return answers
}

export const gptBot = agents.gpt
