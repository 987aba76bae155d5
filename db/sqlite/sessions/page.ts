/** Lists sessions by their newest matching event, each told where it shows first. */
import type { Session, SessionPage, SessionPageQuery } from '../../session-store.ts'
import { filterClauses } from '../events/filter-codes.ts'
import type { OpenBlock } from '../events/open-block.ts'
import { nextCandidates } from './candidates.ts'
import type { LogView } from './log-view.ts'
import { tellSessions } from './tell.ts'
import { sessionTexts } from './texts.ts'

/** Comes back short when the budget is used up; the walk goes on at `next`. */
export function listSessions(log: LogView, query: SessionPageQuery & { ceilingSeq: number }): SessionPage {
  const { filter, limit, ceilingSeq, eventsMax, budgetMs } = query
  const endMs = performance.now() + budgetMs
  const clauses = filterClauses(log.db, log.org, log.hashSeed, filter)
  const walk = { filter, clauses, ceilingSeq, told: new Set<string>(), endMs }
  const texts = sessionTexts(log)
  const sessions: Session[] = []
  const matches = (block: OpenBlock, row: number) =>
    block.at(row) >= (filter.sinceMs ?? -Infinity) &&
    block.at(row) < (filter.untilMs ?? Infinity) &&
    block.matches(row, clauses)
  let before = query.before
  for (;;) {
    const { candidates, next } = nextCandidates(log, walk, before, limit - sessions.length)
    const told = tellSessions(log, texts, { candidates, ceilingSeq, eventsMax, matches, budgetMs })
    for (const candidate of candidates) {
      const own = told.get(candidate.id)
      if (own === undefined) return { sessions, next: candidate.before, ceilingSeq }
      // A walk that goes on may meet a session of an earlier page again.
      if (own.newest?.seq === candidate.newest.seq) sessions.push(own.session)
    }
    before = next
    if (next === null || sessions.length === limit || performance.now() > endMs)
      return { sessions, next, ceilingSeq }
  }
}
