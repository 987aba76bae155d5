/** Makes a browser's event one that the record can rely on: what only the server knows is the server's word. */
import { detectAgent } from '../agents/detect-agent.ts'
import type { CompleteEvent } from '../client/event.ts'
import type { Identity } from './relay-options.ts'

export interface Stamp {
  siteId: string | null
  userAgent: string | null
  identity: Identity | null
}

type Members = { [member: string]: unknown }

/** Null unless `value` is an object with an id: what cannot be told from its resend is not taken. */
export function stampEvent(value: unknown, { siteId, userAgent, identity }: Stamp): CompleteEvent | null {
  if (!isMembers(value) || typeof value['id'] !== 'string' || value['id'] === '') return null
  const claimed = isMembers(value['agent']) ? value['agent'] : null
  const event: Members = { ...value }
  if (siteId !== null) event['siteId'] = siteId
  const agent = stampAgent(claimed ?? detectAgent(userAgent), userAgent, identity)
  if (agent !== null) event['agent'] = agent
  const metadata = stampMetadata(value['metadata'], identity)
  if (metadata !== undefined) event['metadata'] = metadata
  return event as CompleteEvent
}

function stampAgent(
  agent: Members | null,
  userAgent: string | null,
  identity: Identity | null,
): Members | null {
  const seen = userAgent === null ? {} : { userAgent }
  if (agent === null && identity === null) return userAgent === null ? null : seen
  return { ...agent, ...seen, trust: trustOf(agent, identity) }
}

/** A browser may say what it is, but not that anybody checked it. */
function trustOf(agent: Members | null, identity: Identity | null): string {
  if (identity !== null) return identity.trust ?? 'verified'
  return agent?.['trust'] === 'declared' ? 'declared' : 'detected'
}

function stampMetadata(value: unknown, identity: Identity | null): unknown {
  if (value !== undefined && value !== null && !isMembers(value)) return value // for the appliance to reject
  const { subject: _subject, protocol: _protocol, ...rest } = value ?? {}
  const proved = {
    ...(identity?.subject === undefined ? {} : { subject: identity.subject }),
    ...(identity?.protocol === undefined ? {} : { protocol: identity.protocol }),
  }
  if (value === undefined && Object.keys(proved).length === 0) return undefined
  return { ...rest, ...proved }
}

function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
