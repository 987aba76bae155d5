/** The events of the engine's bench: realistic in size, with values that match once, rarely and often. */
import type { EventFilter, EventRecord } from '../../db/contract/store.ts'

export const types = [
  'agent.detected',
  'auth.identity_presented',
  'authz.evaluated',
  'tool.executed',
  'memory.accessed',
  'tool.surfaced',
] as const
export const classes = ['webmcp', 'dom', 'screenshot', 'crawler'] as const
export const vendors = ['GPTBot', 'ClaudeBot', 'PerplexityBot', 'Google-Agent', 'Bytespider'] as const
const monthMs = 30 * 86_400_000
export const userAgent =
  'Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)'

export const startMs = Date.UTC(2026, 5, 1)

export interface EventSource {
  event(n: number): EventRecord
  /** Queries of the filled store: name, filter, and the number of matching events. */
  questions: { name: string; filter: EventFilter; matches: number }[]
}

const emptyFields = {
  robots: null,
  decision: null,
  ruleId: null,
  reason: null,
  judgedBy: null,
  observedBy: null,
  evidence: null,
  network: null,
}
const bots = [
  { name: 'GPTBot', purpose: 'training' },
  { name: 'ChatGPT-User', purpose: 'user' },
  { name: 'OAI-SearchBot', purpose: 'search' },
] as const

const botOf = (n: number) => ({ trust: 'detected', ...(bots[(n >> 3) % bots.length] ?? bots[0]) })

type IdOf = (n: number) => string
const randomId: IdOf = () => crypto.randomUUID()

/** A number between 0 and 2^128 as hexadecimal digits, so that a resend has the id of the first time. */
export function idOf(n: number): string {
  const half = (seed: bigint) => Bun.hash.wyhash(`${n}`, seed).toString(16).padStart(16, '0')
  return half(1n) + half(2n)
}

/** `total` events from a time on, 13,900 per hour, 20 per session, about 40 sessions at a time, with random ids. */
export function eventSource(total: number, fromMs = startMs, idOf: IdOf = randomId): EventSource {
  const stepMs = monthMs / 10_000_000 // the full run fills a month, the short one a few hours at the same rate
  const thousandth = Math.max(1, Math.floor(total / 1_000))

  function event(n: number): EventRecord {
    const id = `trc_${idOf(n)}`
    const sessionId = `ses_${Bun.hash.xxHash32(`${Math.floor(n / 800)} ${n % 40}`).toString(36)}`
    const occurredAtMs = Math.floor(fromMs + n * stepMs) - (n % 50 === 0 ? 90_000 : 0)
    const type = types[n % 6] ?? types[0]
    const agent = { class: classes[(n >> 2) & 3] ?? 'dom', ...botOf(n), vendor: vendorOf(n) }
    const tool = type === 'tool.executed' ? `cart.${(n >> 3) % 30}` : null
    const page = `/products/${n % 50}`
    const subject = n === total >> 1 ? 'only-once' : n % 4 === 1 ? `user-${(n >> 4) % 2_000}` : null
    const outcome = n % 11 === 0 ? 'blocked' : 'success'
    const durationMs = (n * 13) % 900
    const metadata = { page, protocol: 'web-bot-auth', ...(subject === null ? {} : { subject }) }
    const detection = {
      confidence: 0.93,
      detectionVersion: '2026.04',
      signals: { ua: true, rdns: false },
      userAgent,
    }
    return {
      id,
      siteId: 'shop-acme',
      sessionId,
      occurredAtMs,
      type,
      outcome,
      tool,
      durationMs,
      ...agent,
      protocol: 'web-bot-auth',
      subject,
      page,
      verdict: null,
      ...emptyFields,
      json: JSON.stringify({
        id,
        siteId: 'shop-acme',
        sessionId,
        occurredAt: new Date(occurredAtMs).toISOString(),
        type,
        outcome,
        tool: tool ?? undefined,
        durationMs,
        agent: { ...agent, ...detection },
        metadata,
      }),
    }
  }

  function vendorOf(n: number): string {
    return n % thousandth === 0 ? 'Rare-Agent' : (vendors[(n * 7) % 5] ?? 'GPTBot')
  }

  const rare = Math.ceil(total / thousandth)
  return {
    event,
    questions: [
      { name: 'no filter', filter: {}, matches: total },
      { name: 'type, 1 in 6', filter: { types: ['tool.executed'] }, matches: Math.floor((total + 2) / 6) },
      { name: 'type prefix', filter: { types: ['tool.*'] }, matches: 0 },
      { name: 'outcome, 1 in 11', filter: { outcomes: ['blocked'] }, matches: 0 },
      { name: `vendor, ${rare} in all`, filter: { vendors: ['Rare-Agent'] }, matches: rare },
      { name: 'subject, 1 in all', filter: { subjects: ['only-once'] }, matches: 1 },
      { name: 'subject, common', filter: { subjects: ['user-7'] }, matches: 0 },
      { name: 'session', filter: { sessionIds: [event(800).sessionId] }, matches: 20 },
      { name: 'session, unknown', filter: { sessionIds: ['nobody'] }, matches: 0 },
      { name: 'tool missing', filter: { tools: [''] }, matches: 0 },
      {
        name: 'pair that never meets',
        filter: { types: ['tool.surfaced'], tools: ['cart.1'] },
        matches: 0,
      },
      {
        name: 'rare pair that never meets',
        filter: { vendors: ['Rare-Agent'], sessionIds: ['nobody'] },
        matches: 0,
      },
    ],
  }
}
