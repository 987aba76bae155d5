/** `detectAgent`: which known AI or search agent a request claims to come from; hence "detected", never "verified". */
import { listVersion, operators, type Purpose } from './agent-list.ts'

/** Fits into an event as it is: `trace({ type: 'agent.detected', agent: detectAgent(request) })`. */
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
export type AgentSource =
  string | { headers: { get(name: string): string | null } } | { headers: PlainHeaders }

const userAgentCharsMax = 2_000

/** Null for people, unknown agents, and requests that do not say what they are. */
export function detectAgent(source: AgentSource | null | undefined): DetectedAgent | null {
  const userAgent = userAgentOf(source).slice(0, userAgentCharsMax)
  if (userAgent === '') return null
  const names = [...userAgent.matchAll(anyName)].map((match) => known.get((match[1] ?? '').toLowerCase()))
  // `Mozilla/5.0 … (Applebot/0.1)` copies its neighbours; the longest name is the most particular one.
  const found = names
    .filter((agent) => agent !== undefined)
    .reduce<Known | null>(
      (best, agent) => (best === null || agent.name.length > best.name.length ? agent : best),
      null,
    )
  if (found === null) return null
  const { vendor, name, purpose } = found
  return {
    class: 'crawler',
    trust: 'detected',
    vendor,
    name,
    purpose,
    userAgent,
    detectionVersion: listVersion,
  }
}

interface Known {
  vendor: string
  name: string
  purpose: Purpose
}

const known = new Map<string, Known>(
  operators.flatMap(({ vendor, agents }) =>
    Object.entries(agents).map(([name, purpose]): [string, Known] => [
      name.toLowerCase(),
      { vendor, name, purpose },
    ]),
  ),
)

/** A name counts as a whole word: `Yeti/1.1` is Naver's, `Yetisports` is not. Longer names come first. */
const anyName = new RegExp(
  `(?<![A-Za-z0-9-])(${[...known.values()]
    .map(({ name }) => name)
    .sort((left, right) => right.length - left.length)
    .map((name) => name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
    .join('|')})(?![A-Za-z0-9-])`,
  'gi',
)

function userAgentOf(source: AgentSource | null | undefined): string {
  if (source === null || source === undefined) return ''
  if (typeof source === 'string') return source
  const { headers } = source
  const value = isHeaders(headers) ? headers.get('user-agent') : headers['user-agent']
  return typeof value === 'string' ? value : ''
}

type PlainHeaders = { [name: string]: string | string[] | undefined }

function isHeaders(
  headers: { get(name: string): string | null } | PlainHeaders,
): headers is { get(name: string): string | null } {
  return typeof headers.get === 'function'
}
