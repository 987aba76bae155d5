/** The agents of the demo shop: crawlers, browser agents and WebMCP clients, and how each proves its identity. */
import crawlers from './crawlers.json'

export type AgentClass = 'crawler' | 'dom' | 'screenshot' | 'webmcp'

/** How an agent proves its identity, and the trust it gains. */
export interface Proof {
  protocol: string
  subject: string // {n} is replaced by a number per session
  trust: 'declared' | 'verified' | 'linked'
  weight: number
}

export interface Agent {
  class: AgentClass
  vendor: string
  bot: { name: string; purpose: string } | null // crawlers only
  published: Published | null
  userAgent: string
  detectionVersion: string
  /** Share of sessions that present an identity. */
  presents: number
  proofs: readonly Proof[]
  weight: number
}

const chrome = (version: number, system: string) =>
  `Mozilla/5.0 (${system}) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/${version}.0.0.0 Safari/537.36`
const mac = 'Macintosh; Intel Mac OS X 10_15_7'
const windows = 'Windows NT 10.0; Win64; x64'
const linux = 'X11; Linux x86_64'

const botAuth = (domain: string): Proof => ({
  protocol: 'web-bot-auth',
  subject: `https://${domain}/.well-known/http-message-signatures-directory`,
  trust: 'verified',
  weight: 5,
})
const byAddress = (vendor: string): Proof => ({
  protocol: 'verified-crawler',
  subject: `${vendor.toLowerCase().replaceAll(' ', '-')} address range`,
  trust: 'verified',
  weight: 5,
})
const customer: Proof = {
  protocol: 'oauth2',
  subject: 'customer-{n}@shop.example',
  trust: 'linked',
  weight: 5,
}
const session: Proof = {
  protocol: 'session-link',
  subject: 'customer-{n}@shop.example',
  trust: 'linked',
  weight: 4,
}
const bearer: Proof = { protocol: 'bearer', subject: 'agent-{n}', trust: 'declared', weight: 3 }
const apiKey: Proof = { protocol: 'api-key', subject: 'partner-{n}', trust: 'verified', weight: 2 }
const staff: Proof = { protocol: 'sso', subject: 'buyer-{n}@partner.example', trust: 'linked', weight: 2 }
const workload: Proof = {
  protocol: 'spiffe',
  subject: 'spiffe://partner.example/buyer/{n}',
  trust: 'verified',
  weight: 1,
}
const certificate: Proof = {
  protocol: 'mtls',
  subject: 'CN=partner-{n}.example',
  trust: 'verified',
  weight: 1,
}

/** The networks that operators of some crawlers publish; those of `isForUsers` fetch for people. */
interface Published {
  list: string
  listDate: string
  networks: number
  isForUsers: boolean
}

const published: { readonly [name: string]: Published } = Object.fromEntries(
  (
    [
      ['GPTBot', 'gptbot', '2025-10-30', 17],
      ['OAI-SearchBot', 'oai-searchbot', '2026-01-02', 32],
      ['ChatGPT-User', 'chatgpt-user', '2026-08-14', 193, true],
      ['Claude-SearchBot', 'anthropic', '2026-08-13', 23],
      ['Googlebot', 'googlebot', '2026-08-17', 65],
      ['bingbot', 'bingbot', '2024-01-03', 28],
      ['PerplexityBot', 'perplexitybot', '2025-02-07', 8],
      ['Perplexity-User', 'perplexity-user', '2025-10-17', 4, true],
      ['CCBot', 'ccbot', '2026-08-04', 6],
      ['Amazonbot', 'amazonbot', '2026-04-30', 524],
      ['Applebot', 'applebot', '2026-07-31', 21],
    ] as const
  ).map(([name, list, listDate, networks, isForUsers = false]) => [
    name,
    { list, listDate, networks, isForUsers },
  ]),
)

const domains: { readonly [vendor: string]: string } = { OpenAI: 'chatgpt.com' }

export const crawlerAgents: readonly Agent[] = crawlers.map(
  ({ vendor, userAgent, weight, proof, ...bot }) => ({
    class: 'crawler',
    vendor,
    bot,
    published: published[bot.name] ?? null,
    userAgent,
    detectionVersion: '2026.10',
    presents: proof === null ? 0 : proof === 'web-bot-auth' ? 0.85 : 0.7,
    proofs:
      proof === null
        ? []
        : [proof === 'web-bot-auth' ? botAuth(domains[vendor] ?? 'example.com') : byAddress(vendor)],
    weight,
  }),
)

/** Operators whom nobody knows: one of them is new in the last day. */
export const newcomers: readonly Agent[] = [
  ['Harborlight AI', 'HarborlightBot', 'training'],
  ['Quillmark', 'Quillmark-Search', 'search'],
  ['Fennel Research', 'FennelCrawler', 'training'],
  ['Tidewater Labs', 'TidewaterBot', 'search'],
].map(([vendor, name, purpose]) => ({
  ...agent(
    'crawler',
    vendor!,
    1,
    0,
    [],
    `Mozilla/5.0 (compatible; ${name}/1.0; +https://bot.example/${name})`,
  ),
  bot: { name: name!, purpose: purpose! },
}))

function agent(
  agentClass: AgentClass,
  vendor: string,
  weight: number,
  presents: number,
  proofs: readonly Proof[],
  userAgent: string,
): Agent {
  return {
    class: agentClass,
    vendor,
    bot: null,
    published: null,
    userAgent,
    detectionVersion: '2026.10',
    presents,
    proofs,
    weight,
  }
}

export const browserAgents: readonly Agent[] = [
  agent('dom', 'Operator', 24, 0.7, [botAuth('chatgpt.com'), session], chrome(131, mac)),
  agent('dom', 'Claude in Chrome', 16, 0.4, [session, bearer], chrome(130, mac)),
  agent('dom', 'Comet', 13, 0.25, [session], chrome(130, windows)),
  agent('dom', 'Browser Use', 9, 0.1, [bearer], chrome(128, linux)),
  agent('dom', 'Nova Act', 6, 0.3, [bearer, session], chrome(129, linux)),
  agent('dom', 'Skyvern', 4, 0.1, [apiKey], chrome(127, linux)),
  agent(
    'dom',
    'unknown',
    7,
    0,
    [],
    `Mozilla/5.0 (${linux}) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/124.0.0.0 Safari/537.36`,
  ),
  agent('screenshot', 'Claude Computer Use', 9, 0.2, [session], chrome(128, linux)),
  agent('screenshot', 'Gemini Computer Use', 6, 0.2, [session], chrome(131, linux)),
  agent('screenshot', 'UI-TARS', 3, 0, [], chrome(126, windows)),
]

export const toolAgents: readonly Agent[] = [
  agent('webmcp', 'Claude', 26, 0.8, [customer, session, bearer], chrome(131, mac)),
  agent('webmcp', 'ChatGPT', 24, 0.8, [customer, botAuth('chatgpt.com')], chrome(131, windows)),
  agent('webmcp', 'Gemini', 15, 0.75, [customer, session], chrome(132, mac)),
  agent('webmcp', 'GitHub Copilot', 12, 0.9, [staff, apiKey, workload], chrome(131, windows)),
  agent('webmcp', 'Le Chat', 5, 0.6, [customer, bearer], chrome(130, linux)),
  agent('webmcp', 'Partner Procurement', 6, 0.98, [workload, certificate, apiKey], 'partner-procurement/4.2'),
]
