/** The calls that read sessions: what one agent did, from its first event to its last. */
import { get, type TraceEvent } from './api.ts'

export interface AgentSession {
  id: string
  siteIds: string[]
  firstSeenAt: string
  lastSeenAt: string
  events: number
  agent: { class: string | null; vendor: string | null; trust: string | null } // at the highest trust it reached
  byPillar: { [pillar: string]: number }
  byOutcome: { [outcome: string]: number }
  truncated?: true // there are more events; the newest were counted
}

export interface SessionPage {
  sessions: AgentSession[] // the newest first
  nextCursor: string | null
}

export interface SessionStory {
  session: AgentSession
  events: TraceEvent[] // oldest first
  nextCursor: string | null
}

export const sessionApi = {
  /** `params` are filters of the gateway, or a cursor alone. */
  list: (params: URLSearchParams, signal: AbortSignal) => get<SessionPage>(`/api/sessions?${params}`, signal),
  story: (id: string, cursor: string | null, signal: AbortSignal) => {
    const more = cursor === null ? '' : `?${new URLSearchParams({ cursor })}`
    return get<SessionStory>(`/api/sessions/${encodeURIComponent(id)}${more}`, signal)
  },
}
