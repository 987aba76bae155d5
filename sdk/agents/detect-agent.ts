/** `detectAgent`: which known AI or search agent a request claims to come from; hence "detected", never "verified". */
import { type RequestHeaders, userAgentOf } from '../client/visitor-session.ts'
import { listVersion, operators, type Purpose, reportedName } from './agent-list.ts'
import { rareSearchEngines } from './rare-search-engines.ts'

/** Fits into an event as it is: `session.trace({ type: 'agent.detected', agent: detectAgent(request) })`. */
export interface DetectedAgent {
  class: 'crawler'
  /** Never more: the user agent is what the caller wrote. Proof is the business of your authentication. */
  trust: 'detected'
  vendor: string
  /** The agent's own name, such as GPTBot. */
  name: string
  purpose: Purpose
  userAgent: string
  detectionVersion: string
  [member: string]: unknown
}

/** A user agent, or anything with the headers of a request: Fetch style, or Node's. */
export type AgentSource = string | { headers: RequestHeaders }

/**
 * Who a request says it is, from its `user-agent`. Null for people, unknown agents, and requests that do not say.
 *
 * Trace into the visitor's session, or every visitor becomes one story:
 * `client.session(request).trace({ type: 'agent.detected', agent })`.
 */
export function detectAgent(source: AgentSource | null | undefined): DetectedAgent | null {
  if (source === null || source === undefined) return null
  const userAgent = userAgentOf(typeof source === 'string' ? { 'user-agent': source } : source.headers)
  if (userAgent === '') return null
  let found: Known | null = null
  for (const match of userAgent.matchAll(anyText)) {
    const agent = known.get((match[1] ?? '').toLowerCase())
    // `Mozilla/5.0 … (Applebot/0.1)` copies its neighbours: the longest name is the most particular one.
    if (agent !== undefined && (found === null || agent.name.length >= found.name.length)) found = agent
  }
  if (found === null) return null
  return { class: 'crawler', trust: 'detected', ...found, userAgent, detectionVersion: listVersion }
}

interface Known {
  vendor: string
  name: string
  purpose: Purpose
}

const textOf = (entry: string): string => entry.replace(/=.*/, '').toLowerCase()

/** By the text to look for. */
const known = new Map<string, Known>(
  [...operators, ...rareSearchEngines].flatMap(({ vendor, agents }) =>
    Object.entries(agents).map(([entry, purpose]): [string, Known] => {
      return [textOf(entry), { vendor, name: reportedName(entry), purpose }]
    }),
  ),
)

/** Whole words only: `Yeti/1.1` is Naver's, `Yetisports` is not. Longer texts come first. */
const anyText = new RegExp(
  `(?<![A-Za-z0-9-])(${[...known.keys()]
    .sort((left, right) => right.length - left.length)
    .map((text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&') + (/\w$/.test(text) ? '(?![A-Za-z0-9-])' : ''))
    .join('|')})`,
  'gi',
)
