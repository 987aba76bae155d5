/** Lists sessions by their newest matching event, each told where it shows first. */
import type { Session, SessionPage, SessionPageQuery } from '../../session-store.ts'
import { filterClauses } from '../events/filter-codes.ts'
import type { OpenBlock } from '../events/open-block.ts'
import { nextCandidates, type Candidate } from './candidates.ts'
import type { LogView } from './log-view.ts'
import { sessionRows } from './rows.ts'
import { summarizer } from './summary.ts'

/** Comes back short when the budget is used up; the walk goes on at `next`. */
export function listSessions(log: LogView, query: SessionPageQuery & { ceilingSeq: number }): SessionPage {
  const { filter, limit, ceilingSeq, eventsMax, budgetMs } = query
  const endMs = performance.now() + budgetMs
  const clauses = filterClauses(log.db, log.org, log.hashSeed, filter)
  const walk = { filter, clauses, ceilingSeq, told: new Set<string>(), endMs }
  const summarize = summarizer(log)
  const sessions: Session[] = []
  const matches = (block: OpenBlock, row: number) =>
    block.at[row]! >= (filter.sinceMs ?? -Infinity) &&
    block.at[row]! < (filter.untilMs ?? Infinity) &&
    block.matches(row, clauses)
  let before = query.before
  for (;;) {
    const { candidates, next } = nextCandidates(log, walk, before, limit - sessions.length)
    const ids = candidates.map(({ id }) => id)
    const noOlderThan = candidates.reduce((low, { newest }) => Math.min(low, newest.occurredAtMs), Infinity)
    const asked = { ids, ceilingSeq, eventsMax, matches, noOlderThan, budgetMs }
    const found = ids.length === 0 ? null : sessionRows(log, asked)
    for (const candidate of candidates) {
      const own = found?.get(candidate.id)
      if (own === undefined) return { sessions, next: candidate.before, ceilingSeq }
      // A walk that goes on may meet a session of an earlier page again.
      if (own.newest?.seq === candidate.newest.seq) sessions.push(summarize(candidate.id, own))
    }
    before = next
    if (next === null || sessions.length === limit || performance.now() > endMs)
      return { sessions, next, ceilingSeq }
  }
}
