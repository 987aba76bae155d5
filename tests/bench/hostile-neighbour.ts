/** One organization that is hostile in every way at once, in a process of its own that exits by itself. */
import { headOf, openStalled, postHead, type Stalled } from '../support/stalled.ts'

export interface Hostility {
  url: string
  ingest: string
  secrets: string[]
  cookies: string[] // of its accounts
  receiver: string // host and port of a receiver that hangs, on every address of 127.0.0.0/8
  seconds: number
  /** 1 for the full load, less for a share of it */
  scale: number
}

/** That ask for pages of sessions, before `scale`. */
const sessionConnections = 6

function scaled(connections: number, scale: number): number {
  return Math.max(1, Math.round(connections * scale))
}

/** Pages of sessions that one of its connections got, by the responses to all of its requests. */
export function sessionPagesEach(responses: string, scale: number): number {
  const counts = JSON.parse(responses) as Counts
  return (counts['sessions']?.['200'] ?? 0) / scaled(sessionConnections, scale)
}

const part = Buffer.alloc(6_900_000, ' ')
const since = '1970-01-02T00:00:00Z'
const emptyQuery = `since=${since}&q=nothing%20says%20this`

type Counts = { [action: string]: { [status: string]: number } }

/** Repeats work on many connections until the time is up, and counts the responses. */
function repeater({ seconds, scale }: Hostility) {
  const endMs = performance.now() + seconds * 1_000
  const counts: Counts = {}
  const scaleCount = (number: number) => scaled(number, scale)
  const count = (action: string, status: number | string) => {
    const statusCounts = (counts[action] ??= {})
    statusCounts[status] = (statusCounts[status] ?? 0) + 1
  }
  return {
    counts,
    many: scaleCount,
    /** Sends one request after the other on each connection. */
    loop: (action: string, connections: number, work: (n: number) => Promise<number>) =>
      Array.from({ length: scaleCount(connections) }, async (_, n) => {
        while (performance.now() < endMs) {
          const status = await work(n).catch(() => 'cut' as const)
          count(action, status)
          if (status !== 200) await Bun.sleep(200)
        }
      }),
    /** Holds connections open and reopens each one that is closed. */
    held: (action: string, connections: number, open: (n: number) => Promise<Stalled>, drip = '') =>
      Array.from({ length: scaleCount(connections) }, async (_, n) => {
        while (performance.now() < endMs) {
          const connection = await open(n).catch(() => null)
          while (connection !== null && !connection.closed() && performance.now() < endMs) {
            await Bun.sleep(500)
            if (drip !== '') connection.send(drip)
          }
          if (connection === null) await Bun.sleep(500)
          else
            count(
              action,
              /^HTTP\/1\.1 (\d+)/.exec(connection.text())?.[1] ?? (connection.closed() ? 'cut' : 'held'),
            )
          connection?.end()
        }
      }),
  }
}

async function hostile(hostility: Hostility): Promise<Counts> {
  const { url, ingest, secrets, cookies, seconds } = hostility
  const { counts, loop, held: holdOpen, many: scaleCount } = repeater(hostility)
  const secretOf = (n: number) => secrets[n % secrets.length]!
  const get =
    (path: string, extraHeaders: { [name: string]: string } = {}) =>
    async (n: number) => {
      const headers = { authorization: `Bearer ${secretOf(n)}`, ...extraHeaders }
      const response = await fetch(url + path, { headers, signal: AbortSignal.timeout(seconds * 1_000) })
      await response.arrayBuffer()
      return response.status
    }
  const ask = (path: string) => (n: number) => get(path, { cookie: cookies[n % cookies.length]! })(n)
  const exportHead = (n: number) => headOf('GET /v1/traces', secretOf(n), 'accept: application/x-ndjson')
  const pageHead = (n: number) => headOf('GET /v1/traces?limit=200&type=big.page', secretOf(n))
  const streamHead = (n: number) => ['GET /api/live HTTP/1.1', `cookie: ${cookies[n % cookies.length]}`]
  const unread = { reads: false }
  await Promise.all([
    ...loop('sessions', sessionConnections, get('/v1/sessions?limit=200')),
    ...loop('one session', 2, get('/v1/sessions/long-7')),
    ...loop('searches', 4, get(`/v1/traces?${emptyQuery}`)),
    ...loop('metrics', 2, get('/v1/metrics?since=1970-01-02')),
    ...loop('histograms', 2, ask(`/api/histogram?vendor=GPTBot&${emptyQuery}`)),
    ...loop('CSV counts', 2, get(`/v1/traces?${emptyQuery}`, { accept: 'text/csv' })),
    ...holdOpen('exports', 20, (n) => openStalled(url, exportHead(n), '', unread)),
    ...holdOpen('streams', 400, (n) => openStalled(url, streamHead(n))),
    ...holdOpen('stalled bodies', 200, () => openStalled(url, postHead(ingest, 7_000_000), part)),
    ...holdOpen('dripping bodies', 50, () => openStalled(url, postHead(ingest, 1_000), '{'), 'x'),
    ...holdOpen('unread pages', 100, (n) => openStalled(url, pageHead(n), '', unread)),
    ...loop('deliveries', 1, deliveries(hostility, scaleCount(300))),
  ])
  return counts
}

/** Sends to 100 origins that never respond. */
function deliveries({ url, secrets, receiver }: Hostility, deliveriesMax: number): () => Promise<number> {
  const port = receiver.split(':')[1]
  let deliveryCount = 0
  return async () => {
    if (deliveryCount >= deliveriesMax) {
      await Bun.sleep(1_000)
      return 0
    }
    const address = `127.1.${Math.floor((deliveryCount % 100) / 50)}.${1 + (deliveryCount % 50)}`
    deliveryCount++
    const response = await fetch(`${url}/v1/webhooks/test`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secrets[0]}`, 'content-type': 'application/json' },
      body: JSON.stringify({ url: `http://${address}:${port}/hang`, payload: {} }),
    })
    await response.arrayBuffer()
    return response.status === 202 ? 200 : response.status
  }
}

if (import.meta.main) {
  const counts = await hostile(JSON.parse(process.argv[2] ?? '') as Hostility)
  process.stdout.write(`${JSON.stringify(counts)}\n`)
  process.exit(0)
}
