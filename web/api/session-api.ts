/** The calls that read sessions. */
import type { SessionView } from '../../server/api/sessions/routes.ts'
import { get, type TraceEvent } from './api.ts'

/** With `truncated`, the session has more events; the newest were counted. */
export type AgentSession = SessionView

export interface SessionPage {
  sessions: AgentSession[] // newest first
  nextCursor: string | null
}

export interface SessionStory {
  session: AgentSession
  events: TraceEvent[] // oldest first
  nextCursor: string | null
}

export const sessionApi = {
  /** `params` are filters of GET /v1/sessions, or only a cursor. */
  list: (params: URLSearchParams, signal: AbortSignal) => get<SessionPage>(`/api/sessions?${params}`, signal),
  story: (id: string, cursor: string | null, signal: AbortSignal) => {
    const more = cursor === null ? '' : `?${new URLSearchParams({ cursor })}`
    return get<SessionStory>(`/api/sessions/${encodeURIComponent(id)}${more}`, signal)
  },
}
