/** The calls that read sessions: what one agent did, from its first event to its last. */
import type { SessionView } from '../../server/api/sessions/routes.ts'
import { get, type TraceEvent } from './api.ts'

/** With `truncated`, the session has more events; the newest were counted. */
export type AgentSession = SessionView

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
