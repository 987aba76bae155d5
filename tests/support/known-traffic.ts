/**
 * Traffic whose numbers are known, because the plan is made here and not read from the product: an access log and SDK
 * events of two sites. `shop` has requests with their visits, visits that only the SDK saw, and people whom an
 * assistant sent. `blog` has visits only.
 */
import { event, type TestEvent } from './events.ts'

/** What the product must count. */
export interface Planned {
  siteId: string
  type: 'agent.requested' | 'agent.detected' | 'agent.referred' | 'tool.executed' | 'authz.evaluated'
  atMs: number
  vendor: string
  name: string
  page: string
  outcome: 'success' | 'blocked' | 'error'
}

export interface Plan {
  planned: Planned[]
  log: string // of shop, in the combined format
  events: TestEvent[]
}

const hourMs = 3_600_000
const minuteMs = 60_000
/** The range of the tests. */
const planDays = 7

const bots = [
  { vendor: 'OpenAI', name: 'GPTBot', address: '4.227.36.9' },
  { vendor: 'Anthropic', name: 'ClaudeBot', address: '20.64.57.210' },
  { vendor: 'OpenAI', name: 'ChatGPT-User', address: '203.0.113.10' },
] as const
type Bot = (typeof bots)[number]

const pages = ['/', '/pricing', '/docs/start', '/docs/api', '/docs/errors'] as const
const statuses = [200, 200, 403, 200, 404, 304, 500] as const

/** As the contract says (§11), written again. */
function outcomeOf(status: number): Planned['outcome'] {
  if ([401, 402, 403, 407, 429, 451].includes(status)) return 'blocked'
  return status < 400 ? 'success' : 'error'
}

interface Visit {
  bot: Bot
  startMs: number
  requests: number
}

/** Visits of one bot are hours apart, so each is one session. Two stand at the two sides of the start of the range. */
function visitsOf(rangeMs: number): Visit[] {
  const visit = (n: number, startMs: number): Visit => ({
    bot: bots[n % bots.length]!,
    startMs,
    requests: 1 + (n % 4),
  })
  const inRange = Array.from({ length: 20 }, (_, n) => visit(n, rangeMs + (n * 8 + 2) * hourMs))
  const before = Array.from({ length: 9 }, (_, n) => visit(n, rangeMs - (n * 9 + 4) * hourMs))
  const first = { bot: bots[1], startMs: rangeMs, requests: 1 }
  const last = { bot: bots[0], startMs: rangeMs - 1_000, requests: 1 }
  return [...inRange, ...before, first, last].toSorted((a, b) => a.startMs - b.startMs)
}

interface Line {
  atMs: number
  text: string
}

function line(atMs: number, address: string, page: string, status: number, agent: string, from = '-'): Line {
  const [, day, month, year, time] = new Date(atMs).toUTCString().split(' ')
  const stamp = `[${day}/${month}/${year}:${time} +0000]`
  return { atMs, text: `${address} - - ${stamp} "GET ${page} HTTP/1.1" ${status} 512 "${from}" "${agent}"` }
}

const browser = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'

/** `nowMs` may be in any minute of its hour. */
export function planTraffic(nowMs: number): Plan {
  const rangeMs = nowMs - (nowMs % hourMs) - planDays * 24 * hourMs
  const planned: Planned[] = []
  const lines: Line[] = []
  const events: TestEvent[] = []
  const site = { siteId: 'shop', outcome: 'success' } as const

  let n = 0
  for (const { bot, startMs, requests } of visitsOf(rangeMs)) {
    for (let index = 0; index < requests; index++) {
      const atMs = startMs + index * minuteMs
      const page = pages[(n * 2 + index) % pages.length]!
      const status = statuses[n++ % statuses.length]!
      const { address, ...agent } = bot
      lines.push(line(atMs, address, page, status, `Mozilla/5.0 (compatible; ${bot.name}/1.0)`))
      const request = { siteId: 'shop', atMs, page, ...agent }
      planned.push({ ...request, type: 'agent.requested', outcome: outcomeOf(status) })
      if (index === 0) planned.push({ ...request, type: 'agent.detected', outcome: 'success' })
    }
  }

  // People whom ChatGPT sent: each from an address of their own, so each is one referral.
  for (let person = 0; person < 11; person++) {
    const atMs = rangeMs + (person < 7 ? 1 : -1) * (person * 5 + 3) * hourMs
    lines.push(line(atMs, `198.51.100.${person + 1}`, '/pricing', 200, browser, 'https://chatgpt.com/'))
    planned.push({
      ...site,
      type: 'agent.referred',
      atMs,
      page: '/pricing',
      vendor: 'OpenAI',
      name: 'ChatGPT',
    })
  }

  const add = (one: Planned) => {
    const { siteId, type, atMs, vendor, name, page, outcome } = one
    planned.push(one)
    events.push(
      event(`planned-${events.length}`, {
        siteId,
        type,
        outcome,
        occurredAt: new Date(atMs).toISOString(),
        sessionId: `planned-session-${events.length}`,
        tool: type === 'tool.executed' || type === 'authz.evaluated' ? 'cart.add' : null,
        agent: { class: 'dom', trust: 'detected', vendor, name },
        policy: type === 'authz.evaluated' ? { decision: 'allow', ruleId: 'r1' } : null,
        metadata: { page },
      }),
    )
  }
  const operator = { vendor: 'Operator', name: 'Operator', page: '/checkout' }
  for (let index = 0; index < 5; index++) {
    const atMs = rangeMs + (index * 11 + 5) * hourMs
    add({ ...site, ...operator, type: 'agent.detected', atMs })
    add({ ...site, ...operator, type: 'tool.executed', atMs, outcome: index === 1 ? 'error' : 'success' })
    add({ ...site, ...operator, type: 'authz.evaluated', atMs, outcome: index === 2 ? 'blocked' : 'success' })
  }
  for (let index = 0; index < 13; index++) {
    const atMs = rangeMs + (index < 9 ? 1 : -1) * (index * 6 + 4) * hourMs
    const bot = bots[index % 2]!
    const page = index % 3 === 0 ? '/posts/one' : '/'
    add({
      siteId: 'blog',
      type: 'agent.detected',
      atMs,
      vendor: bot.vendor,
      name: bot.name,
      page,
      outcome: 'success',
    })
  }
  const log = lines.toSorted((a, b) => a.atMs - b.atMs).map(({ text }) => `${text}\n`)
  return { planned, log: log.join(''), events }
}

export interface PlanRange {
  sinceMs: number
  untilMs: number
}

/** The last days as the contract says (§19): from the start of the running hour N × 24 h back, to its end. */
export function lastDays(nowMs: number, days = planDays): PlanRange {
  const hour = nowMs - (nowMs % hourMs)
  return { sinceMs: hour - days * 24 * hourMs, untilMs: hour + hourMs }
}

export function beforeOf({ sinceMs }: PlanRange, days = planDays): PlanRange {
  return { sinceMs: sinceMs - days * 24 * hourMs, untilMs: sinceMs }
}

/** The planned events of a range that a test asks for. */
export function inRange(
  { planned }: Pick<Plan, 'planned'>,
  { sinceMs, untilMs }: PlanRange,
  isWanted: (one: Planned) => boolean,
): Planned[] {
  return planned.filter((one) => one.atMs >= sinceMs && one.atMs < untilMs && isWanted(one))
}

/** How many events have each value. */
export function countBy(
  events: readonly Planned[],
  field: 'page' | 'vendor' | 'outcome',
): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const one of events) counts[one[field]] = (counts[one[field]] ?? 0) + 1
  return counts
}
