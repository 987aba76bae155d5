/** `detectAgent`: recognizes AI and search agents by the user agent, which is a claim and not a proof. */
import { type RequestHeaders, userAgentOf } from '../client/visitor-session.ts'
import { listVersion, operators, type Purpose, reportedName } from './agent-list.ts'
import { rareSearchEngines } from './rare-search-engines.ts'

/** The `agent` field of an event: `session.trace({ type: 'agent.detected', agent: detectAgent(request) })`. */
export interface DetectedAgent {
  class: 'crawler'
  /** Always `detected`, because anybody can send any user agent. */
  trust: 'detected'
  vendor: string
  /** The agent's name, such as GPTBot. */
  name: string
  purpose: Purpose
  userAgent: string
  detectionVersion: string
  [field: string]: unknown
}

/** A user agent, or a Fetch, Node.js or Express request. */
export type AgentSource = string | { headers: RequestHeaders }

/**
 * The agent that the `user-agent` header names. Null for people, unknown agents and requests without the header.
 *
 * Trace it in the visitor's session: `client.session(request).trace({ type: 'agent.detected', agent })`.
 */
export function detectAgent(source: AgentSource | null | undefined): DetectedAgent | null {
  if (source === null || source === undefined) return null
  const userAgent = userAgentOf(typeof source === 'string' ? { 'user-agent': source } : source.headers)
  if (userAgent === '') return null
  const { known, anyText } = (index ??= makeIndex())
  let found: Known | null = null
  for (const match of userAgent.matchAll(anyText)) {
    const agent = known.get((match[1] ?? '').toLowerCase())
    // A user agent may contain several names; the longest one is the most specific.
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

interface Index {
  /** By the lower-case text in the user agent. */
  known: Map<string, Known>
  /** Matches whole words: `Yeti/1.1` is Naver's, `Yetisports` is not. Longer texts come first. */
  anyText: RegExp
}

/** Made for the first user agent, because a program may load this module and never detect an agent. */
let index: Index | null = null

function makeIndex(): Index {
  const known = new Map<string, Known>(
    [...operators, ...rareSearchEngines].flatMap(({ vendor, agents }) =>
      Object.entries(agents).map(([entry, purpose]): [string, Known] => {
        return [textOf(entry), { vendor, name: reportedName(entry), purpose }]
      }),
    ),
  )
  const texts = [...known.keys()]
    .sort((left, right) => right.length - left.length)
    .map((text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&') + (/\w$/.test(text) ? '(?![A-Za-z0-9-])' : ''))
  return { known, anyText: new RegExp(`(?<![A-Za-z0-9-])(${texts.join('|')})`, 'gi') }
}
