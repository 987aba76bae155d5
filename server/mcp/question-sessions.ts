/** Sessions of questions: the first question of a caller after a pause writes one audit entry, before its answer. */
import type { Store } from '../../db/contract/store.ts'
import { auditEntry } from '../audit/entry.ts'
import { elapsedMs, type Clock } from '../clock.ts'
import { clean } from './untrusted.ts'

/** A pause that ends a session. */
const pauseMs = 30 * 60_000
/** Of one session, however busy it is. */
const lengthMs = 12 * 3_600_000

export interface QuestionSessions {
  /** Settles when the entry of the session is durable. `client` is what the caller calls itself. */
  asked(caller: { orgId: string; actor: string }, tool: string, client: string | null): Promise<void>
}

interface Session {
  startedMs: number
  lastMs: number
  written: Promise<void>
}

export function makeQuestionSessions({
  store,
  clock,
}: {
  store: Pick<Store, 'audit'>
  clock: Clock
}): QuestionSessions {
  /** By organization and actor: at most as many as there are keys. */
  const sessions = new Map<string, Session>()
  const write = ({ orgId, actor }: { orgId: string; actor: string }, tool: string, client: string | null) => {
    const metadata = { client: client === null ? null : clean(client, 80), tool }
    const target = actor.startsWith('key:') ? actor.slice('key:'.length) : orgId
    const act = { action: 'mcp_session.started', target, metadata }
    return store.audit.append(auditEntry({ orgId, actor }, act, clock.now()))
  }
  return {
    async asked(caller, tool, client) {
      const name = `${caller.orgId} ${caller.actor}`
      const nowMs = elapsedMs(clock)
      const currentSession = sessions.get(name)
      if (
        currentSession !== undefined &&
        nowMs - currentSession.lastMs < pauseMs &&
        nowMs - currentSession.startedMs < lengthMs
      ) {
        currentSession.lastMs = nowMs
        return currentSession.written
      }
      const session: Session = { startedMs: nowMs, lastMs: nowMs, written: write(caller, tool, client) }
      sessions.set(name, session)
      for (const [sessionName, { lastMs }] of sessions)
        if (nowMs - lastMs >= pauseMs) sessions.delete(sessionName)
      try {
        await session.written
      } catch (error) {
        // The next question tries again.
        if (sessions.get(name) === session) sessions.delete(name)
        throw error
      }
    },
  }
}
