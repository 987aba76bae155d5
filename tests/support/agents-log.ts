/** An access log whose agents come from addresses that prove or contradict them, with what Detect must count in it. */

interface LoggedAgent {
  vendor: string
  name: string
  purpose: string
  userAgent: string
  address: string
  verdict: 'verified' | 'consistent' | 'contradicted' | 'unverifiable'
  requests: number
}

const userAgentOf = (product: string): string =>
  `Mozilla/5.0 (compatible; ${product}/1.0; +https://bots.example)`

/** Addresses are of the bundled lists, or of networks for documentation, which no operator has. */
export const loggedAgents: readonly LoggedAgent[] = [
  agent('OpenAI', 'GPTBot', 'training', '4.227.36.9', 'verified', 40),
  agent('OpenAI', 'GPTBot', 'training', '203.0.113.9', 'contradicted', 12),
  agent('OpenAI', 'ChatGPT-User', 'assistant', '203.0.113.10', 'unverifiable', 6),
  agent('Anthropic', 'ClaudeBot', 'training', '20.64.57.210', 'verified', 9),
  agent('Anthropic', 'ClaudeBot', 'training', '198.51.100.7', 'contradicted', 3),
  agent('ByteDance', 'Bytespider', 'training', '203.0.113.77', 'unverifiable', 5),
]

function agent(
  vendor: string,
  name: string,
  purpose: string,
  address: string,
  verdict: LoggedAgent['verdict'],
  requests: number,
): LoggedAgent {
  return { vendor, name, purpose, address, verdict, requests, userAgent: userAgentOf(name) }
}

export const logged = { people: 30, assets: 10, programs: 5, referrals: 4 }

const browser = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'

/** Status of the nth request: some are refused, some fail. */
export function statusOf(n: number): number {
  if (n % 5 === 3) return 403
  return n % 7 === 6 ? 404 : 200
}

export function pageOf(n: number): string {
  return n % 3 === 0 ? '/about' : `/products/kettle-${n % 12}`
}

/** Lines in the combined format, all within the seconds before `nowMs`. */
export function agentsLog(nowMs: number): string {
  const lines: string[] = []
  const add = (address: string, page: string, status: number, referrer: string, userAgent: string): void => {
    const dateText = new Date(nowMs - 1_000).toUTCString() // Mon, 23 Nov 2026 10:00:00 GMT
    const [, day, month, year, time] = dateText.split(' ')
    const request = `"GET ${page} HTTP/1.1" ${status} ${100 + lines.length}`
    lines.push(
      `${address} - - [${day}/${month}/${year}:${time} +0000] ${request} "${referrer}" "${userAgent}"`,
    )
  }
  for (const { address, userAgent, requests } of loggedAgents)
    for (let n = 0; n < requests; n++) add(address, pageOf(n), statusOf(n), '-', userAgent)
  for (let n = 0; n < logged.people; n++) {
    const referrer = n < logged.referrals ? 'https://chatgpt.com/' : '-'
    add(`192.0.2.${n + 1}`, '/about', 200, referrer, browser)
  }
  for (let n = 0; n < logged.assets; n++) add('192.0.2.1', `/style-${n}.css`, 200, '-', browser)
  for (let n = 0; n < logged.programs; n++) add('192.0.2.2', '/about', 200, '-', 'curl/8.0')
  return `${lines.join('\n')}\n`
}
